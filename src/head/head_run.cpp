// SPDX-License-Identifier: Apache-2.0
#include "head/head_run.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "comm/layout/binding.hpp"
#include "comm/transport/flush.hpp"
#include "comm/transport/shared.hpp"
#include "comm/wire/keep_alive.hpp"
#include "head/background/head_services.hpp"
#include "head/background/hooks.hpp"
#include "head/background/job_watch.hpp"
#include "head/background/keeper.hpp"
#include "head/background/steering_desk.hpp"
#include "head/head_machine.hpp"
#include "head/head_observer.hpp"
#include "head/requeue.hpp"
#include "head/serve_head.hpp"
#include "process/background.hpp"
#include "process/environment.hpp"
#include "process/wake.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/study/parse.hpp"
#include "storage/file_system.hpp"
#include "storage/hdf5/thread.hpp"
#include "storage/journal/journal.hpp"
#include "storage/journal/lease.hpp"
#include "study/side_tasks.hpp"
#include "studydir/enter.hpp"
#include "studydir/environment_facts.hpp"
#include "studydir/finished_study.hpp"
#include "studydir/last_end.hpp"
#include "studydir/log_file.hpp"
#include "studydir/open_study.hpp"
#include "studydir/publisher.hpp"
#include "studydir/results.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::head {
namespace {

void refuse_what_cannot_be(const comm::Transport& transport, const RunOptions& options) {
    const std::uint32_t workers = transport.size() - 1;
    if (workers == 0) throw base::UsageError("a study needs at least 2 ranks: rank 0 is the head, the others train");
    if (const auto wanted = options.spec.max_ranks_per_trial(); wanted > workers)
        throw base::UsageError("resources.ranks: a trial may ask for " + std::to_string(wanted) +
                               " ranks, which is more than the workers of this job: " + std::to_string(workers));
    else if (const auto kept = options.spec.output.spares + options.spec.resources.helpers; wanted + kept > workers)
        throw base::UsageError("run.spares, resources.helpers: with " + std::to_string(kept) + " of " +
                               base::counted(workers, "worker") + " kept from trials, no trial of " +
                               base::counted(wanted, "rank") + " fits; start more ranks, or lower it");
}

/// How often metrics.h5 is rewritten while a study runs, and up to how many records: rereading the journal must stay
/// cheap, also in memory.
constexpr std::chrono::minutes tables_interval{1};
constexpr std::uint64_t most_tables_records = 1'000'000;

/// A loop that stalled for this long is logged.
constexpr std::chrono::seconds long_absence{5};

bool trials_started(const tuner::State& state) {
    return std::any_of(state.trials.begin(), state.trials.end(), [&](const tuner::Trial& trial) {
        return trial.attempt.id != base::AttemptId{} && trial.attempt.since >= state.began;
    });
}

/// One start of the head. Members are in order of dependency; destroyed in the opposite order.
class HeadRun {
  public:
    HeadRun(comm::Transport& transport, comm::KeepAlive& keep_alive, const RunOptions& options, const std::string& mpi,
            studydir::Entered entered);

    HeadRunEnd run(process::SignalReader* signals);

  private:
    void open_log(const std::string& mpi);
    void bind();
    void open_journal();
    void begin_records();
    void remove_orphans();
    void refresh_tables(bool however_large);
    [[nodiscard]] HeadEnd serve(process::SignalReader* signals, HeadFigures& figures);
    void be_alive(const HeadMachine& head);
    [[nodiscard]] HeadEnd cut_short(const std::exception& error);
    void leave_files(const HeadEnd& end, const HeadFigures& figures);
    void write_outcome(const study::EndStudy& end, const std::string& tables = {});
    [[nodiscard]] study::Asker asker(study::Reason reason);
    void requeue_job(const HeadEnd& end);
    [[nodiscard]] bool called_off();
    [[nodiscard]] bool is_mine() const;
    [[nodiscard]] HeadOptions head_options() const;
    [[nodiscard]] storage::JournalOptions journal_options();
    [[nodiscard]] tuner::Tuner& tuner() { return *opened_.tuner; }

