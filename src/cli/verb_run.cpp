// SPDX-License-Identifier: Apache-2.0
// run: the only verb that starts MPI.

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>

#include <unistd.h>

#include <fmt/format.h>

#include "cli/launch_self.hpp"
#include "cli/live.hpp"
#include "cli/message.hpp"
#include "cli/study_input.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"
#include "cli/version.hpp"
#include "comm/mpi/environment.hpp"
#include "comm/mpi/launch.hpp"
#include "drivers/layout.hpp"
#include "drivers/run.hpp"
#include "drivers/signals.hpp"
#include "report/screens.hpp"
#include "storage/hdf5_thread.hpp"
#include "storage/journal.hpp"

namespace ranktune::cli {
namespace {

namespace fs = std::filesystem;

std::string directory_for(const RunArguments& arguments, const study::StudySpec& spec) {
    return arguments.directory.empty() ? spec.name : arguments.directory;
}

void refuse_existing(const std::string& directory) {
    if (!storage::has_journal(storage::posix_file_system(), directory)) return;
    throw base::UsageError(
        fmt::format("'{}' already holds a study; nothing was started. Look at it with `ranktune status {}`, or give "
                    "another directory with -o (going on with a study comes with the next version)",
                    directory, directory));
}

void refuse_too_few_ranks(const study::StudySpec& spec, std::uint32_t workers, const std::string& remedy) {
    const std::uint32_t most = spec.max_ranks_per_trial();
    if (workers >= most) return;
    throw base::UsageError(
        fmt::format("a trial may ask for {} ranks, but there are only {} workers (one rank more is the head); {}", most,
                    workers, remedy));
}

int start_locally(const RunArguments& arguments, const Invocation& invocation) {
    const StudyInput input = read_study(arguments.study, arguments.overrides);
    const std::string directory = directory_for(arguments, input.spec);
    refuse_existing(directory);
    const std::uint32_t most = input.spec.max_ranks_per_trial();
    const std::uint32_t workers = arguments.local.value_or(default_workers(most, input.spec.resources.cpus_per_rank));
    refuse_too_few_ranks(input.spec, workers, fmt::format("use --local {}", most));
    return run_under_mpirun(invocation, workers, directory);
}

/// Files and bytes below the study directory.
report::FilesInfo files_of(const std::string& directory, const std::string& study_file) {
    report::FilesInfo info{0, 0, directory, study_file};
    std::error_code error;
    for (fs::recursive_directory_iterator entry(directory, error), end; !error && entry != end;
         entry.increment(error)) {
        if (!entry->is_regular_file(error)) continue;
        ++info.files;
        info.bytes += entry->file_size(error);
    }
    return info;
}

/// Rank 0 prepares the options, or says what is wrong.
void prepare_head(const RunArguments& arguments, const comm::mpi::Environment& mpi, drivers::RunOptions& options) {
    StudyInput input = read_study(arguments.study, arguments.overrides);
    const std::string directory = directory_for(arguments, input.spec);
    refuse_existing(directory);
    refuse_too_few_ranks(input.spec, static_cast<std::uint32_t>(mpi.size() - 1),
                         fmt::format("start at least {} ranks", input.spec.max_ranks_per_trial() + 1));
    if (const std::string refusal = drivers::gpu_refusal(input.spec, options.layout); !refusal.empty())
        throw base::UsageError(refusal);
    options.spec = std::move(input.spec);
    options.study_text = std::move(input.text);
    options.directory = fs::absolute(directory).lexically_normal().string();
}

comm::mpi::Variables all_variables() {
    comm::mpi::Variables variables;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string text = *entry;
        if (const auto at = text.find('='); at != std::string::npos)
            variables.emplace(text.substr(0, at), text.substr(at + 1));
    }
    return variables;
}

/// What `srun --mpi=list` prints; empty when there is no srun.
std::string srun_list() {
    std::string text;
    FILE* list = popen("srun --mpi=list 2>&1 </dev/null", "re");
    if (list == nullptr) return text;
    std::array<char, 512> part{};
    while (std::fgets(part.data(), static_cast<int>(part.size()), list) != nullptr) text += part.data();
    pclose(list);
    return text;
}

/// One message from the first task; the others leave in silence.
int refuse_launch(const comm::mpi::BrokenLaunch& broken) {
    if (broken.first) std::cerr << "ranktune: " << broken.message << '\n' << std::flush;
    return static_cast<int>(study::StudyOutcome::usage);
}

/// Before MPI_Init: the exit code of a launch that cannot work.
std::optional<int> refused_launch(const comm::mpi::Variables& variables, comm::mpi::LaunchFacts facts) {
    if (!environment("PMI_FD").empty() || !environment("PMI_RANK").empty())
        facts.speaks_pmi = comm::mpi::may_speak_pmi();
    auto broken = comm::mpi::examine_launch(variables, facts);
    if (!broken) return std::nullopt;
    if (broken->first && broken->by_srun) {
        facts.offered = comm::mpi::offered_interfaces(srun_list());
        broken = comm::mpi::examine_launch(variables, facts);
    }
    return refuse_launch(*broken);
}

int run_as_rank(const RunArguments& arguments, const Invocation& invocation) {
    const auto variables = all_variables();
    comm::mpi::LaunchFacts facts{
        comm::mpi::library(), comm::mpi::library_version(), invocation.program, command_line(invocation), {}, true};
    if (const auto code = refused_launch(variables, facts)) return *code;
    const int cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
    for (const auto& [name, value] : comm::mpi::settings_before_init(variables, facts.library, cores)) {
        setenv(name.c_str(), value.c_str(), 0);
    }
    drivers::block_stop_signals();
    comm::mpi::Environment mpi;
    if (const auto broken = comm::mpi::examine_world(variables, facts, mpi.size())) return refuse_launch(*broken);
    drivers::RunOptions options;
    options.version = version();
    options.layout = drivers::survey(mpi);
    const Terminal terminal = detect_terminal();
    LiveView view(std::cout, terminal, arguments.progress);
    if (mpi.rank() == 0) {
        try {
            prepare_head(arguments, mpi, options);
            view.set_directory(directory_for(arguments, options.spec));
            if (arguments.progress != Progress::none) {
                report::StartInfo info;
                info.version = std::string("ranktune ") + version();
                info.mpi = comm::mpi::library_version();
                info.hdf5 = "HDF5 " + storage::hdf5_version();
                info.launch_line = environment(launch_line_variable);
                info.workers = static_cast<std::uint32_t>(mpi.size() - 1);
                info.hosts = drivers::layout_words(options.layout, std::string(terminal.style.dot()));
                info.directory = directory_for(arguments, options.spec);
                std::cout << report::start_screen(options.spec, info, terminal.style) << "\n" << std::flush;
            }
        } catch (const base::UsageError& error) {
            std::cerr << error_message(error.what(), 2) << std::flush;
            options.refused = study::StudyOutcome::usage;
        }
        options.observer = &view;
        options.on_end = [&](const drivers::RunEnd& end) {
            view.finish();
            // The end screen says why; without one (nothing began, or --quiet) an error still needs its sentence.
            if (end.tuner == nullptr || arguments.progress == Progress::none) {
                const bool failed = end.outcome != study::StudyOutcome::ok && !end.message.empty();
                if (failed) std::cerr << error_message(end.message, static_cast<int>(end.outcome)) << std::flush;
                return;
            }
            if (!end.tuner->state().ended) { // the end screen would call it finished
                std::cerr << error_message("the study was cut short: " + end.message +
                                               "; what there is: ranktune status " +
                                               directory_for(arguments, end.tuner->spec()),
                                           static_cast<int>(end.outcome))
                          << std::flush;
                return;
            }
            const auto files = files_of(directory_for(arguments, end.tuner->spec()), arguments.study);
            std::cout << report::end_screen(*end.tuner, live_figures(*end.tuner, end.figures), files, terminal.style)
                      << std::flush;
        };
    }
    return drivers::run_study(mpi, options);
}

} // namespace

int run(const RunArguments& arguments, const Invocation& invocation) {
    if (arguments.dry_run) return dry_run(arguments);
    switch (how_launched()) {
        case Launch::by_launcher:
            break;
        case Launch::allocation:
            if (arguments.local) return start_locally(arguments, invocation);
            throw base::UsageError(
                "this is a Slurm job, but ranktune was not started by a launcher; try `srun --mpi=pmix " +
                command_line(invocation) + "`, `mpirun " + command_line(invocation) +
                "`, or --local N for this node alone");
        case Launch::login_node:
            if (arguments.local) return start_locally(arguments, invocation);
            throw base::UsageError(
                "this looks like a login node (Slurm is here, but this is no job); submit a job script with `srun "
                "--mpi=pmix " +
                command_line(invocation) + "` in it, or say --local N to run here with N workers");
        case Launch::plain:
            return start_locally(arguments, invocation);
    }
    if (arguments.local) throw base::UsageError("--local starts mpirun itself; leave it out under a launcher");
    return run_as_rank(arguments, invocation);
}

} // namespace ranktune::cli
