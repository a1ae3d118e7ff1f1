// SPDX-License-Identifier: Apache-2.0
#include "process/start_watch.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/number_in.hpp"
#include "process/descendants.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/study/vocabulary.hpp"

namespace ranktune::process {
namespace {

constexpr std::chrono::seconds look_period{1};

/// How many ranks Open MPI's mpirun starts on this node; 0: another launcher.
std::size_t ranks_here() {
    const char* size = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    return size == nullptr ? 0 : std::strtoul(size, nullptr, 10);
}

std::string waited_too_long(std::chrono::milliseconds limit, const std::string& who) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit).count();
    return "ranktune: " + who + " has waited " + std::to_string(seconds) +
           " s for the other ranks to start, and ends (exit 75): one of them has died or hangs; see its messages "
           "above. To wait longer: " +
           start_timeout_variable + "=SECONDS\n";
}

std::string sibling_is_gone(const std::string& who) {
    return "ranktune: " + who +
           " ends (exit 75): another rank of this node died before all ranks were there; see its messages above. The "
           "same command goes on with the study\n";
}

std::string launcher_is_gone(const std::string& who) {
    return "ranktune: " + who +
           " ends (exit 75): what started it (mpirun, orted, slurmstepd) died before all ranks were there; the same "
           "command goes on with the study\n";
}

} // namespace

[[noreturn]] void give_up_start(const std::string& text) {
    static_cast<void>(!write(STDERR_FILENO, text.data(), text.size()));
    _exit(static_cast<int>(study::StudyOutcome::resumable));
}

StartWatch::StartWatch(std::chrono::milliseconds limit, std::string who)
    : thread_(
          // Counts its sleeps instead of reading a clock, so that time in which the job was suspended does not count.
          [limit, parent = getppid(), who = std::move(who), waited = std::chrono::milliseconds(0), ranks = ranks_here(),
           complete = false]() mutable {
              // Without the parent no rank can join any more, and nobody ends the waiting ones.
              if (getppid() != parent) give_up_start(launcher_is_gone(who));
              // Nor does mpirun, where it was told to outlive its ranks.
              const std::size_t living = living_children(parent).value_or(ranks);
              complete = complete || living >= ranks; // never, if each rank has a script between it and mpirun
              if (complete && living < ranks) give_up_start(sibling_is_gone(who));
              if (limit.count() > 0 && waited >= limit) give_up_start(waited_too_long(limit, who));
              waited += look_period;
              return Background::Clock::now() + look_period;
          },
          Background::Clock::now()) {}

std::chrono::seconds StartWatch::limit_from_environment() {
    const char* set = std::getenv(start_timeout_variable);
    if (set == nullptr) {
        long tasks = 0; // thousands of tasks take longer to load their libraries
        for (const char* name : {"SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
            if (const char* size = std::getenv(name)) tasks = std::max(tasks, std::strtol(size, nullptr, 10));
        return std::chrono::seconds(300 + std::min(tasks, 100'000L) / 10);
    }
    const auto seconds = base::number_in<long>(set);
    if (!seconds || *seconds < 0)
        throw base::UsageError(std::string(start_timeout_variable) + " in the environment is '" + set +
                               "'; it needs a number of seconds, 0 for no limit");
    return std::chrono::seconds(*seconds);
}

} // namespace ranktune::process