    comm::Transport& transport_;
    comm::KeepAlive& keep_alive_;
    std::chrono::steady_clock::time_point next_peers_;
    const RunOptions& options_;
    study::StudySpec spec_; ///< that of the options, with the searcher of the study
    storage::FileSystem& files_;
    studydir::StudyDirectory directory_;
    const comm::Binding binding_;
    studydir::HeldLease lease_;
    studydir::OpenedStudy opened_;
    std::optional<storage::FileIdentity> place_; ///< of the study directory
    std::string start_;
    std::unique_ptr<studydir::LogFile> log_;
    process::Waker waker_;
    std::unique_ptr<storage::Journal> journal_;
    std::uint64_t progress_before_ = 0;
    std::optional<slurm::Allocation> job_; ///< nothing: not in a Slurm job
    bool earlier_progress_ = true;         ///< the previous start admitted something
    Requeued requeued_;
    std::atomic<study::Asker> heard_ = study::Asker::none; ///< who last asked for a stop and was heard
    std::optional<study::Asker> late_stop_;                ///< who asked for a stop after the loop had ended
    std::optional<study::JobDeath> death_;                 ///< of the previous start
    std::string tables_;                                   ///< what is wrong with metrics.h5 at the end
    std::mutex tables_mutex_;                              ///< metrics.h5 is written by one thread at a time
    std::uint64_t tables_records_ = 0;                     ///< records in the last metrics.h5
    std::optional<Hooks> hooks_;                           ///< while it serves, and after
    std::optional<process::ProcessClock> clock_;
};

HeadRun::HeadRun(comm::Transport& transport, comm::KeepAlive& keep_alive, const RunOptions& options,
                 const std::string& mpi, studydir::Entered entered)
    : transport_(transport),
      keep_alive_(keep_alive),
      options_(options),
      spec_(options.spec),
      files_(*options.files),
      directory_{options.directory},
      binding_(comm::plan_binding(options.layout, options.spec.resources)),
      lease_(std::move(entered.lease)),
      opened_(std::move(entered.opened)),
      start_(studydir::start_name(process::slurm_job(), opened_.incarnation.value())),
      job_(slurm::allocation(process::environment_variables())) {
    if (opened_.uuid.empty()) opened_.uuid = process::make_uuid();
    studydir::create_study_directory(files_, directory_, options.study_text, opened_.is_new);
    place_ = files_.identity(directory_.path);
    if (study::runs_commands(options.spec)) studydir::publish_python_module(files_, directory_);
    if (opened_.outcome) earlier_progress_ = opened_.outcome->progress;
    open_log(mpi);
    bind();
    open_journal();
    // A resolved.toml proves that there was a journal: publish it afterwards.
    studydir::publish_text(files_, directory_.resolved_file(), opened_.resolved, true);
    begin_records();
    const std::string reserve(studydir::outcome_reserve_bytes, '\n');
    studydir::publish_text(files_, directory_.outcome_reserve(), reserve, true);
    clock_.emplace(tuner().state().now);
    // After a crash an earlier start's outcome would pass for this one's. From here on every end of this start writes
    // its own (run()).
    files_.remove(directory_.outcome_file());
}

void HeadRun::open_log(const std::string& mpi) {
    log_ = std::make_unique<studydir::LogFile>(directory_.head_log(start_));
    const studydir::EnvironmentFacts facts{options_.version,
                                           opened_.uuid,
                                           opened_.incarnation.value(),
                                           static_cast<int>(transport_.size()),
                                           mpi,
                                           storage::hdf5_version(),
                                           studydir::wall_time_now(),
                                           comm::layout_json(options_.layout, binding_),
                                           options_.build_type};
    studydir::publish_text(files_, directory_.environment_file(start_), studydir::environment_json(facts), true);
    const studydir::FileSystemFacts disk = studydir::file_system_facts(directory_.path);
    const std::string deadline = process::slurm_end_time();
    log_->write(base::LogLevel::info, "start",
                {{"version", options_.version},
                 {"study", opened_.uuid},
                 {"start", std::to_string(opened_.incarnation.value())},
                 {"job", process::slurm_job().empty() ? "-" : process::slurm_job()},
                 {"restart", std::to_string(process::slurm_restart_count())},
                 {"host", process::host_name()},
                 {"nodes", std::to_string(options_.layout.node_count())},
                 {"ranks", std::to_string(transport_.size())},
                 {"groups", std::to_string(options_.spec.trials_at_once(transport_.size() - 1))},
                 {"mpi", mpi},
                 {"fs", disk.type},
                 {"free", studydir::binary_size(disk.free_bytes)},
                 {"inodes_free", disk.free_inodes ? std::to_string(*disk.free_inodes) : "-"},
                 {"deadline", deadline.empty() ? "-" : deadline}});
}

/// Workers bind themselves by the same plan once they know the study.
void HeadRun::bind() {
    if (!binding_.words.empty())
        log_->write(base::LogLevel::info, "bind",
                    {{"bound", std::to_string(binding_.bound())},
                     {"ranks", std::to_string(transport_.size())},
                     {"how", binding_.words}});
    for (const std::string& problem : {binding_.warning, comm::bind_as_planned(binding_, base::head_rank)}) {
        if (problem.empty()) continue;
        log_->write(base::LogLevel::warning, "bind", {{"problem", problem}});
        if (options_.on_note) options_.on_note(problem);
    }
}

/// Publishing the first segment of this start makes the earlier ones final. Until then an earlier head that was still
/// alive (its lease was taken over) may have written: read again if so.
void HeadRun::open_journal() {
    journal_ = std::make_unique<storage::Journal>(files_, journal_options(), *log_);
    if (journal_->first_record() == opened_.journal.records) return;
    const auto incarnation = opened_.incarnation;
    opened_ = studydir::open_study(files_, options_.directory, options_.spec, options_.open.after_fresh());
    opened_.incarnation = incarnation;
}

void HeadRun::begin_records() {
    // Tables are made from the records with the searcher that wrote them.
    if (opened_.tuner && spec_.searcher.by_default) {
        spec_.searcher.algorithm = tuner().spec().searcher.algorithm;
        spec_.searcher.options = tuner().spec().searcher.options;
    }
    if (opened_.is_new) {
        opened_.tuner = std::make_unique<tuner::Tuner>(opened_.spec);
        tuner::Output out;
        tuner().create(opened_.uuid, opened_.resolved, options_.version, out);
        if (options_.earlier)
            tuner().warm_start(*options_.earlier, out);
        else if (!options_.spec.searcher.warm_start.empty())
            throw base::UsageError(
                "the journal has no record yet, so the study begins anew, and nobody has read the "
                "files of searcher.warm_start: start it again with --fresh");
        journal_->append(out.records);
        // From here on every frame implies that the first one was synced: damage at the beginning is then refused, and
        // never taken for a study that has not begun.
        journal_->sync();
        return;
    }
    const auto& found = opened_.journal;
    log_->write(base::LogLevel::info, "resume",
                {{"records", std::to_string(found.records)},
                 {"cut_bytes", std::to_string(found.cut_bytes)},
                 {"cut_records", std::to_string(found.cut_records)},
                 {"snapshot", opened_.from_snapshot ? "yes" : "no"},
                 {"running", std::to_string(opened_.interrupted.size())},
                 {"reopened", std::to_string(opened_.reopened.size())},
                 {"changed", std::to_string(opened_.changes.size())},
                 {"before", opened_.ended}});
    for (const auto& change : opened_.changes)
        log_->write(base::LogLevel::info, "changed",
                    {{"key", change.key}, {"before", change.before}, {"after", change.after}});
    const studydir::LastEnd before = studydir::last_end(files_, directory_.path, opened_);
    if (!options_.outside) death_ = studydir::death_of_job(before);
    if (before.trials_ran)
        log_->write(base::LogLevel::info, "last-end",
                    {{"death", death_ ? "yes" : "no"},
                     {"notes", std::to_string(before.notes.size())},
                     {"told", before.told ? std::string(name(*before.told)) : "-"}});
    for (const study::CrashNote& note : before.sick)
        log_->write(base::LogLevel::warning, "device-lost",
                    {{"trial", study::unit_text(note.trial)},
                     {"attempt", std::to_string(note.attempt.value())},
                     {"message", study::describe(note.failure)}});
    journal_->append(studydir::take_up(opened_, options_.open, options_.version));
    progress_before_ = tuner::progress_of(tuner().state()); // reopened work counts again
    // Sync first: the removed files must not be named again after a power loss.
    journal_->sync();
    remove_orphans();
}

/// Files in checkpoints/ that no record names, of attempts that were lost while they wrote. Requires that the journal
/// is synced and that no trial runs.
void HeadRun::remove_orphans() {
    const std::uint64_t orphans = studydir::remove_orphans(files_, directory_.path, tuner().state());
    if (orphans > 0) log_->write(base::LogLevel::info, "orphans", {{"checkpoints", std::to_string(orphans)}});
}

storage::JournalOptions HeadRun::journal_options() {
    storage::JournalOptions journal;
    journal.directory = directory_.path;
    journal.uuid = opened_.uuid;
    if (opened_.journal.segments > 0) journal.read = opened_.journal;
    journal.incarnation = opened_.incarnation.value();
    journal.job = process::slurm_job();
    journal.restart_count = process::slurm_restart_count();
    journal.commit_interval = options_.spec.output.commit_interval;
    journal.snapshot = [this] { return studydir::snapshot_of(tuner()); };
    return journal;
}

HeadOptions HeadRun::head_options() const {
    HeadOptions head;
    head.incarnation = opened_.incarnation;
    head.workers = transport_.size() - 1;
    head.version = options_.version;
    head.wall_time = studydir::wall_time_now();
    head.study = opened_.resolved;
    head.study_directory = directory_.path;
    head.places = comm::places_of(options_.layout, binding_);
    if (job_) head.deadline_timeout = std::chrono::seconds(10);
    head.heartbeat_timeout = options_.spec.output.heartbeat_timeout;
    head.abort_grace = options_.spec.output.abort_grace;
    // For programs, each worker enforces the time-out itself (ProgramLeader).
    if (!study::runs_programs(options_.spec) && options_.spec.failure.report_timeout)
        head.progress_timeout = *options_.spec.failure.report_timeout;
    head.death = death_;
    head.signal_meaning = [this](study::Asker signal) { return options_.signal_meanings.of(signal); };
    return head;
}

/// Every end of a running head comes here and is written to the file `outcome`: without it, the next start would assume
/// that the job died, and suspect its trials.
HeadRunEnd HeadRun::run(process::SignalReader* signals) {
    HeadEnd end;
    HeadFigures figures;
    try {
        end = serve(signals, figures);
    } catch (const std::exception& error) {
        end = cut_short(error);
    }
    keep_alive_.stop();
    leave_files(end, figures);
    requeue_job(end);
    if (hooks_) {
        hooks_->study_ended(tuner(), end.outcome, studydir::end_words(end.reason, end.message));
        if (const auto failed = hooks_->note(); failed && options_.on_note) options_.on_note(*failed);
    }
    if (options_.on_end)
        options_.on_end({.outcome = end.outcome,
                         .message = end.message,
                         .figures = figures,
                         .tuner = &tuner(),
                         .requeue = requeued_.words,
                         .requeued = requeued_.result == studydir::Requeue::yes,
                         .called_off = late_stop_.has_value(),
                         .tables = tables_,
                         .whose = end.whose,
                         .by = asker(end.reason)});
    return {end.outcome, end.clean};
}

HeadEnd HeadRun::serve(process::SignalReader* signals, HeadFigures& figures) {
    studydir::Publisher status(files_, directory_.status_file(), [this] { return is_mine(); });
    hooks_.emplace(options_.observer, options_.spec.hooks, options_.spec.name, directory_.path, waker_, *log_);
    SteeringDesk desk(&*hooks_, files_, directory_, *journal_, options_.spec.space, waker_, *log_);
    HeadObserver observer(
        &desk, *log_, status, *journal_, [&desk] { return desk.recent(); }, [this] { refresh_tables(true); });
    process::Background tables(process::sparingly(tables_interval, [this] { refresh_tables(false); }),
                               process::Background::Clock::now() + tables_interval);
    comm::Listening neighbours(options_.neighbours, waker_);
    HeadServices services(
        files_, *journal_, directory_.path, opened_.incarnation, waker_, *log_,
        [&neighbours](base::Rank rank, bool at_once) { return neighbours.kill_silent(rank, at_once); },
        [&](const study::EndStudy&) {
            tables.stop();
            studydir::write_results(files_, directory_.path, spec_, studydir::wall_time_now());
            const auto& workers = tuner().state().placement.workers();
            if (!std::ranges::all_of(workers, &tuner::WorkerState::alive))
                remove_orphans(); // what lost ranks were writing
        },
        [this](const study::EndStudy& how, const std::string& wrong) { write_outcome(how, wrong); });
    Keeper keeper(files_, *lease_, *journal_, directory_, waker_, *log_);
    std::optional<JobWatch> watch;
    if (job_) watch.emplace(*job_, options_.spec.slurm.lead_time, options_.spec.slurm.poll_interval, waker_, *log_);
    HeadMachine head(head_options(), tuner(), *journal_, transport_, services, observer, *log_, clock_->now());
    NotedStop noted(options_.signal_meanings);
    const auto dies_at = options_.dies_after ? clock_->now() + *options_.dies_after : base::StudyTime::max();
    HeadEnd end = serve_head(
        transport_, head, *clock_, waker_, signals, *log_,
        [&](const EndAsked& what) {
            noted.known();
            heard_ = what.by;
            write_outcome({study::StudyOutcome::resumable, what.reason, what.why});
            if (options_.on_stop && !what.at_once) options_.on_stop(what, tuner(), head.figures(clock_->now()));
        },
        [&keeper, &noted] {
            auto asked = keeper.asked();
            return asked ? asked : noted.asked();
        },
        [&] {
            be_alive(head);
            while (const auto rank = neighbours.ended()) head.on_rank_ended(*rank, clock_->now());
            if (clock_->now() >= dies_at) process::die_on_purpose(*log_, [] {});
            if (options_.outside) options_.outside(head, tuner(), *clock_);
            desk.attend(head, tuner(), clock_->now());
            if (const auto failed = hooks_->note(); failed && options_.on_note) options_.on_note(*failed);
            const auto news = watch ? watch->news() : std::nullopt;
            if (!news) return;
            if (!news->warning.empty() && options_.on_note) options_.on_note(news->warning);
            const auto now = clock_->now();
            head.on_deadline(news->end ? std::optional(now + (*news->end - JobWatch::Clock::now())) : std::nullopt,
                             now);
        });
    desk.close(is_over(tuner().state()) ? "the study is over" : "");
    if (const auto late = keeper.asked(); late && is_person(late->by)) late_stop_ = late->by;
    head.set_head_cpu(process::process_cpu_seconds());
    figures = head.figures(clock_->now());
    tables_ = services.tables();
    return end;
}

/// Called in every round of the loop, which then sends its own signs of life.
void HeadRun::be_alive(const HeadMachine& head) {
    const auto away = keep_alive_.loop_is_here();
    if (away >= long_absence)
        log_->write(base::LogLevel::warning, "held-up",
                    {{"seconds", std::to_string(std::chrono::duration_cast<std::chrono::seconds>(away).count())},
                     {"by", "a disk, most likely, or this process was stopped"}});
    const auto now = std::chrono::steady_clock::now();
    if (now < next_peers_) return;
    next_peers_ = now + std::chrono::seconds(1);
    auto peers = comm::worker_ranks(transport_.size());
    const auto gone = head.gone();
    std::erase_if(peers, [&](base::Rank rank) { return std::binary_search(gone.begin(), gone.end(), rank); });
    keep_alive_.set_peers(std::move(peers));
}

/// For an unhandled exception. Writes `outcome` before a worker leaves: a launcher may end this process then.
HeadEnd HeadRun::cut_short(const std::exception& error) {
    HeadEnd end{study::StudyOutcome::runtime_error, std::string("the head failed: ") + error.what(), false,
                study::Reason::none};
    if (dynamic_cast<const base::IoError*>(&error) != nullptr) {
        end.outcome = study::StudyOutcome::resumable;
        end.reason = study::Reason::unsaved;
    }
    log_->write(base::LogLevel::error, "head", {{"error", error.what()}});
    write_outcome({end.outcome, end.reason, end.message});
    send_all_away(transport_, end.outcome, end.message, false);
    return end;
}

/// Rewrites metrics.h5 of a running study, on a thread of its own, and, however large it is, before [after].
void HeadRun::refresh_tables(bool however_large) {
    const std::lock_guard lock(tables_mutex_);
    const std::uint64_t records = journal_->first_record() + journal_->statistics().records;
    if (records == tables_records_ || (records > most_tables_records && !however_large)) return;
    try {
        studydir::write_results(files_, directory_.path, spec_, studydir::wall_time_now());
        tables_records_ = records;
    } catch (const std::exception& error) { // a full disk: the next time may succeed
        log_->write(base::LogLevel::warning, "tables", {{"error", error.what()}});
    }
}

void HeadRun::leave_files(const HeadEnd& end, const HeadFigures& figures) {
    try {
        journal_->close();
    } catch (const std::exception& error) {
        log_->write(base::LogLevel::error, "journal", {{"error", error.what()}});
    }
    const auto& state = tuner().state();
    write_outcome({end.outcome, end.reason, end.message}, tables_);
    try {
        if (is_mine()) {
            files_.remove_if_empty(directory_.attempts());
            files_.remove(directory_.outcome_reserve());
        }
    } catch (const base::IoError& error) { // the next start does it
        log_->write(base::LogLevel::warning, "leftovers", {{"error", error.what()}});
    }
    log_->write(base::LogLevel::info, "leave",
                {{"exit", std::to_string(static_cast<int>(end.outcome))},
                 {"clean", end.clean ? "yes" : "no"},
                 {"reports", std::to_string(state.reports)},
                 {"elapsed_s", std::to_string(figures.elapsed_s)},
                 {"head_cpu_s", std::to_string(figures.head_cpu_s)},
                 {"reason", studydir::end_words(end.reason, end.message)}});
}

/// Called before any worker may leave, and again at the very end, when everything is known.
void HeadRun::write_outcome(const study::EndStudy& end, const std::string& tables) {
    const std::string reason = studydir::end_words(end.reason, end.message);
    if (!is_mine()) {
        log_->write(base::LogLevel::error, "outcome",
                    {{"error", "not written: the study directory is gone, or another head's"}, {"reason", reason}});
        return;
    }
    const auto& state = tuner().state();
    const studydir::OutcomeFile file{.outcome = end.outcome,
                                     .reason = reason,
                                     .progress = tuner::progress_of(state) > progress_before_,
                                     .reports = state.reports,
                                     .start = opened_.incarnation.value(),
                                     .time = studydir::wall_time_now(),
                                     .cause = studydir::end_cause(end.outcome, end.reason),
                                     .by = asker(end.reason),
                                     .requeue = requeued_.result,
                                     .launch = options_.launch,
                                     .records = journal_->statistics().synced,
                                     .tables = tables};
    studydir::publish_outcome(files_, directory_, file, *log_);
}

/// Who asked for an end with this reason.
study::Asker HeadRun::asker(study::Reason reason) {
    if (reason != study::Reason::draining) return study::Asker::none;
    const study::Asker heard = heard_;
    return heard == study::Asker::none ? tuner().state().drain_by : heard;
}

/// Whether the directory is still the one in which this start began, and its lease still ours: if it was moved away,
/// another study may be in its place. Never throws.
bool HeadRun::is_mine() const {
    try {
        if (files_.identity(directory_.path) != place_) return false;
        const auto holder = storage::read_lease(files_, directory_.path);
        return !holder || holder->nonce == lease_->holder().nonce;
    } catch (const base::IoError&) { // unknown: a write then fails or does no harm
        return true;
    }
}

/// Whether a person asked for a stop while the study was ending for another reason: then no job may continue it.
bool HeadRun::called_off() {
    try {
        if (!late_stop_) late_stop_ = studydir::take_stop_request(files_, directory_.stop_file());
    } catch (const base::IoError& error) {
        log_->write(base::LogLevel::warning, "stop-file", {{"error", error.what()}});
    }
    return late_stop_.has_value();
}

/// Call when everything is written and the workers have left: Slurm then kills the rest of the job.
void HeadRun::requeue_job(const HeadEnd& end) {
    const auto& state = tuner().state();
    if (!job_ || end.outcome != study::StudyOutcome::resumable || !state.ended) return;
    if (end.reason == study::Reason::unsaved) return; // the next job would find the same disk
    if (called_off()) {
        heard_ = *late_stop_;
        return write_outcome({end.outcome, study::Reason::draining, std::string(study::name(*late_stop_))});
    }
    const slurm::Stopped stopped{stopped_by(state.end_reason, state.drain_by), trials_started(state),
                                 tuner::progress_of(state) > progress_before_, earlier_progress_};
    const auto ask = [](const auto& words) { return process::run_command(words, std::chrono::seconds(30)); };
    requeued_ = requeue(*job_, options_.spec.slurm, stopped, ask, [&] {
        requeued_.result = studydir::Requeue::yes; // written first: this process may not live long enough afterwards
        write_outcome({end.outcome, state.end_reason, state.end_message}, tables_);
    });
    write_outcome({end.outcome, state.end_reason, state.end_message}, tables_);
    if (!requeued_.words.empty())
        log_->write(requeued_.result == studydir::Requeue::yes ? base::LogLevel::info : base::LogLevel::warning,
                    "requeue", {{"result", std::string(name(requeued_.result))}, {"words", requeued_.words}});
}

HeadRunEnd end_before_the_beginning(comm::Transport& transport, const RunOptions& options, study::StudyOutcome outcome,
                                    const std::string& message, bool clean) {
    send_all_away(transport, outcome, message);
    if (options.on_end) options.on_end({.outcome = outcome, .message = message});
    return {outcome, clean};
}

} // namespace

