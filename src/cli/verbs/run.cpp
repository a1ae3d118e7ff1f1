// SPDX-License-Identifier: Apache-2.0
// run: the only verb that starts MPI.

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include <unistd.h>

#include "cli/checks/ranks_here.hpp"
#include "cli/checks/remarks.hpp"
#include "cli/study_input.hpp"
#include "cli/terminal/live.hpp"
#include "cli/terminal/message.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/verbs/predict.hpp"
#include "cli/verbs/verbs.hpp"
#include "cli/verbs/view_verbs.hpp"
#include "cli/version.hpp"
#include "comm/layout/layout.hpp"
#include "comm/mpi/environment.hpp"
#include "comm/mpi/launch.hpp"
#include "device/module.hpp"
#include "launch/how_launched.hpp"
#include "launch/job_chain.hpp"
#include "launch/mpirun.hpp"
#include "launch/run_study.hpp"
#include "process/command_output.hpp"
#include "process/environment.hpp"
#include "process/signal_note.hpp"
#include "process/signals.hpp"
#include "process/start_watch.hpp"
#include "ranktune/study/command_template.hpp"
#include "ranktune/trainables/algorithms.hpp"
#include "report/explain/endings.hpp"
#include "report/explain/next_steps.hpp"
#include "report/screens/screens.hpp"
#include "report/screens/text.hpp"
#include "simulate/faults.hpp"
#include "storage/hdf5/thread.hpp"
#include "storage/journal/journal.hpp"
#include "study/printed_values.hpp"
#include "studydir/earlier/earlier_results.hpp"
#include "studydir/finished_study.hpp"
#include "studydir/last_end.hpp"
#include "studydir/lone_reports.hpp"
#include "studydir/open_study.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::cli {
namespace {

namespace fs = std::filesystem;

studydir::OpenRequest open_request(const RunArguments& arguments, const std::string& directory) {
    using Errored = studydir::OpenRequest::Errored;
    return {.fresh = arguments.fresh,
            .errored = arguments.restart_errored  ? Errored::restart
                       : arguments.resume_errored ? Errored::resume
                                                  : Errored::leave,
            .lost = [directory](const tuner::Tuner& tuner) { return lost_predictions(tuner, directory); }};
}

void remark(const RunArguments& arguments, const studydir::OpenedStudy& opened) {
    if (arguments.progress == Progress::none) return;
    for (const auto& sentence : without_effect(arguments, opened))
        std::cerr << report::escaped(sentence) << "\n" << std::flush;
}

/// For ends without an end screen: prints how the study ended to standard error, unless it ended well.
void tell_end(const std::string& sentence, study::StudyOutcome outcome) {
    if (outcome == study::StudyOutcome::ok || sentence.empty()) return;
    std::cerr << error_message(sentence, static_cast<int>(outcome)) << std::flush;
}

/// Reads the study without what a finished study does not need: a limit on ranks, the program of its command. When it
/// has a mistake, reads it again with these, to report all mistakes together.
StudyInput read_for_here(const RunArguments& arguments) {
    const study::RankCheck ranks = local_ranks(arguments);
    try {
        return read_study(arguments, arguments.local ? ranks : study::RankCheck());
    } catch (const study::StudyFileError&) {
        return read_study(arguments, ranks, {.looks = true, .advice = {}});
    }
}

void tell_tables(const std::string& wrong, study::StudyOutcome outcome) {
    if (!wrong.empty()) std::cerr << error_message(wrong, static_cast<int>(outcome)) << std::flush;
}

/// The command line of this process, to be typed again: `ranktune run digits.toml study.num_trials=6`.
std::string command_line(const Invocation& invocation) {
    const std::string program = std::filesystem::path(invocation.program).filename().string();
    return invocation.arguments.empty() ? program : program + " " + study::shell_text(invocation.arguments);
}

/// The arguments for the ranks, without --local, which this process has handled.
std::vector<std::string> without_local(const std::vector<std::string>& arguments) {
    std::vector<std::string> kept;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        if (arguments[i] == "--local")
            ++i;
        else if (!arguments[i].starts_with("--local="))
            kept.push_back(arguments[i]);
    }
    return kept;
}

