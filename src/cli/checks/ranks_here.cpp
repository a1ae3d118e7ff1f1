// SPDX-License-Identifier: Apache-2.0
#include "cli/checks/ranks_here.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "cli/study_input.hpp"
#include "cli/terminal/terminal.hpp"
#include "comm/mpi/environment.hpp"
#include "comm/mpi/launch.hpp"
#include "launch/how_launched.hpp"
#include "process/environment.hpp"
#include "ranktune/base/error.hpp"
#include "report/screens/text.hpp"
#include "slurm/allocation.hpp"

namespace ranktune::cli {
namespace {

/// `remedy`: how to get that many ranks.
study::RankCheck at_most(std::uint32_t workers, std::function<std::string(std::uint32_t most)> remedy) {
    return [workers, remedy = std::move(remedy)](std::uint32_t most) -> std::string {
        if (workers >= most) return "";
        return fmt::format(
            "a trial may ask for {}, which is more than the {} here (one rank more is the head); let it ask for fewer, "
            "or {}",
            report::counted(most, "rank"), report::counted(workers, "worker"), remedy(most));
    };
}

/// Tasks of this Slurm job; 0: unknown.
std::uint32_t tasks_of_job() {
    if (const std::string tasks = process::environment_variable("SLURM_NTASKS"); !tasks.empty())
        return static_cast<std::uint32_t>(std::strtoul(tasks.c_str(), nullptr, 10));
    const auto job = slurm::allocation(process::environment_variables());
    if (!job || !job->tasks_by_node) return 0;
    return std::accumulate(job->tasks_by_node->begin(), job->tasks_by_node->end(), 0U);
}

constexpr std::string_view looks_like_login = "looks like a login node (Slurm is here, but this is no job)";

/// The line that starts so many workers without asking whether the machine can carry them.
std::string launcher_line(const RunArguments& arguments, std::uint32_t workers) {
    const bool open_mpi = comm::mpi::library() == comm::mpi::Library::open_mpi;
    return fmt::format("`mpirun{} -n {} {}`", open_mpi ? " --oversubscribe" : "", workers + 1,
                       command_of("run", arguments));
}

/// `by_option` when --local accepts so many workers here, else the launcher's line.
std::string start_here(const RunArguments& arguments, std::uint32_t workers, const std::string& by_option) {
    if (workers <= launch::most_workers()) return by_option;
    return fmt::format("use the launcher yourself: {}", launcher_line(arguments, workers));
}

} // namespace

std::string login_node_refusal(const RunArguments& arguments, std::uint32_t workers) {
    return fmt::format(
        "this {}; `{}` makes a job of the study, `{} --local {}` runs it here, with {}, and --dry-run in place "
        "of --local shows what that would be",
        looks_like_login, command_of("submit", arguments), command_of("run", arguments), workers,
        report::counted(workers, "worker"));
}

study::RankCheck local_ranks(const RunArguments& arguments) {
    if (arguments.local)
        return at_most(*arguments.local, [arguments](std::uint32_t most) {
            return start_here(arguments, most, fmt::format("use --local {}", most));
        });
    return [threads = launch::hardware_threads(), arguments](std::uint32_t most) -> std::string {
        if (threads >= most) return "";
        return fmt::format(
            "a trial may ask for {}, but ranktune may use {} here; let it ask for fewer, or {}",
            report::counted(most, "rank"), report::counted(threads, "hardware thread"),
            start_here(arguments, most,
                       fmt::format("say --local {}, which starts {} processes here all the same", most, most + 1)));
    };
}

void refuse_crowd(const RunArguments& arguments, const study::StudySpec& spec) {
    if (!arguments.local) return;
    const std::uint32_t asked = *arguments.local;
    const std::uint32_t group = spec.max_ranks_per_trial();
    const std::uint32_t trials =
        spec.max_concurrent == 0 ? spec.num_trials : std::min(spec.num_trials, spec.max_concurrent);
    const std::uint64_t used = std::uint64_t{trials} * group + spec.output.spares + spec.resources.helpers;
    if (const std::uint32_t most = launch::most_workers(); asked > most) {
        const std::uint64_t fit = std::min<std::uint64_t>(used, most / group * group);
        throw base::UsageError(fmt::format(
            "--local {} would start {} processes on a machine with {} and {} of memory; use {}. To start them all the "
            "same, use the launcher yourself: {}",
            asked, asked + 1, report::counted(launch::hardware_threads(), "hardware thread"),
            base::bytes_text(process::memory_bytes()),
            fit == 0 ? fmt::format("fewer ranks in a trial, {} at most", most) : fmt::format("--local {} at most", fit),
            launcher_line(arguments, asked)));
    }
    constexpr std::uint32_t few = 4; // a few idle workers do no harm
    if (asked > std::max<std::uint64_t>({used, launch::hardware_threads(), few}))
        throw base::UsageError(fmt::format(
            "--local {} starts more workers than the study can use: {} at one time, with {} each; use --local {}",
            asked, report::counted(trials, "trial"), report::counted(group, "rank"), used));
}

study::RankCheck launched_ranks(std::uint32_t workers) {
    if (workers == 0) return {}; // refuse_lonely_head has the better message
    return at_most(workers, [](std::uint32_t most) { return fmt::format("start at least {} ranks", most + 1); });
}

void refuse_lonely_head(std::uint32_t workers) {
    if (workers == 0)
        throw base::UsageError(
            "a study needs at least 2 ranks, and the launcher has started 1: rank 0 is the head, the others train; "
            "start more, as in `mpirun -n 3`");
}

void refuse_local_under_launcher() {
    throw base::UsageError("--local starts mpirun itself; leave it out under a launcher");
}

RanksHere::RanksHere(const RunArguments& arguments) : arguments_(arguments), workers_(arguments.local) {
    const launch::Launch launch = launch::how_launched();
    if (launch == launch::Launch::by_launcher) {
        if (arguments.local) refuse_local_under_launcher();
        const auto tasks = comm::mpi::launched_tasks(process::environment_variables());
        of_ = tasks ? Of::launcher : Of::silent_launcher;
        if (tasks) workers_ = *tasks - 1;
        if (workers_) refuse_lonely_head(*workers_);
    } else if (arguments.local) {
        of_ = Of::option;
    } else if (launch == launch::Launch::allocation) {
        const std::uint32_t tasks = tasks_of_job();
        of_ = tasks > 1 ? Of::job : Of::job_of_one_task;
        if (tasks > 1) workers_ = tasks - 1;
    } else if (launch::is_login_node()) {
        of_ = Of::login_node;
    }
}

study::RankCheck RanksHere::check() const {
    if (of_this_machine()) return local_ranks(arguments_);
    return workers_ ? launched_ranks(*workers_) : study::RankCheck();
}

std::uint32_t RanksHere::workers(const study::StudySpec& spec) const {
    return workers_.value_or(launch::default_workers(spec));
}

std::string RanksHere::why(std::uint32_t workers) const {
    const std::string as_local = fmt::format("what --local {} would start on this machine", workers);
    switch (of_) {
        case Of::option:
            if (workers <= launch::hardware_threads()) break;
            return fmt::format("{} processes take turns on {}", workers + 1,
                               report::counted(launch::hardware_threads(), "hardware thread"));
        case Of::machine:
            break;
        case Of::launcher:
            return "one for each process that the launcher has started";
        case Of::silent_launcher:
            return "assumed, as the launcher does not say how many processes it has started: " + as_local;
        case Of::job:
            return fmt::format("one for each of the {} tasks of this job, which `srun --mpi=pmix` or mpirun starts",
                               workers + 1);
        case Of::job_of_one_task:
            return "assumed, as this job has one task, and a study needs two ranks: " + as_local;
        case Of::login_node:
            return fmt::format(
                "assumed: {}. This {}, where `ranktune run` starts nothing unless it is given --local N; "
                "`{}` makes a job of the study, and says the layout of that",
                as_local, looks_like_login, command_of("submit", arguments_));
    }
    return "";
}

} // namespace ranktune::cli