HeadRunEnd run_head(comm::Transport& wire, process::SignalReader* signals, const RunOptions& options,
                    const std::string& mpi) {
    comm::SharedTransport transport(wire);
    // From the very beginning: reading a large journal, waiting for a lease or a hanging disk takes time.
    comm::KeepAlive keep_alive(transport, comm::Alive{}, comm::worker_ranks(transport.size()));
    const auto end_early = [&](study::StudyOutcome outcome, const std::string& message, bool clean) {
        keep_alive.stop();
        return end_before_the_beginning(transport, options, outcome, message, clean);
    };
    bool started = false;
    try {
        refuse_what_cannot_be(transport, options);
        studydir::Entered entered = studydir::enter(
            *options.files, {options.directory, options.spec, options.open, options.supervised, options.on_note});
        if (options.on_open) options.on_open(entered.opened, entered.moved_to);
        if (entered.opened.finished) {
            const std::string wrong = studydir::tend(*options.files, options.directory, entered.opened, options.launch);
            entered.lease.reset();
            const auto outcome = entered.opened.tuner->state().outcome;
            return end_early(wrong.empty() ? outcome : studydir::code_without_tables(outcome), wrong, true);
        }
        HeadRun run(transport, keep_alive, options, mpi, std::move(entered));
        started = true; // from here on workers may train: when they end is unknown
        return run.run(signals);
    } catch (const base::UsageError& error) {
        return end_early(study::StudyOutcome::usage, error.what(), !started);
    } catch (const base::IoError& error) {
        const studydir::EarlyTrouble trouble = studydir::early_trouble(error);
        return end_early(trouble.outcome, trouble.words, !started);
    } catch (const std::exception& error) {
        return end_early(study::StudyOutcome::runtime_error, error.what(), !started);
    }
}

void send_all_away(comm::Transport& transport, study::StudyOutcome outcome, const std::string& message, bool clean) {
    study::Bytes bytes;
    comm::encode_message(comm::Leave{outcome, clean, message}, bytes);
    for (std::uint32_t rank = 1; rank < transport.size(); ++rank) transport.send(base::Rank{rank}, bytes);
    process::Waker waker;
    comm::flush_transport(transport, waker);
}

} // namespace ranktune::head