int run_ranks_here(const Invocation& invocation, std::uint32_t workers, const std::string& directory) {
    const auto say = [](const std::string& text) { std::cerr << text << std::flush; };
    const launch::MpirunEnd end = launch::run_under_mpirun(
        {invocation.program, without_local(invocation.arguments), workers, directory, terminal_variables()}, say);
    if (!end.words.empty()) std::cerr << error_message(end.words, end.code_in_words);
    return end.code;
}

/// The faults of a run; throws what is wrong with their file.
simulate::FaultModel faults_of_run(const RunArguments& arguments) {
    if (arguments.faults.empty()) return {};
    const auto faults =
        simulate::parse_faults(text_of(arguments.faults, "cannot read the file of failures"), arguments.faults);
    const simulate::FaultModel known{.rank_mean_s = faults.rank_mean_s, .job_mean_s = faults.job_mean_s};
    if (faults != known || faults == simulate::FaultModel{})
        throw base::UsageError(
            arguments.faults + ": `run --faults` kills ranks: ranks.mean_time_to_failure (of each " +
            "worker) and job.mean_time_to_failure (of the head), one at least; the other keys are for `simulate`");
    return faults;
}

/// When this rank kills itself on purpose; nothing: never.
std::optional<base::Duration> time_to_failure(const simulate::FaultModel& faults, bool is_head) {
    const double mean = is_head ? faults.job_mean_s : faults.rank_mean_s;
    if (mean <= 0.0) return std::nullopt;
    std::random_device device;
    std::mt19937_64 bits(device());
    const double seconds = std::exponential_distribution<double>(1.0 / mean)(bits);
    return std::chrono::duration_cast<base::Duration>(std::chrono::duration<double>(seconds));
}

/// For a study of tasks: what became of each, as a table in its directory. Returns the table's path; empty: none.
std::string write_task_results(const study::StudySpec& spec, const std::string& directory) {
    if (!study::has_tasks(spec)) return {};
    const std::string file = directory + "/results.csv";
    try {
        static_cast<void>(
            export_study({.directory = directory, .format = ExportFormat::csv, .table = {}, .output = file}));
        return file;
    } catch (const std::exception& error) {
        std::cerr << "cannot write " << file << ": " << error.what() << "; ranktune export " << directory
                  << " --format csv makes the same table\n"
                  << std::flush;
        return {};
    }
}

/// Has the table of tasks written before [after] begins, which may read it.
class ResultsBeforeAfter final : public head::Observer {
  public:
    /// References must outlive it. `directory`: of the study; read later.
    ResultsBeforeAfter(head::Observer& next, const std::string& directory)
        : head::Observer(&next), directory_(directory) {}
    void on_records(const tuner::Tuner& tuner, const std::vector<study::Record>& records,
                    const head::HeadFigures& figures) override {
        head::Observer::on_records(tuner, records, figures);
        if (head::begins_after(records)) static_cast<void>(write_task_results(tuner.spec(), directory_));
    }

  private:
    const std::string& directory_;
};

/// For a study of predictions: what there is of them, as a line of the end screen; else empty.
std::string predictions_text(const tuner::Tuner& tuner) {
    const std::string words = predicted_words(tuner);
    return words.empty() ? words : report::prose("output", words, detect_terminal().style);
}

int start_locally(const RunArguments& arguments, const Invocation& invocation) {
    const StudyInput input = read_for_here(arguments);
    const std::string directory = directory_for(arguments, input);
    refuse_outside(input.spec, directory);
    refuse_directory(directory, arguments.study, input, arguments.fresh);
    // Open the study first: a finished one needs no ranks.
    const auto opened =
        studydir::open_study(storage::posix_file_system(), directory, input.spec, open_request(arguments, directory));
    if (!opened.is_new && !arguments.restart_errored) refuse_lost_predictions(*opened.tuner, directory);
    if (opened.finished) {
        static_cast<void>(write_task_results(opened.tuner->spec(), directory));
        remark(arguments, opened);
        const report::FilesInfo files{0, 0, directory, command_of("run", arguments)};
        const auto outcome = opened.tuner->state().outcome;
        if (arguments.progress != Progress::none)
            std::cout << report::finished_screen(*opened.tuner, files, detect_terminal().style)
                      << predictions_text(*opened.tuner);
        else
            tell_end(report::end_sentence(*opened.tuner, files), outcome);
        const auto say = [](const std::string& note) { std::cerr << note << "\n" << std::flush; };
        const std::string wrong = studydir::tend_if_free(storage::posix_file_system(), absolute_directory(directory),
                                                         opened, storage::real_wait(say));
        if (wrong.empty()) return static_cast<int>(outcome);
        std::cout << std::flush;
        tell_tables(wrong, studydir::code_without_tables(outcome));
        return static_cast<int>(studydir::code_without_tables(outcome));
    }
    // Refused with its place in the file. A study that has begun has run its command: trials that cannot start it now
    // are not charged (failure.in_a_row).
    if (opened.is_new || (!arguments.local && input.spec.max_ranks_per_trial() > launch::hardware_threads()))
        static_cast<void>(read_study(arguments, local_ranks(arguments), {.looks = opened.is_new, .advice = {}}));
    refuse_crowd(arguments, input.spec);
    static_cast<void>(faults_of_run(arguments));
    return run_ranks_here(invocation, arguments.local.value_or(launch::default_workers(input.spec)), directory);
}

