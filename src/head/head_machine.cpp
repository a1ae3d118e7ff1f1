// SPDX-License-Identifier: Apache-2.0
#include "head/head_machine.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "head/background/preparer.hpp"
#include "head/rank_table.hpp"
#include "ranktune/base/text.hpp"

namespace ranktune::head {

using base::Rank;
using base::StudyTime;
using study::StudyOutcome;

namespace {

/// joining: some workers have not said Hello. publishing: the study is over, its results are not synced yet. leaving:
/// workers were told to leave.
enum class Phase : std::uint8_t { joining, running, publishing, leaving, over };

struct Worker {
    study::RankInfo info;
    bool hello = false;
    bool alive = true;
    bool bye = false;
    bool told_to_leave = false;
    StudyTime heard;
    StudyTime spoken_to;
    wire::AttemptKey reporting; ///< the attempt of its last report
    std::uint64_t reports = 0;  ///< taken from that attempt
};

std::string seconds_text(base::Duration duration) {
    return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(duration).count()) + " s";
}

} // namespace

struct HeadMachine::Impl {
    Impl(HeadOptions options_in, tuner::Tuner& tuner_in, study::RecordSink& sink_in, wire::Outbox& outbox_in,
         HeadDuties& duties_in, Observer& observer_in, base::LogSink& log_in, StudyTime start)
        : options(std::move(options_in)),
          tuner(tuner_in),
          sink(sink_in),
          outbox(outbox_in),
          duties(duties_in),
          observer(observer_in),
          log(log_in),
          table(options.workers, start),
          workers(options.workers + 1),
          iterations_before(tuner_in.state().iterations),
          began_at(start),
          hello_until(start + options.hello_timeout),
          now(start),
          last_tick(start),
          next_scan(start),
          next_view(start) {
        workers[0].alive = false;
        for (std::uint32_t r = 1; r <= options.workers; ++r) {
            workers[r].info.rank = Rank(r);
            workers[r].heard = workers[r].spoken_to = start;
        }
    }

    HeadOptions options;
    tuner::Tuner& tuner;
    study::RecordSink& sink;
    wire::Outbox& outbox;
    HeadDuties& duties;
    Observer& observer;
    base::LogSink& log;

    Phase phase = Phase::joining;
    RankTable table;
    std::vector<Worker> workers; ///< position is the rank
    std::uint32_t greeted = 0;
    std::optional<study::StopRequested> early_stop; ///< requested before the study began
    std::optional<StudyTime> deadline;              ///< of the job
    bool deadline_told = false;                     ///< on_deadline was called, with or without a deadline
    study::EndStudy result;
    HeadEnd::Whose whose = HeadEnd::Whose::head; ///< of `result`
    std::optional<StudyTime> leave_until;
    std::optional<HeadEnd> end;
    std::uint64_t stale = 0;
    std::uint64_t missed = 0; ///< checkpoints
    std::string missed_why;
    std::uint64_t missed_told = 1; ///< next count that is logged: the first, the tenth, ...
    std::uint64_t fallbacks = 0;
    std::uint64_t events = 0;
    double head_cpu_s = 0.0;
    base::Duration longest_gap{}; ///< between two ticks
    std::uint32_t deserters = 0;  ///< workers that left because this head was silent

    std::uint64_t iterations_before; ///< in earlier starts
    StudyTime began_at;
    StudyTime hello_until;
    StudyTime now;
    StudyTime last_tick;
    StudyTime next_scan;
    StudyTime next_view;

    // Reused between calls.
    wire::Message message;
    study::Event event;
    tuner::Output output;
    study::Bytes buffer;
    std::vector<Rank> living;

    // --- out ---

    void send_buffer(Rank to) {
        Worker& worker = workers[to.value()];
        worker.spoken_to = now;
        outbox.send(to, buffer);
    }
    template <class T>
    void send(Rank to, const T& what) {
        wire::encode_message(what, buffer);
        send_buffer(to);
    }
    void count_stale() { ++stale; }

    [[nodiscard]] HeadFigures figures(StudyTime at) const {
        const RankSeconds ranks = table.seconds(at);
        HeadFigures figures;
        figures.elapsed_s = base::to_seconds(at - began_at);
        figures.head_cpu_s = head_cpu_s;
        figures.training_s = ranks.training;
        figures.starting_s = ranks.starting;
        figures.idle_s = ranks.idle;
        figures.iterations_before = iterations_before;
        figures.stale_messages = stale + output.stale;
        figures.checkpoints_missed = missed;
        figures.checkpoint_error = missed_why;
        figures.fallbacks = fallbacks;
        return figures;
    }

