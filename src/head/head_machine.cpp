// SPDX-License-Identifier: Apache-2.0
#include "head/head_machine.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "head/background/preparer.hpp"
#include "head/rank_table.hpp"
#include "ranktune/base/text.hpp"
#include "study/side_tasks.hpp"

namespace ranktune::head {

using base::Rank;
using base::StudyTime;
using study::StudyOutcome;

namespace {

/// Debug builds check the core after every event; in large studies, where a check is slow, after every hundredth.
bool is_checked([[maybe_unused]] const tuner::State& state, [[maybe_unused]] std::uint64_t events) {
#ifdef NDEBUG
    return false;
#else
    return state.trials.size() <= 500 || events % 100 == 0;
#endif
}

/// The first trial that ends well shows whether the trainable and the study file agree on the parameters. (Later
/// trials may leave out some of them.)
std::optional<study::StopRequested> judge_what_was_read(const comm::GroupOver& m, const tuner::State& state) {
    using study::TrialPhase;
    if (m.unread.empty()) return std::nullopt;
    auto ended = state.in(TrialPhase::paused) + state.in(TrialPhase::finished) + state.in(TrialPhase::stopped);
    std::optional<study::TrialId> last; // those that still hold ranks, like this one, do not count
    for (const auto& worker : state.placement.workers()) {
        if (!worker.trial || worker.trial == last) continue;
        last = worker.trial;
        const tuner::Trial& t = state.trial(*last);
        if (t.attempt.ranks.front() == worker.info.rank && winds_down(t) && t.phase != TrialPhase::waiting &&
            t.phase != TrialPhase::failed)
            --ended;
    }
    if (ended > 0) return std::nullopt;
    return study::StopRequested{"trial #" + std::to_string(m.over.trial.value()) + " never read " +
                                    base::join(m.unread) + " of the study file: remove it there, read it in the " +
                                    "trainable, or give it a condition that says when it applies",
                                study::Reason::unread_parameter};
}

} // namespace

HeadMachine::HeadMachine(HeadOptions options, tuner::Tuner& tuner, study::RecordSink& sink, comm::Outbox& outbox,
                         HeadDuties& duties, Observer& observer, base::LogSink& log, StudyTime now)
    : options_(std::move(options)),
      tuner_(tuner),
      sink_(sink),
      outbox_(outbox),
      duties_(duties),
      observer_(observer),
      log_(log),
      table_(options_.workers, now),
      workers_(
          options_.workers, {options_.hello_timeout, options_.heartbeat_interval, options_.heartbeat_timeout}, outbox,
          [&duties](Rank rank, bool at_once) { return duties.end_rank(rank, at_once); }, log, now),
      iterations_before_(tuner.state().iterations),
      began_at_(now),
      now_(now),
      next_view_(now) {}

void HeadMachine::on_message(Rank from, std::span<const std::byte> bytes, StudyTime now) {
    now_ = std::max(now_, now);
    receive(from, bytes);
}

void HeadMachine::on_stop_request(const study::StopRequested& what, StudyTime now) {
    now_ = std::max(now_, now);
    stop(what);
}

void HeadMachine::on_deadline(std::optional<StudyTime> at, StudyTime now) {
    now_ = std::max(now_, now);
    deadline_ = at;
    deadline_told_ = true;
    if (phase_ != Phase::running) return begin_when_ready();
    study::DeadlineKnown body{at};
    step(body);
}

bool HeadMachine::may_be_steered() const {
    const tuner::State& state = tuner_.state();
    return phase_ == Phase::running && begun() && !state.draining && !state.ended;
}

void HeadMachine::on_steering(study::SteerAsked what, StudyTime now) {
    now_ = std::max(now_, now);
    step(what);
}

void HeadMachine::on_stop_at_once(const study::StopRequested& what, StudyTime now) {
    now_ = std::max(now_, now);
    flush();
    finish({StudyOutcome::resumable, what.reason, what.why});
    if (phase_ == Phase::publishing) leave(false);
}

void HeadMachine::on_rank_ended(Rank rank, StudyTime now) {
    now_ = std::max(now_, now);
    if (!workers_.has(rank)) return count_stale();
    workers_.on_ended(rank, now_);
}

void HeadMachine::on_tick(StudyTime now) {
    if (end_) return;
    now_ = std::max(now_, now);
    tick();
}

StudyTime HeadMachine::wake_at() const {
    StudyTime at = std::min(next_view_, workers_.wake_at());
    if (const auto due = tuner_.timer(); due && phase_ == Phase::running) at = std::min(at, *due);
    if (phase_ == Phase::publishing) at = std::min(at, now_ + std::chrono::milliseconds(10));
    if (leave_until_) at = std::min(at, *leave_until_);
    return at;
}

HeadFigures HeadMachine::figures(StudyTime at) const {
    const RankSeconds ranks = table_.seconds(at);
    HeadFigures figures;
    figures.elapsed_s = base::to_seconds(at - began_at_);
    figures.head_cpu_s = head_cpu_s_;
    figures.training_s = ranks.training;
    figures.starting_s = ranks.starting;
    figures.idle_s = ranks.idle;
    figures.data_s = data_s_;
    figures.iterations_before = iterations_before_;
    figures.stale_messages = stale_ + output_.stale;
    figures.checkpoints_missed = missed_;
    figures.checkpoint_error = missed_why_;
    figures.fallbacks = fallbacks_;
    std::set<std::string> hosts;
    for (const Worker& worker : workers_) {
        const comm::Staging& staging = worker.staging;
        if (!worker.alive || staging.bytes == 0) continue;
        hosts.insert(worker.info.host);
        figures.copies.nodes = static_cast<std::uint32_t>(hosts.size());
        figures.copies.bytes += staging.bytes;
        figures.copies.copied += staging.copied;
        figures.copies.read += staging.read;
    }
    return figures;
}

// --- events for the core ---

/// Steps the core; `body` gets the buffers of an earlier event of its kind in exchange.
template <class T>
void HeadMachine::step(T& body) {
    if (phase_ != Phase::running || (begun() && tuner_.state().ended)) return count_stale();
    if (T* held = std::get_if<T>(&event_.body); held != nullptr)
        std::swap(*held, body);
    else
        event_.body = std::move(body);
    event_.now = now_;
    tuner_.step(event_, output_);
    ++events_;
    if (options_.check_invariants || is_checked(tuner_.state(), events_)) tuner_.check_invariants();
}

void HeadMachine::begin() {
    phase_ = Phase::running;
    study::DeadlineKnown known{deadline_}; // before the first trials start; replaces the deadline of an earlier job
    step(known);
    study::Began body{options_.incarnation, {}, options_.wall_time, options_.death};
    for (const Worker& worker : workers_) body.workers.push_back(worker.info);
    step(body);
    if (early_stop_) stop(*early_stop_);
}

/// Begins when all workers are here and the deadline is known, or waited for long enough.
void HeadMachine::begin_when_ready() {
    if (phase_ != Phase::joining || !workers_.all_here()) return;
    if (deadline_told_ || now_ - began_at_ >= options_.deadline_timeout) begin();
}

void HeadMachine::stop(study::StopRequested what) {
    if (phase_ == Phase::joining) {
        if (!early_stop_ || is_person(what.by)) early_stop_ = std::move(what);
    } else if (phase_ == Phase::running) {
        step(what);
    }
}

void HeadMachine::lose(Rank rank, const std::string& why, bool guilty) {
    Worker& worker = workers_[rank];
    if (!worker.alive) return;
    worker.alive = false;
    const comm::AttemptKey held = table_.held_by(rank);
    std::vector<base::LogField> fields{{"rank", std::to_string(rank.value())}, {"host", worker.info.host}};
    if (held.attempt != base::AttemptId{}) fields.push_back({"trial", study::unit_text(held.trial)});
    fields.push_back({"reason", why});
    log_.write(base::LogLevel::error, "lost", fields);
    if (table_.leader_of(rank) == rank) places_.over(held);
    table_.lose(rank, now_);
    if (phase_ == Phase::joining)
        return finish({StudyOutcome::runtime_error, study::Reason::lost,
                       "worker rank " + std::to_string(rank.value()) + " ended before the study began: " + why});
    study::RankGone body{rank, why, guilty};
    if (phase_ == Phase::running) step(body);
}

/// Gives up a rank that cannot say why any more: the note that it left, if any, tells whose fault it was.
void HeadMachine::lose_dead(const Workers::Lost& lost) {
    const auto left = duties_.last_words(lost.rank);
    const bool guilty =
        left && left->guilty &&
        comm::AttemptKey{left->note.trial, left->note.attempt, options_.incarnation} == table_.held_by(lost.rank);
    lose(lost.rank, left ? left->note.failure.message : lost.why, guilty);
}

// --- messages ---

void HeadMachine::on(Rank from, comm::Hello& m) {
    if (workers_[from].hello || phase_ != Phase::joining) return count_stale();
    workers_[from].info = place_of(from, m, options_.places, tuner_.spec().resources.gpus);
    if (m.protocol != comm::protocol_version || m.version != options_.version)
        return finish({StudyOutcome::usage, study::Reason::none,
                       "rank " + std::to_string(from.value()) + " on " + m.host + " runs ranktune " + m.version +
                           " (messages " + std::to_string(m.protocol) + "), the head " + options_.version +
                           " (messages " + std::to_string(comm::protocol_version) +
                           "): start the same program on all ranks"});
    workers_.on_hello(from);
    workers_.send(
        from,
        comm::Welcome{options_.incarnation, options_.study, options_.study_directory, options_.heartbeat_interval,
                      options_.heartbeat_timeout, options_.abort_grace, options_.progress_timeout},
        now_);
    begin_when_ready();
}

void HeadMachine::on(Rank from, comm::Heartbeat& m) {
    if (m.progress > 0) table_.training(from, m.key, now_);
}

void HeadMachine::on(Rank, comm::RankEnded& m) { on_rank_ended(m.rank, now_); }

void HeadMachine::on(Rank from, comm::RankWaits& m) {
    if (!workers_.has(m.rank)) return count_stale();
    Worker& worker = workers_[m.rank];
    // The answer came so late that the rank was given up: its trial goes on elsewhere, so it must not.
    if (!worker.alive) return workers_.send(from, comm::EndRank{m.rank, true}, now_);
    workers_.spare(worker);
}

void HeadMachine::on(Rank, comm::StopAsked& m) {
    const study::Asker by = options_.signal_meaning ? options_.signal_meaning(m.by) : m.by;
    stop({std::string(study::name(by)), study::Reason::draining, by});
}

void HeadMachine::on(Rank from, study::ReportArrived& m) {
    table_.training(from, comm::key_of(m), now_);
    workers_.take_note(from, comm::key_of(m), now_);
    const auto waited = std::ranges::find(m.metrics, study::data_wait_metric, &study::NamedMetric::name);
    const bool is_trial = !study::side_task_of(m.trial);
    if (is_trial && waited != m.metrics.end() && waited->value > 0.0 && table_.held_by(from) == comm::key_of(m)) {
        const tuner::Trial& trial = tuner_.state().trial(m.trial);
        data_s_ += std::clamp(waited->value, 0.0, std::max(0.0, m.seconds - trial.seconds)) *
                   static_cast<double>(trial.attempt.ranks.size());
    }
    step(m);
}

void HeadMachine::on(Rank, study::CheckpointSaved& m) {
    if (places_.may_commit(comm::key_of(m), m.checkpoint.path)) step(m);
}

/// Trials that name the same place get each other's state: the study ends before that is used.
void HeadMachine::on(Rank from, comm::PlaceNamed& m) {
    if (phase_ != Phase::running || table_.held_by(from) != m.key) return count_stale();
    const NamedPlaces::Clash clash = places_.named(m.key, m.host, m.path);
    if (clash.others.empty()) return;
    const auto number = [](const comm::AttemptKey& key) { return "#" + std::to_string(key.trial.value()); };
    const std::string both = number(clash.others.front()) + " and " + number(m.key);
    for (const std::string& checkpoint : clash.checkpoints)
        duties_.set_aside(checkpoint, "trials " + both + " ran side by side and saved to the same place, " + m.path);
    workers_.send(from, comm::PlaceContested{m.key}, now_);
    for (const comm::AttemptKey& other : clash.others)
        if (const Rank leader = leader_of(other); leader != base::head_rank)
            workers_.send(leader, comm::PlaceContested{other}, now_);
    const std::string inside = clash.place == m.path ? "" : " ('" + clash.place + "')";
    stop(
        {"trials " + both + " run side by side and name the same checkpoint, '" + m.path + "'" + inside +
             ": each may get the state of the other. Save below ranktune.context().checkpoint_dir "
             "(RANKTUNE_CHECKPOINT_DIR), or let each trial work in a folder of its own: cwd = \"trial\" in [trainable]",
         study::Reason::stateless});
}

void HeadMachine::on(Rank from, comm::Staging& m) {
    workers_[from].staging = m;
    if (!m.problem.empty()) finish({StudyOutcome::runtime_error, study::Reason::none, m.problem});
}

void HeadMachine::on(Rank, comm::CheckpointMissed& m) {
    missed_why_ = std::move(m.why);
    if (++missed_ < missed_told_) return;
    missed_told_ *= 10;
    log_.write(base::LogLevel::warning, "no-checkpoint",
               {{"trial", std::to_string(m.key.trial.value())},
                {"so_far", std::to_string(missed_)},
                {"error", missed_why_},
                {"action", "training goes on; tried again when the next is due"}});
}

void HeadMachine::on(Rank from, comm::GroupOver& m) {
    if (m.over.outcome == study::AttemptOutcome::unreadable) ++fallbacks_;
    if (table_.finish(from, comm::key_of(m.over), m.starting_s, m.training_s, now_)) places_.over(comm::key_of(m.over));
    if (phase_ == Phase::running)
        if (auto stop = judge_what_was_read(m, tuner_.state())) step(*stop);
    step(m.over);
}

void HeadMachine::on(Rank from, comm::Bye& m) {
    Worker& worker = workers_[from];
    if (worker.bye) return count_stale();
    if (worker.told_to_leave && m.why.empty()) {
        worker.bye = true;
    } else {
        if (m.head_silent) workers_.on_deserted(now_);
        // An attempt whose leader is gone is over for the head, and the others of its ranks may have a new one.
        const bool guilty = m.hung.attempt != base::AttemptId{} && m.hung == table_.held_by(from);
        lose(from, m.why.empty() ? "it left unasked" : m.why, guilty);
    }
}

void HeadMachine::receive(Rank from, std::span<const std::byte> bytes) {
    if (!workers_.has(from)) return count_stale();
    Worker& worker = workers_[from];
    if (!worker.alive) {
        // The rank was given up but lives: it must not continue to use its group's devices and files.
        count_stale();
        if (!worker.told_to_leave) tell_to_leave(from, false);
        return;
    }
    worker.heard = now_;
    try {
        comm::decode_message(bytes, message_);
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
        message_);
}

// --- records, then commands ---

void HeadMachine::flush() {
    if (!output_.records.empty()) {
        try {
            sink_.append(output_.records);
        } catch (const base::Error& error) {
            // A record that is not written was never decided: drop its commands.
            output_.clear();
            return end_without_journal(error);
        }
        observer_.on_records(tuner_, output_.records, figures(now_));
    }
    for (const study::Command& command : output_.commands) std::visit([&](const auto& c) { carry_out(c); }, command);
    output_.clear();
}

void HeadMachine::carry_out(const study::StartTrial& c) {
    living_.clear();
    for (const Rank rank : c.ranks)
        if (workers_[rank].alive) living_.push_back(rank);
    // If the leader was lost in the same round, the core has sent Abandon too: the attempt never starts.
    if (!living_.empty() && living_.front() == c.ranks.front()) {
        table_.start(comm::key_of(c), living_, now_);
        places_.began(comm::key_of(c));
    }
    workers_.send(living_, c, now_);
}

/// The leader of an attempt that still holds its ranks; otherwise the head's own rank.
Rank HeadMachine::leader_of(const comm::AttemptKey& key) const {
    Rank leader = base::head_rank;
    if (study::side_task_of(key.trial)) {
        if (const auto* work = tuner_.state().side.current(key.trial, key.attempt)) leader = work->rank;
    } else if (const auto& ranks = tuner_.state().trial(key.trial).attempt.ranks; !ranks.empty()) {
        leader = ranks.front();
    }
    return leader != base::head_rank && table_.held_by(leader) == key ? leader : base::head_rank;
}
template <class T>
void HeadMachine::to_leader(const T& c) {
    if (const Rank leader = leader_of(comm::key_of(c)); leader != base::head_rank) workers_.send(leader, c, now_);
}
void HeadMachine::carry_out(const study::Decide& c) { to_leader(c); }
void HeadMachine::carry_out(const study::Interrupt& c) { to_leader(c); }
void HeadMachine::carry_out(const study::Abandon& c) { workers_.send(c.ranks, c, now_); }
void HeadMachine::carry_out(const study::DeleteCheckpoint& c) {
    try {
        duties_.delete_checkpoint(c);
    } catch (const base::Error& error) { // the files stay; the next start removes them
        end_without_journal(error);
    }
}
void HeadMachine::carry_out(const study::Prepare& c) {
    if (auto work = tuner_.preparation(c.ticket)) duties_.prepare(c.ticket, std::move(*work));
}
void HeadMachine::carry_out(const study::EndStudy& c) { finish(c, HeadEnd::Whose::study); }

// --- the end ---

void HeadMachine::end_without_journal(const base::Error& error) {
    finish({StudyOutcome::resumable, study::Reason::unsaved,
            std::string("the journal cannot be written: ") + error.what()});
}

void HeadMachine::finish(study::EndStudy how, HeadEnd::Whose end_of) {
    if (phase_ >= Phase::publishing) return;
    whose_ = end_of;
    const bool ranks_are_gone = how.reason == study::Reason::no_ranks || how.reason == study::Reason::lost;
    if (std::string why = desertion(); ranks_are_gone && !why.empty()) {
        how = {StudyOutcome::resumable, study::Reason::lost, std::move(why)};
        whose_ = HeadEnd::Whose::head;
    }
    phase_ = Phase::publishing;
    result_ = std::move(how);
    duties_.publish(result_);
}

void HeadMachine::tell_to_leave(Rank rank, bool clean) {
    workers_[rank].told_to_leave = true;
    workers_.send(rank, comm::Leave{result_.outcome, clean, result_.message}, now_);
}

void HeadMachine::leave(bool clean) {
    phase_ = Phase::leaving;
    leave_clean_ = clean;
    leave_until_ = now_ + options_.abort_grace + std::chrono::seconds(10);
    for (const Worker& worker : workers_)
        if (worker.alive) tell_to_leave(worker.info.rank, clean);
}

void HeadMachine::leave_or_end() {
    // A worker that has not said Hello may never come: nobody may wait for it in MPI_Finalize.
    if (phase_ == Phase::publishing && duties_.published()) {
        if (auto other = duties_.instead()) {
            result_ = std::move(other->end);
            whose_ = other->tables ? HeadEnd::Whose::study_without_tables : HeadEnd::Whose::head;
        }
        leave(workers_.all_here() && gone().empty());
    }
    if (phase_ != Phase::leaving) return;
    const bool silent = now_ >= *leave_until_;
    bool clean = leave_clean_;
    for (const Worker& worker : workers_) {
        if (worker.bye) continue;
        clean = false;
        const bool awaited = worker.alive && worker.hello;
        if (awaited && !silent) return;
        if (awaited)
            log_.write(base::LogLevel::warning, "silent",
                       {{"rank", std::to_string(worker.info.rank.value())}, {"host", worker.info.host}});
    }
    phase_ = Phase::over;
    end_ = HeadEnd{result_.outcome, result_.message, clean, result_.reason, whose_};
    observer_.on_tick(tuner_, figures(now_));
}

// --- time ---

void HeadMachine::tick() {
    begin_when_ready();
    watch();
    if (const auto due = tuner_.timer(); due && now_ >= *due && phase_ == Phase::running) {
        study::TimerFired body;
        step(body);
    }
    while (phase_ == Phase::running) {
        auto prepared = duties_.prepared();
        if (!prepared) break;
        auto stop = look_at(*prepared, tuner_.spec().searcher, log_);
        step(*prepared);
        if (stop) step(*stop);
    }
    flush();
    stage_what_is_made();
    leave_or_end();
    if (now_ >= next_view_ && !end_) {
        next_view_ = now_ + options_.observer_interval;
        observer_.on_tick(tuner_, figures(now_));
    }
}

void HeadMachine::stage_what_is_made() {
    if (staged_ || phase_ != Phase::running || !begun() || !tuner_.state().side.is_prepared()) return;
    staged_ = true;
    if (!study::makes_staged_files(tuner_.spec())) return;
    for (const Worker& worker : workers_)
        if (worker.alive) workers_.send(worker.info.rank, comm::Stage{}, now_);
}

/// Gives up ranks that are silent, or whose processes have ended.
void HeadMachine::watch() {
    if (workers_.watch(now_)) {
        if (std::string why = phase_ == Phase::joining ? workers_.missing(now_) : ""; !why.empty())
            finish({StudyOutcome::runtime_error, study::Reason::lost, std::move(why)});
        else
            for (const Workers::Lost& lost : workers_.scan(now_)) lose_dead(lost);
    }
    for (const Workers::Lost& lost : workers_.ended(now_)) lose_dead(lost);
}

} // namespace ranktune::head