/// Shows the number of workers that the dry run shows.
[[noreturn]] void refuse_login_node(const RunArguments& arguments) {
    const StudyInput input = read_study(arguments);
    throw base::UsageError(login_node_refusal(arguments, RanksHere(arguments).workers(input.spec)));
}

/// Counts the files and bytes below the study directory.
report::FilesInfo files_of(const std::string& directory, const std::string& absolute, const RunArguments& arguments) {
    report::FilesInfo info{0, 0, directory, command_of("run", arguments)};
    info.verbose = arguments.verbose;
    std::error_code error;
    for (fs::recursive_directory_iterator entry(absolute, error), end; !error && entry != end; entry.increment(error)) {
        if (!entry->is_regular_file(error)) continue;
        ++info.files;
        info.bytes += entry->file_size(error);
    }
    return info;
}

/// How the last start ended, in words. mpirun ends the other ranks by SIGTERM when one has died, and the file `outcome`
/// knows only the signal. After a SIGTERM from outside, the journal has the end of the study.
std::string how_it_ended(const studydir::OpenedStudy& opened) {
    if (opened.ended_by != study::Asker::sigterm || opened.tuner->state().ended) return opened.ended;
    const auto told = studydir::told_end();
    if (!told) return opened.ended + ", which a launcher sends when a rank was killed or lost";
    return *told == studydir::ToldEnd::outside ? opened.ended
                                               : opened.ended + " from its launcher, after a rank was killed or lost";
}

/// The job that continues the study by itself: this job when it is requeued, or the next one of its chain. When a
/// person has stopped the study, the job script cancels the chain, but not what was submitted after the stop. Empty:
/// none.
std::string next_job(const head::RunEnd& end, const std::string& directory) {
    std::string own = process::slurm_job();
    if (own.empty() || end.outcome != study::StudyOutcome::resumable) return {};
    if (end.requeued) return own;
    try {
        if (is_person(end.by) || end.called_off) {
            const auto later = launch::jobs_after_stop(directory);
            return later.empty() ? std::string() : later.front();
        }
        const auto jobs = launch::noted_jobs(directory);
        const auto at = std::ranges::find(jobs, own);
        return at == jobs.end() || at + 1 == jobs.end() ? std::string() : *(at + 1);
    } catch (const base::IoError&) { // only a hint of the end screen needs it
        return {};
    }
}

/// What the death of a rank will cost.
std::string deaths_text(const std::string& mpi) {
    using comm::mpi::survival_variable;
    const std::string ends = "a rank that dies ends this start; the same command goes on";
    if (comm::mpi::outlives_ranks(process::environment_variables(), mpi))
        return "a worker that dies ends nothing: its trial goes on elsewhere";
    if (survival_variable(mpi) != comm::mpi::ulfm_variable) return ends;
    return ends + " (under mpirun --with-ft ulfm, only its trial would)";
}

report::StartInfo start_info(const std::string& directory, const std::string& hosts, int size) {
    report::StartInfo info;
    info.version = std::string("ranktune ") + version();
    info.mpi = comm::mpi::library_version();
    info.hdf5 = "HDF5 " + storage::hdf5_version();
    if (const std::string cuda = device::built_with(); !cuda.empty()) info.cuda = cuda;
    info.launch_line = process::environment_variable(launch::launch_line_variable);
    info.workers = static_cast<std::uint32_t>(size - 1);
    info.hosts = hosts;
    info.deaths = deaths_text(info.mpi);
    info.directory = directory;
    return info;
}