    // --- events for the core ---

    /// Whether the state is about this start of the study, not an earlier one.
    [[nodiscard]] bool begun() const { return tuner.state().incarnation == options.incarnation; }

    /// Debug builds check the core after every event; in large studies, where a check is slow, after every hundredth.
    [[nodiscard]] bool due_for_a_check() const {
#ifdef NDEBUG
        return false;
#else
        return tuner.state().trials.size() <= 500 || events % 100 == 0;
#endif
    }

    /// Steps the core; `body` gets the buffers of an earlier event of its kind in exchange.
    template <class T>
    void step(T& body) {
        if (phase != Phase::running || (begun() && tuner.state().ended)) return count_stale();
        if (T* held = std::get_if<T>(&event.body); held != nullptr)
            std::swap(*held, body);
        else
            event.body = std::move(body);
        event.now = now;
        tuner.step(event, output);
        ++events;
        if (options.check_invariants || due_for_a_check()) tuner.check_invariants();
    }

    void begin() {
        phase = Phase::running;
        study::DeadlineKnown known{deadline}; // before the first trials start; replaces the deadline of an earlier job
        step(known);
        study::Began body{options.incarnation, {}, options.wall_time, options.death};
        for (std::uint32_t r = 1; r <= options.workers; ++r) body.workers.push_back(workers[r].info);
        step(body);
        if (early_stop) stop(*early_stop);
    }

    /// Begins when all workers are here and the deadline is known, or waited for long enough.
    void begin_when_ready() {
        if (phase != Phase::joining || greeted < options.workers) return;
        if (deadline_told || now - began_at >= options.deadline_timeout) begin();
    }

    void stop(study::StopRequested what) {
        if (phase == Phase::joining) {
            if (!early_stop || is_person(what.by)) early_stop = std::move(what);
        } else if (phase == Phase::running) {
            step(what);
        }
    }

    /// The first trial that ends well shows whether the trainable and the study file agree on the parameters. (Later
    /// trials may leave out some of them.)
    void judge_what_was_read(const wire::GroupOver& m) {
        using study::TrialPhase;
        const tuner::State& state = tuner.state();
        const auto ended =
            state.in(TrialPhase::paused) + state.in(TrialPhase::finished) + state.in(TrialPhase::stopped);
        if (m.unread.empty() || ended > 0 || phase != Phase::running) return;
        study::StopRequested body{"trial #" + std::to_string(m.over.trial.value()) + " never read " +
                                      base::join(m.unread) + " of the study file: remove it there, read it in the " +
                                      "trainable, or give it a condition that says when it applies",
                                  study::Reason::unread_parameter};
        step(body);
    }

    void lose(Rank rank, const std::string& why, bool guilty = false) {
        Worker& worker = workers[rank.value()];
        if (!worker.alive) return;
        worker.alive = false;
        const wire::AttemptKey held = table.held_by(rank);
        std::vector<base::LogField> fields{{"rank", std::to_string(rank.value())}, {"host", worker.info.host}};
        if (held.attempt != base::Attempt{}) fields.push_back({"trial", std::to_string(held.trial.value())});
        fields.push_back({"reason", why});
        log.write(base::LogLevel::error, "lost", fields);
        table.lose(rank, now);
        if (phase == Phase::joining)
            return finish({StudyOutcome::runtime_error, study::Reason::lost,
                           "worker rank " + std::to_string(rank.value()) + " ended before the study began: " + why});
        study::RankGone body{rank, why, guilty};
        if (phase == Phase::running) step(body);
    }

    // --- messages ---

    void on(Rank from, wire::Hello& m) {
        Worker& worker = workers[from.value()];
        if (worker.hello || phase != Phase::joining) return count_stale();
        worker.info = place_of(from, m, options.places, tuner.spec().resources.gpus);
        if (m.protocol != wire::protocol_version || m.version != options.version)
            return finish({StudyOutcome::usage, study::Reason::none,
                           "rank " + std::to_string(from.value()) + " on " + m.host + " runs ranktune " + m.version +
                               " (messages " + std::to_string(m.protocol) + "), the head " + options.version +
                               " (messages " + std::to_string(wire::protocol_version) +
                               "): start the same program on all ranks"});
        worker.hello = true;
        send(from,
             wire::Welcome{options.incarnation, options.study, options.study_directory, options.heartbeat_interval,
                           options.heartbeat_timeout, options.abort_grace, options.progress_timeout});
        ++greeted;
        begin_when_ready();
    }

    void on(Rank from, wire::Heartbeat& m) {
        if (m.progress > 0) table.training(from, m.key, now);
    }

