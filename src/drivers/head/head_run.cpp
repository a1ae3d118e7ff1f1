// SPDX-License-Identifier: Apache-2.0
#include "drivers/head/head_run.hpp"

#include <exception>
#include <memory>
#include <utility>

#include "drivers/environment_facts.hpp"
#include "drivers/head/head_machine.hpp"
#include "drivers/head/head_observer.hpp"
#include "drivers/head/head_services.hpp"
#include "drivers/head/publisher.hpp"
#include "drivers/head/results.hpp"
#include "drivers/log_file.hpp"
#include "drivers/service.hpp"
#include "drivers/study_directory.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/study/parse.hpp"
#include "storage/file_system.hpp"
#include "storage/hdf5_thread.hpp"
#include "storage/journal.hpp"

namespace ranktune::drivers {
namespace {

constexpr std::uint32_t first_incarnation = 1;

void refuse_what_cannot_be(const comm::Transport& transport, const RunOptions& options, storage::FileSystem& files) {
    const std::uint32_t workers = transport.size() - 1;
    if (workers == 0) throw base::UsageError("a study needs at least 2 ranks: rank 0 is the head, the others train");
    if (const auto wanted = options.spec.max_ranks_per_trial(); wanted > workers)
        throw base::UsageError("resources.ranks: a trial may ask for " + std::to_string(wanted) +
                               " ranks, but this job has " + std::to_string(workers) + " workers");
    if (storage::has_journal(files, options.directory))
        throw base::UsageError("'" + options.directory +
                               "' holds the journal of an earlier start, and this version cannot resume one: give "
                               "another directory with -o, or move this one away");
}

/// One life of the head. Its parts in the order in which they need each other; destroyed in the opposite order.
class HeadRun {
  public:
    HeadRun(comm::Transport& transport, const RunOptions& options, const std::string& mpi);

    HeadRunEnd run(SignalReader* signals);

  private:
    void create_study(const std::string& resolved);
    void leave_files(const HeadEnd& end, const HeadFigures& figures);
    void write_outcome(study::StudyOutcome outcome, const std::string& reason);
    [[nodiscard]] HeadOptions head_options(const std::string& resolved) const;
    [[nodiscard]] storage::JournalOptions journal_options();
    [[nodiscard]] study::Record snapshot() const;