/// Whether a worker runs on the head's node, so that programs of trials must be there.
bool trains_here(const comm::Layout& layout) {
    const auto& nodes = layout.nodes;
    return nodes.empty() || std::find(nodes.begin() + 1, nodes.end(), nodes.front()) != nodes.end();
}

/// The output of rank 0, from the start screen to the end screen.
class RunScreens {
  public:
    RunScreens(const RunArguments& arguments, const comm::mpi::Environment& mpi)
        : arguments_(arguments), mpi_(mpi), view_(std::cout, terminal_, arguments.progress) {}

    /// Fills in the options. Throws when the study cannot be run.
    void prepare(head::RunOptions& options) {
        const auto workers = static_cast<std::uint32_t>(mpi_.size() - 1);
        StudyInput input = read_study(arguments_, launched_ranks(workers));
        refuse_lonely_head(workers);
        directory_ = directory_for(arguments_, input);
        refuse_outside(input.spec, directory_);
        refuse_directory(directory_, arguments_.study, input, arguments_.fresh);
        view_.set_directory(directory_);
        options.layout.share_gpus(input.spec.resources.ranks_per_gpu());
        if (const std::string refusal = comm::gpu_refusal(input.spec, options.layout); !refusal.empty())
            throw base::UsageError(refusal);
        layout_ = comm::layout_words(options.layout, std::string(terminal_.style.dot()),
                                     input.spec.resources.gpus != study::GpuUse::none);
        const bool is_new = arguments_.fresh || !storage::has_journal(storage::posix_file_system(), directory_);
        if (is_new && trains_here(options.layout))
            input = read_study(arguments_, launched_ranks(workers), {.looks = true, .advice = {}});
        if (is_new) // a study that has begun has its earlier results in the journal
            options.earlier = studydir::read_earlier_results(storage::posix_file_system(), input.spec,
                                                             trainables::known_algorithms());
        options.spec = std::move(input.spec);
        if (input.directory != directory_ || arguments_.fresh) options.study_text = std::move(input.text);
        absolute_ = options.directory = absolute_directory(directory_);
        options.open = open_request(arguments_, directory_);
        options.supervised = !process::environment_variable(launch::supervised_variable).empty();
        options.launch = process::environment_variable(studydir::launch_variable);
        options.on_open = [this, &options](const auto& opened, const std::string& moved_to) {
            opening(opened, options, moved_to);
        };
        options.on_note = [](const std::string& note) { std::cerr << report::escaped(note) << "\n" << std::flush; };
    }

    head::Observer& view() { return results_; }
    void stop(const head::EndAsked& what, const tuner::Tuner& tuner, const head::HeadFigures& figures);
    void end(const head::RunEnd& end);

  private:
    void opening(const studydir::OpenedStudy& opened, const head::RunOptions& options,
                 const std::string& moved_to) const {
        const study::StudySpec& spec = options.spec;
        if (!opened.is_new && !arguments_.restart_errored) refuse_lost_predictions(*opened.tuner, directory_);
        const std::string renamed = opened.is_new ? set_output_aside(spec) : std::string();
        if (arguments_.made) arguments_.made->begin();
        if (opened.finished) static_cast<void>(write_task_results(opened.tuner->spec(), directory_));
        if (arguments_.progress == Progress::none) return;
        const auto& style = terminal_.style;
        remark(arguments_, opened);
        if (!moved_to.empty())
            std::cout << report::paragraph("the study that was in " + report::unbroken(directory_) + " is now in " +
                                               report::unbroken(fs::path(moved_to).filename().string()),
                                           style);
        if (!renamed.empty()) std::cout << report::paragraph(renamed, style);
        if (opened.finished)
            std::cout << report::finished_screen(*opened.tuner, {0, 0, directory_, command_of("run", arguments_)},
                                                 style)
                      << std::flush;
        else if (opened.is_new)
            std::cout << report::start_screen(spec, start_info(directory_, layout_, mpi_.size()), style)
                      << (options.earlier ? earlier_text(*options.earlier, style) : std::string())
                      << room_warning(spec, style) << command_warning_lines(spec, style) << "\n"
                      << std::flush;
        else
            std::cout << report::resume_screen(opened, how_it_ended(opened),
                                               start_info(directory_, layout_, mpi_.size()), style)
                      << room_warning(spec, style) << command_warning_lines(spec, style) << "\n"
                      << std::flush;
    }