    void on(Rank, wire::StopAsked& m) {
        const study::Asker by = options.signal_meaning ? options.signal_meaning(m.by) : m.by;
        stop({std::string(study::name(by)), study::Reason::draining, by});
    }

    void on(Rank from, study::ReportArrived& m) {
        table.training(from, wire::key_of(m), now);
        take_note(from, wire::key_of(m));
        step(m);
    }

    /// Counts a report, whatever becomes of it: its leader may send another one.
    void take_note(Rank from, const wire::AttemptKey& key) {
        Worker& worker = workers[from.value()];
        if (worker.reporting != key) worker.reports = 0;
        worker.reporting = key;
        if (++worker.reports % wire::report_window_step == 0) send(from, wire::ReportsTaken{key, worker.reports});
    }

    void on(Rank, study::CheckpointSaved& m) { step(m); }

    void on(Rank, wire::CheckpointMissed& m) {
        missed_why = std::move(m.why);
        if (++missed < missed_told) return;
        missed_told *= 10;
        log.write(base::LogLevel::warning, "no-checkpoint",
                  {{"trial", std::to_string(m.key.trial.value())},
                   {"so_far", std::to_string(missed)},
                   {"error", missed_why},
                   {"action", "training goes on; tried again when the next is due"}});
    }

    void on(Rank from, wire::GroupOver& m) {
        if (m.over.outcome == study::AttemptOutcome::unreadable) ++fallbacks;
        table.finish(from, wire::key_of(m.over), m.starting_s, m.training_s, now);
        judge_what_was_read(m);
        step(m.over);
    }

    void on(Rank from, wire::Bye& m) {
        Worker& worker = workers[from.value()];
        if (worker.bye) return count_stale();
        if (worker.told_to_leave && m.why.empty()) {
            worker.bye = true;
        } else {
            if (m.head_silent) ++deserters;
            longest_gap = std::max(longest_gap, now - last_tick);
            lose(from, m.why.empty() ? "it left unasked" : m.why, m.guilty);
        }
    }

    void receive(Rank from, std::span<const std::byte> bytes) {
        if (from.value() == 0 || from.value() > options.workers) return count_stale();
        Worker& worker = workers[from.value()];
        if (!worker.alive) {
            // The rank was given up but lives: it must not continue to use its group's devices and files.
            count_stale();
            if (!worker.told_to_leave) tell_to_leave(worker, false);
            return;
        }
        worker.heard = now;
        try {
            wire::decode_message(bytes, message);
        } catch (const base::FormatError& error) {
            return lose(from, std::string("it sent a message that cannot be read: ") + error.what());
        }
        std::visit(
            [&](auto& m) {
                if constexpr (requires { this->on(from, m); })
                    this->on(from, m);
                else
                    count_stale();
            },
            message);
    }

    // --- records, then commands ---

    void flush() {
        if (!output.records.empty()) {
            try {
                sink.append(output.records);
            } catch (const base::Error& error) {
                // A record that is not written was never decided: drop its commands.
                output.clear();
                return end_without_journal(error);
            }
            observer.on_records(tuner, output.records, figures(now));
        }
        for (const study::Command& command : output.commands) std::visit([&](const auto& c) { carry_out(c); }, command);
        output.clear();
    }

    void carry_out(const study::StartTrial& c) {
        living.clear();
        for (const Rank rank : c.ranks)
            if (workers[rank.value()].alive) living.push_back(rank);
        // If the leader was lost in the same round, the core has sent Abandon too: the attempt never starts.
        if (!living.empty() && living.front() == c.ranks.front()) table.start(wire::key_of(c), living, now);
        wire::encode_message(c, buffer);
        for (const Rank rank : living) send_buffer(rank);
    }

    /// The leader of an attempt that still holds its ranks; otherwise the head's own rank.
    [[nodiscard]] Rank leader_of(const wire::AttemptKey& key) const {
        const auto& ranks = tuner.state().trial(key.trial).ranks;
        if (ranks.empty() || table.held_by(ranks.front()) != key) return base::head_rank;
        return ranks.front();
    }
    template <class T>
    void to_leader(const T& c) {
        if (const Rank leader = leader_of(wire::key_of(c)); leader != base::head_rank) send(leader, c);
    }
    void carry_out(const study::Decide& c) { to_leader(c); }
    void carry_out(const study::Interrupt& c) { to_leader(c); }