    comm::Transport& transport_;
    const RunOptions& options_;
    storage::FileSystem& files_ = storage::posix_file_system();
    StudyDirectory directory_;
    std::string uuid_ = make_uuid();
    std::string start_ = start_name(slurm_job(), first_incarnation);
    std::string resolved_;
    std::unique_ptr<LogFile> log_;
    tuner::Tuner tuner_;
    Waker waker_;
    TransportOutbox outbox_;
    ProcessClock clock_;
    std::unique_ptr<storage::Journal> journal_;
};

HeadRun::HeadRun(comm::Transport& transport, const RunOptions& options, const std::string& mpi)
    : transport_(transport),
      options_(options),
      directory_{options.directory},
      resolved_(study::resolved_toml(options.spec)),
      tuner_(options.spec),
      outbox_(transport) {
    refuse_what_cannot_be(transport, options, files_);
    create_study_directory(files_, directory_, options.study_text, resolved_);
    if (options.spec.trainable.program) publish_python_module(files_, directory_);
    log_ = std::make_unique<LogFile>(directory_.head_log(start_));
    const EnvironmentFacts facts{
        options.version,         uuid_,           first_incarnation,          static_cast<int>(transport.size()), mpi,
        storage::hdf5_version(), wall_time_now(), layout_json(options.layout)};
    publish_text(files_, directory_.environment_file(start_), environment_json(facts), true);
    journal_ = std::make_unique<storage::Journal>(files_, journal_options(), *log_);
    log_->write(base::LogLevel::info, "start",
                {{"version", options.version},
                 {"study", uuid_},
                 {"job", slurm_job().empty() ? "-" : slurm_job()},
                 {"restart", std::to_string(slurm_restart_count())},
                 {"host", host_name()},
                 {"ranks", std::to_string(transport.size())},
                 {"mpi", mpi}});
}

study::Record HeadRun::snapshot() const {
    study::Bytes bytes;
    study::Encoder encoder(bytes);
    tuner_.snapshot(encoder);
    return study::Snapshot{tuner_.digest(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()}};
}

storage::JournalOptions HeadRun::journal_options() {
    storage::JournalOptions journal;
    journal.directory = directory_.path;
    journal.uuid = uuid_;
    journal.incarnation = first_incarnation;
    journal.job = slurm_job();
    journal.restart_count = slurm_restart_count();
    journal.commit_interval = options_.spec.output.commit_interval;
    journal.snapshot = [this] { return snapshot(); };
    return journal;
}

HeadOptions HeadRun::head_options(const std::string& resolved) const {
    HeadOptions head;
    head.incarnation = base::Incarnation{first_incarnation};
    head.workers = transport_.size() - 1;
    head.version = options_.version;
    head.wall_time = wall_time_now();
    head.study = resolved;
    head.study_directory = directory_.path;
    head.heartbeat_timeout = options_.spec.output.heartbeat_timeout;
    head.abort_grace = options_.spec.output.abort_grace;
    return head;
}

void HeadRun::create_study(const std::string& resolved) {
    tuner::Output out;
    tuner_.create(uuid_, resolved, options_.version, out);
    journal_->append(out.records);
}

HeadRunEnd HeadRun::run(SignalReader* signals) {
    create_study(resolved_);
    HeadEnd end;
    HeadFigures figures;
    {
        Publisher status(files_, directory_.status_file());
        HeadObserver observer(options_.observer, *log_, status, *journal_);
        HeadServices services(files_, *journal_, directory_.path, waker_, *log_, [this](const study::EndStudy& how) {
            write_results(files_, directory_.path, options_.spec, wall_time_now());
            write_outcome(how.outcome, how.message.empty() ? study::describe(how.reason, 0, 0) : how.message);
        });
        HeadMachine head(head_options(resolved_), tuner_, *journal_, outbox_, services, observer, *log_, clock_.now());
        end = serve_head(transport_, head, clock_, waker_, signals, *log_,
                         [this](const std::string& why) { write_outcome(study::StudyOutcome::resumable, why); });
        head.set_head_cpu(process_cpu_seconds());
        figures = head.figures(clock_.now());
    }
    leave_files(end, figures);
    if (options_.on_end) options_.on_end({end.outcome, end.message, figures, &tuner_});
    return {end.outcome, end.clean};
}

void HeadRun::leave_files(const HeadEnd& end, const HeadFigures& figures) {
    try {
        journal_->close();
    } catch (const std::exception& error) {
        log_->write(base::LogLevel::error, "journal", {{"error", error.what()}});
    }
    std::string reason = end.message;
    const auto& state = tuner_.state();
    if (reason.empty() && state.ended)
        reason = state.end_message.empty() ? study::describe(state.end_reason, 0, 0) : state.end_message;
    write_outcome(end.outcome, reason);
    log_->write(base::LogLevel::info, "leave",
                {{"exit", std::to_string(static_cast<int>(end.outcome))},
                 {"clean", end.clean ? "yes" : "no"},
                 {"reports", std::to_string(state.reports)},
                 {"elapsed_s", std::to_string(figures.elapsed_s)},
                 {"head_cpu_s", std::to_string(figures.head_cpu_s)},
                 {"reason", reason}});
}

/// Written before any worker may leave, and again at the very end, when everything is known.
void HeadRun::write_outcome(study::StudyOutcome outcome, const std::string& reason) {
    const auto reports = tuner_.state().reports;
    const OutcomeFile file{outcome, reason, reports > 0, reports, first_incarnation, wall_time_now()};
    try {
        publish_text(files_, directory_.outcome_file(), outcome_text(file), true);
    } catch (const std::exception& error) {
        log_->write(base::LogLevel::error, "outcome", {{"error", error.what()}});
    }
}

HeadRunEnd end_before_the_beginning(comm::Transport& transport, const RunOptions& options, study::StudyOutcome outcome,
                                    const std::string& message, bool clean) {
    send_all_away(transport, outcome, message);
    if (options.on_end) options.on_end({outcome, message, {}, nullptr});
    return {outcome, clean};
}

} // namespace

HeadRunEnd run_head(comm::Transport& transport, SignalReader* signals, const RunOptions& options,
                    const std::string& mpi) {
    bool started = false;
    try {
        HeadRun run(transport, options, mpi);
        started = true; // from here on workers may train: they end by themselves, but nobody knows when
        return run.run(signals);
    } catch (const base::UsageError& error) {
        return end_before_the_beginning(transport, options, study::StudyOutcome::usage, error.what(), !started);
    } catch (const std::exception& error) {
        return end_before_the_beginning(transport, options, study::StudyOutcome::runtime_error, error.what(), !started);
    }
}

void send_all_away(comm::Transport& transport, study::StudyOutcome outcome, const std::string& message) {
    study::Bytes bytes;
    encode_message(Leave{outcome, true, message}, bytes);
    for (std::uint32_t rank = 1; rank < transport.size(); ++rank) transport.send(base::Rank{rank}, bytes);
    Waker waker;
    flush_transport(transport, waker);
}

} // namespace ranktune::drivers