    const RunArguments& arguments_;
    const comm::mpi::Environment& mpi_;
    const Terminal terminal_ = detect_terminal();
    LiveView view_;
    ResultsBeforeAfter results_{view_, directory_};
    std::string directory_;  ///< as the user would type it
    std::string absolute_;   ///< its absolute path: --fresh may have renamed the working directory
    std::string layout_;     ///< hosts and their GPUs, in words
    bool cut_short_ = false; ///< the screen for an end at once has been shown
};

void RunScreens::stop(const head::EndAsked& what, const tuner::Tuner& tuner, const head::HeadFigures& figures) {
    if (arguments_.progress == Progress::none) return;
    const bool by_keyboard = what.by == study::Asker::keyboard;
    if (!what.insisted && !by_keyboard) return;
    view_.finish();
    if (!what.insisted) {
        std::cout << report::paragraph("stopping: " + report::how_stops_text(tuner.spec()) +
                                           ", and the study ends; Ctrl-C again ends it at once",
                                       terminal_.style)
                  << std::flush;
        return;
    }
    if (std::exchange(cut_short_, true)) return;
    const std::string why = by_keyboard ? "a second Ctrl-C" : what.why + ", again";
    std::cout << report::cut_short_screen(tuner, live_figures(tuner, figures),
                                          files_of(directory_, absolute_, arguments_), why, terminal_.style)
              << std::flush;
}

void RunScreens::end(const head::RunEnd& end) {
    view_.finish();
    const std::string results = end.tuner != nullptr ? write_task_results(end.tuner->spec(), directory_) : "";
    using Whose = head::HeadEnd::Whose;
    const bool lacks_tables = end.whose == Whose::study_without_tables;
    const bool regular = lacks_tables || end.whose == Whose::study;
    if (lacks_tables && arguments_.progress == Progress::none) return tell_tables(end.tables, end.outcome);
    if (end.tuner == nullptr || arguments_.progress == Progress::none) { // the study did not start, or --quiet
        const bool told = regular && end.tuner != nullptr;
        tell_end(
            told ? report::end_sentence(*end.tuner, {0, 0, directory_, command_of("run", arguments_)}) : end.message,
            end.outcome);
        return;
    }
    if (!regular && cut_short_) return;
    if (!regular) { // the end screen would say that it is finished
        std::cerr << error_message(
                         "the study was cut short: " + end.message + "; what there is: ranktune status " + directory_,
                         static_cast<int>(end.outcome))
                  << std::flush;
        return;
    }
    auto files = files_of(directory_, absolute_, arguments_);
    files.next_job = next_job(end, absolute_);
    files.code = end.outcome;
    const std::uint32_t start = end.tuner->state().incarnation.value();
    files.log = studydir::StudyDirectory{directory_}.head_log(studydir::start_name(process::slurm_job(), start));
    std::cout << report::end_screen(*end.tuner, live_figures(*end.tuner, end.figures), files, terminal_.style)
              << std::flush;
    if (!results.empty()) std::cout << report::prose("results", results, terminal_.style) << std::flush;
    std::cout << predictions_text(*end.tuner) << std::flush;
    tell_tables(end.tables, end.outcome);
    std::cout << report::lone_reports_text(studydir::lone_reports(absolute_), terminal_.style) << std::flush;
    if (!end.requeue.empty()) std::cout << report::prose("job", end.requeue, terminal_.style) << std::flush;
}

/// The output of `srun --mpi=list`; empty when there is no srun.
std::string srun_list() {
    const auto list = process::run_command({"srun", "--mpi=list"}, std::chrono::seconds(10));
    return list.exit ? list.text + list.error : std::string(); // some versions answer on standard error
}

/// The first task prints the message; the others exit silently.
int refuse_launch(const comm::mpi::BrokenLaunch& broken) {
    if (broken.first) std::cerr << "ranktune: " << report::escaped(broken.message) << '\n' << std::flush;
    return static_cast<int>(study::StudyOutcome::usage);
}