    void carry_out(const study::Abandon& c) {
        wire::encode_message(c, buffer);
        for (const Rank rank : c.ranks)
            if (workers[rank.value()].alive) send_buffer(rank);
    }
    void carry_out(const study::DeleteCheckpoint& c) {
        try {
            duties.delete_checkpoint(c);
        } catch (const base::Error& error) { // the files stay; the next start removes them
            end_without_journal(error);
        }
    }
    void carry_out(const study::Prepare& c) {
        if (auto work = tuner.preparation(c.ticket)) duties.prepare(c.ticket, std::move(*work));
    }
    void carry_out(const study::EndStudy& c) { finish(c, HeadEnd::Whose::study); }

    // --- the end ---

    /// Why workers took this head for dead and left; empty: none did.
    [[nodiscard]] std::string desertion() const {
        if (deserters == 0) return {};
        const std::string limit = seconds_text(options.heartbeat_timeout) + " (run.heartbeat_timeout)";
        // The last message may be an interval old when the head stalls, and the workers' time-out starts there.
        if (longest_gap + 2 * options.heartbeat_interval < options.heartbeat_timeout)
            return "workers heard nothing of the head for " + limit + ", and left";
        return "the head was held up for " + seconds_text(longest_gap) + ": its workers heard nothing of it for " +
               limit + ", and left";
    }

    void end_without_journal(const base::Error& error) {
        finish({StudyOutcome::resumable, study::Reason::unsaved,
                std::string("the journal cannot be written: ") + error.what()});
    }

    void finish(study::EndStudy how, HeadEnd::Whose end_of = HeadEnd::Whose::head) {
        if (phase >= Phase::publishing) return;
        whose = end_of;
        const bool ranks_are_gone = how.reason == study::Reason::no_ranks || how.reason == study::Reason::lost;
        if (ranks_are_gone && deserters > 0) {
            how = {StudyOutcome::resumable, study::Reason::lost, desertion()};
            whose = HeadEnd::Whose::head;
        }
        phase = Phase::publishing;
        result = std::move(how);
        duties.publish(result);
    }

    void tell_to_leave(Worker& worker, bool clean) {
        worker.told_to_leave = true;
        send(worker.info.rank, wire::Leave{result.outcome, clean, result.message});
    }

    [[nodiscard]] bool all_alive() const {
        return std::all_of(workers.begin() + 1, workers.end(), [](const Worker& w) { return w.alive; });
    }

    void leave(bool clean) {
        phase = Phase::leaving;
        leave_until = now + options.abort_grace + std::chrono::seconds(10);
        for (Worker& worker : workers)
            if (worker.alive) tell_to_leave(worker, clean);
    }

    void leave_or_end() {
        // A worker that has not said Hello may never come: nobody may wait for it in MPI_Finalize.
        if (phase == Phase::publishing && duties.published()) {
            if (auto other = duties.instead()) {
                result = std::move(other->end);
                whose = other->tables ? HeadEnd::Whose::study_without_tables : HeadEnd::Whose::head;
            }
            leave(all_alive() && greeted == options.workers);
        }
        if (phase != Phase::leaving) return;
        const bool silent = now >= *leave_until;
        bool clean = true;
        for (const Worker& worker : workers) {
            if (worker.info.rank == base::head_rank || worker.bye) continue;
            clean = false;
            const bool awaited = worker.alive && worker.hello;
            if (awaited && !silent) return;
            if (awaited)
                log.write(base::LogLevel::warning, "silent",
                          {{"rank", std::to_string(worker.info.rank.value())}, {"host", worker.info.host}});
        }
        phase = Phase::over;
        end = HeadEnd{result.outcome, result.message, clean, result.reason, whose};
        observer.on_tick(tuner, figures(now));
    }

    // --- time ---

    void tick() {
        begin_when_ready();
        watch();
        if (const auto due = tuner.timer(); due && now >= *due && phase == Phase::running) {
            study::TimerFired body;
            step(body);
        }
        while (phase == Phase::running) {
            auto prepared = duties.prepared();
            if (!prepared) break;
            auto stop = look_at(*prepared, tuner.spec().searcher, log);
            step(*prepared);
            if (stop) step(*stop);
        }
        flush();
        leave_or_end();
        if (now >= next_view && !end) {
            next_view = now + options.observer_interval;
            observer.on_tick(tuner, figures(now));
        }
    }

    /// Checks for silent workers, and sends to those that this side has been silent to.
    void watch() {
        const base::Duration gap = now - last_tick;
        last_tick = now;
        longest_gap = std::max(longest_gap, gap);
        // Time in which this process was suspended or waited for a disk does not count as silence. Messages that
        // arrived meanwhile are read in the next rounds.
        if (gap > options.heartbeat_timeout / 4) {
            for (Worker& worker : workers) worker.heard = std::min(worker.heard + gap, now);
            hello_until += gap;
        }
        if (now < next_scan) return;
        next_scan = now + options.heartbeat_interval;
        if (phase == Phase::joining && greeted < options.workers && now >= hello_until) return missing_workers();
        for (Worker& worker : workers) {
            if (!worker.alive) continue;
            if (worker.hello && !worker.bye && now - worker.heard >= options.heartbeat_timeout)
                lose(worker.info.rank, "no sign of life for " + seconds_text(options.heartbeat_timeout));
            else if (!worker.bye && now - worker.spoken_to >= options.heartbeat_interval)
                send(worker.info.rank, wire::Alive{});
        }
    }

    void missing_workers() {
        std::vector<Rank> missing;
        for (std::uint32_t r = 1; r <= options.workers; ++r)
            if (!workers[r].hello) missing.push_back(Rank(r));
        finish({StudyOutcome::runtime_error, study::Reason::lost,
                "no answer within " + seconds_text(options.hello_timeout) + " from " +
                    (missing.size() == 1 ? "rank " : "ranks ") + ranks_text(missing) + " of " +
                    std::to_string(options.workers) + " workers"});
    }
};

HeadMachine::HeadMachine(HeadOptions options, tuner::Tuner& tuner, study::RecordSink& sink, wire::Outbox& outbox,
                         HeadDuties& duties, Observer& observer, base::LogSink& log, StudyTime now)
    : impl_(std::make_unique<Impl>(std::move(options), tuner, sink, outbox, duties, observer, log, now)) {}
HeadMachine::~HeadMachine() = default;

void HeadMachine::on_message(Rank from, std::span<const std::byte> bytes, StudyTime now) {
    impl_->now = std::max(impl_->now, now);
    impl_->receive(from, bytes);
}

void HeadMachine::on_rank_gone(Rank rank, const std::string& why, StudyTime now) {
    impl_->now = std::max(impl_->now, now);
    if (rank != base::head_rank && rank.value() <= impl_->options.workers) impl_->lose(rank, why);
}

void HeadMachine::on_stop_request(const study::StopRequested& what, StudyTime now) {
    impl_->now = std::max(impl_->now, now);
    impl_->stop(what);
}

void HeadMachine::on_deadline(std::optional<StudyTime> at, StudyTime now) {
    impl_->now = std::max(impl_->now, now);
    impl_->deadline = at;
    impl_->deadline_told = true;
    if (impl_->phase != Phase::running) return impl_->begin_when_ready();
    study::DeadlineKnown body{at};
    impl_->step(body);
}

bool HeadMachine::may_be_steered() const {
    const tuner::State& state = impl_->tuner.state();
    return impl_->phase == Phase::running && impl_->begun() && !state.draining && !state.ended;
}

void HeadMachine::on_steering(study::SteerAsked what, StudyTime now) {
    impl_->now = std::max(impl_->now, now);
    impl_->step(what);
}

void HeadMachine::on_stop_at_once(const study::StopRequested& what, StudyTime now) {
    impl_->now = std::max(impl_->now, now);
    impl_->flush();
    impl_->finish({StudyOutcome::resumable, what.reason, what.why});
    if (impl_->phase == Phase::publishing) impl_->leave(false);
}

void HeadMachine::on_tick(StudyTime now) {
    if (impl_->end) return;
    impl_->now = std::max(impl_->now, now);
    impl_->tick();
}

StudyTime HeadMachine::wake_at() const {
    const Impl& s = *impl_;
    StudyTime at = std::min({s.next_scan, s.next_view, s.last_tick + s.options.heartbeat_timeout / 4});
    if (const auto due = s.tuner.timer(); due && s.phase == Phase::running) at = std::min(at, *due);
    if (s.phase == Phase::publishing) at = std::min(at, s.now + std::chrono::milliseconds(10));
    if (s.leave_until) at = std::min(at, *s.leave_until);
    return at;
}

const std::optional<HeadEnd>& HeadMachine::end() const { return impl_->end; }
std::string HeadMachine::desertion() const { return impl_->desertion(); }
bool HeadMachine::began() const { return impl_->begun(); }
HeadFigures HeadMachine::figures(StudyTime now) const { return impl_->figures(now); }
void HeadMachine::set_head_cpu(double seconds) { impl_->head_cpu_s = seconds; }

std::vector<Rank> HeadMachine::gone() const {
    std::vector<Rank> gone;
    for (std::uint32_t r = 1; r <= impl_->options.workers; ++r)
        if (!impl_->workers[r].alive) gone.push_back(Rank(r));
    return gone;
}

} // namespace ranktune::head