/// Called before MPI_Init: the exit code when the launch cannot work.
std::optional<int> refused_launch(const base::Variables& variables, comm::mpi::LaunchFacts facts) {
    if (!process::environment_variable("PMI_FD").empty() || !process::environment_variable("PMI_RANK").empty())
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
    const auto variables = process::environment_variables();
    comm::mpi::LaunchFacts facts{
        comm::mpi::library(), comm::mpi::library_version(), invocation.program, command_line(invocation), {}, true};
    if (const auto code = refused_launch(variables, facts)) return *code;
    const int cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
    for (const auto& [name, value] : comm::mpi::settings_before_init(variables, facts.library, cores)) {
        setenv(name.c_str(), value.c_str(), 0);
    }
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0); // as the driver and Slurm count; MPI may initialise CUDA
    std::chrono::seconds patience{};
    simulate::FaultModel faults;
    try {
        patience = process::StartWatch::limit_from_environment();
        faults = faults_of_run(arguments);
    } catch (const base::Error&) {
        if (!launch::speaks()) return static_cast<int>(study::StudyOutcome::usage);
        throw;
    }
    process::block_stop_signals();
    auto watch = std::make_unique<process::StartWatch>(patience, "a rank on " + process::host_name());
    comm::mpi::Environment mpi;
    if (const auto broken = comm::mpi::examine_world(variables, facts, mpi.size())) return refuse_launch(*broken);
    head::RunOptions options;
    options.version = version();
    options.build_type = build_type();
    options.layout = comm::survey(mpi);
    comm::Neighbours neighbours(options.layout, base::Rank(static_cast<std::uint32_t>(mpi.rank())));
    options.neighbours = &neighbours;
    watch.reset(); // all ranks have answered
    options.signal_meanings = process::SignalMeanings::from(variables);
    RunScreens screens(arguments, mpi);
    if (mpi.rank() == 0) {
        try {
            screens.prepare(options);
        } catch (const base::UsageError& error) {
            std::cerr << error_message(error.what(), 2) << std::flush;
            options.refused = study::StudyOutcome::usage;
        } catch (const base::IoError& error) {
            options.refused = static_cast<study::StudyOutcome>(tell_trouble(error));
        } catch (const std::exception& error) { // such as an unreadable journal: the other ranks wait for the refusal
            std::cerr << error_message(error.what(), 1) << std::flush;
            options.refused = study::StudyOutcome::runtime_error;
        }
        options.observer = &screens.view();
        options.on_stop = [&screens](const auto& what, const auto& tuner, const auto& figures) {
            screens.stop(what, tuner, figures);
        };
        options.on_end = [&screens](const head::RunEnd& end) { screens.end(end); };
    }
    options.dies_after = time_to_failure(faults, mpi.rank() == 0);
    comm::share_as_head(options.layout, mpi, options.spec.resources.ranks_per_gpu());
    return launch::run_study(mpi, options);
}

} // namespace

int run(const RunArguments& arguments, const Invocation& invocation) {
    if (arguments.dry_run) {
        if (!launch::speaks()) return 0;
        return dry_run(arguments);
    }
    const auto start_here = [&] { return start_locally(arguments, invocation); };
    switch (launch::how_launched()) {
        case launch::Launch::by_launcher:
            break;
        case launch::Launch::allocation:
            if (arguments.local) return or_trouble(start_here);
            throw base::UsageError(
                "this is a Slurm job, but ranktune was not started by a launcher; try `srun --mpi=pmix " +
                command_line(invocation) + "`, `mpirun " + command_line(invocation) +
                "`, or --local N for this node alone");
        case launch::Launch::by_hand:
            if (arguments.local || !launch::is_login_node()) return or_trouble(start_here);
            refuse_login_node(arguments);
    }
    if (arguments.local) {
        if (!launch::speaks()) return static_cast<int>(study::StudyOutcome::usage);
        refuse_local_under_launcher();
    }
    const auto leave_code = [](int code) {
        if (launch::speaks()) process::leave_exit_code(code);
        return code;
    };
    try {
        return leave_code(run_as_rank(arguments, invocation));
    } catch (const base::UsageError&) {
        leave_code(static_cast<int>(study::StudyOutcome::usage));
        throw;
    }
}

} // namespace ranktune::cli
