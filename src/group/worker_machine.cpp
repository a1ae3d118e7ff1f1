// SPDX-License-Identifier: Apache-2.0
#include "group/worker_machine.hpp"

#include <algorithm>
#include <csignal>
#include <exception>
#include <utility>

#include "ranktune/study/parse.hpp"

namespace ranktune::group {

using base::StudyTime;
using study::AttemptOutcome;
using Stage = Part::Stage;

namespace {

/// How long user code may go on after a Leave that forbids finalising MPI.
constexpr base::Duration unclean_grace = std::chrono::seconds(2);

/// So many times the grace of user code a leader waits for members whose group is lost: they find out at their next
/// operation of the group, and validation may take minutes.
constexpr int graces_of_lost = 10;

std::string study_seconds(base::Duration duration) {
    return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(duration).count()) + " s";
}

} // namespace

WorkerMachine::WorkerMachine(WorkerOptions options, wire::Outbox& outbox, MakeRunner make_runner, base::LogSink& log,
                             StudyTime now)
    : options_(std::move(options)),
      outbox_(outbox),
      make_runner_(std::move(make_runner)),
      log_(log),
      heard_head_(now),
      last_tick_(now) {
    send(base::head_rank, wire::Hello{wire::protocol_version, options_.version, options_.host, options_.gpus,
                                      options_.gpu.uuid, options_.gpu.island, options_.gpu.fabric});
}

void WorkerMachine::on_message(base::Rank from, std::span<const std::byte> bytes, StudyTime now) {
    if (end_) return;
    try {
        wire::decode_message(bytes, message_);
    } catch (const base::FormatError& error) {
        return give_up("cannot read a message of rank " + std::to_string(from.value()) + ": " + error.what(), true);
    }
    if (from == base::head_rank) heard_head_ = now;
    dispatch(from, now);
}

void WorkerMachine::on_stop_request(study::Asker signal, StudyTime) {
    if (!end_) send(base::head_rank, wire::StopAsked{signal});
}

void WorkerMachine::on_rank_ended(base::Rank rank) {
    if (end_ || leave_) return;
    if (rank != base::head_rank) return send(base::head_rank, wire::RankEnded{rank});
    wire::encode_message(wire::RankEnded{rank}, buffer_);
    for (std::uint32_t r = 1; r < options_.ranks; ++r)
        if (r != options_.rank.value()) outbox_.send(base::Rank(r), buffer_);
    lose_head("the process of the head has ended", false);
}

void WorkerMachine::on_tick(StudyTime now) {
    if (end_) return;
    if (current_ && current_->stage == Stage::queued && !leave_) become_ready(*current_);
    poll_runner(now);
    if (end_) return;
    heartbeat(now);
    watch(now);
}

StudyTime WorkerMachine::wake_at() const {
    StudyTime at = std::min(heard_head_ + head_timeout(), last_tick_ + head_timeout() / 4);
    if (welcome_ && !leave_) at = std::min(at, next_heartbeat_);
    if (grace_until_) at = std::min(at, *grace_until_);
    if (const auto limit = hung_at()) at = std::min(at, *limit);
    if (const auto limit = closes_at()) at = std::min(at, *limit);
    return at;
}

template <class T>
void WorkerMachine::send(base::Rank to, const T& what) {
    wire::encode_message(what, buffer_);
    outbox_.send(to, buffer_);
}

void WorkerMachine::finish(study::StudyOutcome outcome, std::string text, bool clean, bool at_once) {
    if (!end_) end_ = WorkerEnd{outcome, std::move(text), clean, at_once};
}
/// Ends the worker on its own initiative and tells the head why. `guilty`: requires a current part, which is to blame.
void WorkerMachine::give_up(const std::string& why, bool at_once, bool guilty) {
    if (end_) return;
    log_.write(base::LogLevel::error, "worker", {{"rank", std::to_string(options_.rank.value())}, {"reason", why}});
    send(base::head_rank, wire::Bye{why, guilty ? current_->key : wire::AttemptKey{}});
    finish(study::StudyOutcome::runtime_error, why, false, at_once);
    end_->guilty = guilty;
}

Part* WorkerMachine::find(const wire::AttemptKey& key) {
    if (current_ && current_->key == key) return &*current_;
    if (next_ && next_->key == key) return &*next_;
    return nullptr;
}
bool WorkerMachine::is_new(const wire::AttemptKey& key) const {
    // Another member may have been welcomed and started before this one.
    if (welcome_ && key.incarnation != welcome_->incarnation) return false;
    const auto at = seen_.find(key.trial);
    return at == seen_.end() || at->second < key.attempt;
}

// --- the life of a part ---

/// Tells user code to return, within a limited time.
void WorkerMachine::stop_user_code(StudyTime now) {
    runner_->abandon();
    if (!grace_until_) grace_until_ = now + welcome_->abort_grace;
}

/// Or stays queued, until this rank is prepared.
void WorkerMachine::become_ready(Part& part) {
    if (!runner_->prepared()) {
        prepares_ = true;
        return;
    }
    part.stage = Stage::ready;
    if (!part.leads()) return send(part.leader(), wire::Ready{part.key});
    part.members.front().ready = true;
    go_if_ready(part);
}

void WorkerMachine::go_if_ready(Part& part) {
    if (!part.may_go()) return;
    for (const Part::Member& member : part.members)
        if (member.rank != options_.rank) send(member.rank, wire::Go{part.key});
    run(part);
}

void WorkerMachine::run(Part& part) {
    part.stage = Stage::running;
    part.progress_base = part.progress_seen = runner_->progress();
    runner_->start(part.assignment);
    if (part.interrupt) runner_->interrupt(*part.interrupt);
}

/// No user code of `part` runs here any more. May end the part; the caller must not use it afterwards.
void WorkerMachine::over_here(Part& part, AttemptOutcome outcome, const study::Failure& failure, StudyTime now) {
    part.stage = Stage::over;
    part.ended = now;
    const AttemptOutcome told = part.abandoned ? AttemptOutcome::lost : outcome;
    if (part.leads()) {
        member_over(part, options_.rank, told, failure);
    } else {
        send(part.leader(), wire::MemberOver{part.key, told, failure});
        drop(part);
    }
}

void WorkerMachine::member_over(Part& part, base::Rank rank, AttemptOutcome outcome, const study::Failure& failure) {
    Part::Member* member = part.member(rank);
    if (member == nullptr || member->over) return count_stale();
    member->over = true;
    member->outcome = outcome;
    member->failure = failure;
    if (outcome == AttemptOutcome::lost && !part.lost) part.lost = last_tick_;
    close_if_all_over(part);
}

/// When a leader no longer waits for members whose group is lost: user code that hangs may never return.
std::optional<StudyTime> WorkerMachine::closes_at() const {
    if (!welcome_ || leave_ || grace_until_ || !current_ || !current_->lost || current_->abandoned) return std::nullopt;
    if (current_->stage != Stage::running && current_->stage != Stage::over)
        return std::nullopt; // the head gives it up
    return *current_->lost + graces_of_lost * welcome_->abort_grace;
}

/// Nobody trains yet, as some members are not prepared, which may take long. These wait for what comes next.
void WorkerMachine::end_unprepared(Part& part, const study::Verdict& verdict) {
    part.stage = Stage::over;
    part.ended = last_tick_;
    for (Part::Member& member : part.members) {
        member.over = true;
        member.outcome = verdict.verb == study::Verb::pause ? AttemptOutcome::paused : AttemptOutcome::stopped;
    }
    close_if_all_over(part);
}

/// The head gives their ranks another attempt. They end then, if user code still does not return.
void WorkerMachine::close_lost(StudyTime now) {
    if (current_->stage == Stage::running) return stop_user_code(now);
    current_->close();
    close_if_all_over(*current_);
    move_up();
}

void WorkerMachine::close_if_all_over(Part& part) {
    if (part.stage != Stage::over || !part.all_over()) return;
    send(base::head_rank, part.summary());
    drop(part);
}

void WorkerMachine::drop(Part& part) {
    if (next_ && &part == &*next_)
        next_.reset();
    else
        current_.reset();
}

/// Moves the waiting attempt up if `current_` is free.
void WorkerMachine::move_up() {
    if (current_ || !next_) return;
    current_ = std::move(next_);
    next_.reset();
    if (current_->stage == Stage::queued) become_ready(*current_);
}

void WorkerMachine::abandon(Part& part, const std::vector<base::Rank>& living, StudyTime now) {
    part.abandon(living);
    switch (part.stage) {
        case Stage::queued:
        case Stage::ready:
            over_here(part, AttemptOutcome::lost, {}, now);
            break;
        case Stage::running:
            stop_user_code(now);
            break;
        case Stage::over:
            close_if_all_over(part);
            break;
    }
}

// --- messages ---

void WorkerMachine::on(const wire::Welcome& m, StudyTime now) {
    if (welcome_ || leave_) return count_stale();
    welcome_ = m;
    next_heartbeat_ = now;
    try {
        runner_ = make_runner_(m);
    } catch (const std::exception& error) {
        give_up(error.what(), false);
    }
}

void WorkerMachine::on(const study::StartTrial& m, StudyTime now) {
    if (leave_ || !runner_ || !is_new(wire::key_of(m))) return count_stale();
    std::optional<Part> part = Part::make(m, options_.rank, now);
    if (!part) return count_stale();
    seen_[m.trial] = m.attempt;
    // The head counts this rank as free. If user code of an older attempt still runs, its leader died.
    if (current_ && current_->stage == Stage::running) {
        current_->abandoned = true;
        stop_user_code(now);
        next_ = std::move(part);
        take_early(*next_);
    } else {
        next_.reset();
        current_ = std::move(part);
        take_early(*current_);
        become_ready(*current_);
    }
}

/// Gives a leader the messages of members that came before its own StartTrial.
void WorkerMachine::take_early(Part& part) {
    std::erase_if(early_, [&](const Early& item) {
        if (item.key == part.key) {
            if (Part::Member* member = part.member(item.from); member != nullptr) {
                member->ready = member->ready || !item.over;
                if (item.over) {
                    member->over = true;
                    member->outcome = item.over->outcome;
                    member->failure = item.over->failure;
                }
            }
        }
        return !is_new(item.key);
    });
}

void WorkerMachine::on(const study::Decide& m, StudyTime) {
    Part* part = find(wire::key_of(m));
    if (part == nullptr || !part->leads() || part->stage != Stage::running || m.iteration <= part->decided)
        return count_stale();
    part->decided = m.iteration;
    runner_->decide(m);
}

void WorkerMachine::on(const wire::ReportsTaken& m, StudyTime) {
    Part* part = find(m.key);
    if (part == nullptr || !part->leads() || m.reports > part->reports) return count_stale();
    part->reports_taken = std::max(part->reports_taken, m.reports);
}

void WorkerMachine::on(const study::Interrupt& m, StudyTime) {
    Part* part = find(wire::key_of(m));
    if (part == nullptr || !part->leads() || part->stage == Stage::over) return count_stale();
    if (part->stage == Stage::running)
        runner_->interrupt(m.verdict);
    else if (prepares_ && current_ && part == &*current_)
        end_unprepared(*part, m.verdict);
    else
        part->interrupt = m.verdict;
}

void WorkerMachine::on(const wire::PlaceContested& m, StudyTime) {
    Part* part = find(m.key);
    if (part == nullptr || !part->leads() || part->stage != Stage::running) return count_stale();
    runner_->contest();
}

void WorkerMachine::on(base::Rank, const wire::RankEnded& m) {
    if (m.rank == base::head_rank) lose_head("the process of the head has ended", false);
}

void WorkerMachine::on(const wire::EndRank& m, StudyTime) {
    if (options_.kill_silent && options_.kill_silent(m.rank, m.at_once) == process::Killing::waits)
        send(base::head_rank, wire::RankWaits{m.rank});
}

void WorkerMachine::on(const study::Abandon& m, StudyTime now) {
    Part* part = find(wire::key_of(m));
    if (part == nullptr) return count_stale();
    abandon(*part, m.ranks, now);
    move_up();
}

void WorkerMachine::on(const wire::Alive&, StudyTime) {}

void WorkerMachine::on(const wire::Leave& m, StudyTime now) {
    if (leave_) return count_stale();
    leave_ = m;
    next_.reset();
    if (current_ && current_->stage == Stage::running) {
        current_->abandoned = true;
        stop_user_code(now);
        // The process will `_exit` anyway (a rank is dead, or the study ends at once): do not wait long.
        if (!m.clean) grace_until_ = std::min(*grace_until_, now + unclean_grace);
    } else {
        say_bye();
    }
}

void WorkerMachine::say_bye() {
    send(base::head_rank, wire::Bye{});
    finish(leave_->outcome, leave_->message, leave_->clean, false);
}

void WorkerMachine::on(base::Rank from, const wire::Ready& m) {
    if (Part* part = find(m.key); part != nullptr && part->leads()) {
        Part::Member* member = part->member(from);
        if (member == nullptr || member->ready) return count_stale();
        member->ready = true;
        go_if_ready(*part);
    } else if (is_new(m.key)) {
        early_.push_back({m.key, from, std::nullopt});
    } else {
        count_stale();
    }
}

void WorkerMachine::on(base::Rank from, const wire::Go& m) {
    if (!current_ || current_->key != m.key || current_->stage != Stage::ready || from != current_->leader() ||
        current_->leads())
        return count_stale();
    run(*current_);
}

void WorkerMachine::on(base::Rank from, const wire::MemberOver& m) {
    if (Part* part = find(m.key); part != nullptr && part->leads()) {
        member_over(*part, from, m.outcome, m.failure);
        move_up();
    } else if (is_new(m.key)) {
        early_.push_back({m.key, from, m});
    } else {
        count_stale();
    }
}

void WorkerMachine::dispatch(base::Rank from, StudyTime now) {
    std::visit(
        [&](const auto& m) {
            if constexpr (requires { this->on(m, now); }) {
                if (from == base::head_rank) return this->on(m, now);
            } else if constexpr (requires { this->on(from, m); }) {
                if (!leave_) return this->on(from, m);
            }
            count_stale();
        },
        message_);
}

// --- the runner ---

void WorkerMachine::poll_runner(StudyTime now) {
    if (!runner_) return;
    note_progress(now);
    while (!held_up()) {
        auto event = runner_->poll();
        if (!event) return;
        if (!current_ || current_->stage != Stage::running) {
            count_stale();
            continue;
        }
        std::visit([&](auto& happened) { on_runner(happened, now); }, *event);
    }
}

void WorkerMachine::note_progress(StudyTime now) {
    if (!current_ || current_->stage != Stage::running) return;
    if (held_up() || runner_->waits()) current_->moved = now;
    const std::uint64_t progress = runner_->progress();
    if (!current_->progressed && progress != current_->progress_base) current_->progressed = now;
    if (current_->moved && progress == current_->progress_seen) return;
    current_->progress_seen = progress;
    current_->moved = now;
}

/// When user code counts as hung. User code that was told to return has its own limit.
std::optional<StudyTime> WorkerMachine::hung_at() const {
    if (!welcome_ || welcome_->progress_timeout == base::Duration{} || leave_ || grace_until_) return std::nullopt;
    if (!current_ || current_->stage != Stage::running || !current_->moved) return std::nullopt;
    return *current_->moved + welcome_->progress_timeout;
}

void WorkerMachine::on_runner(trial::RunnerReported& happened, StudyTime now) {
    if (!current_->progressed) current_->progressed = now;
    // After giving up, the head ignores reports.
    if (!current_->leads() || current_->abandoned) return;
    current_->trained_s = happened.seconds - current_->assignment.start.seconds;
    const wire::AttemptKey& key = current_->key;
    ++current_->reports;
    send(base::head_rank, study::ReportArrived{key.trial, key.attempt, key.incarnation, happened.iteration,
                                               happened.seconds, std::move(happened.metrics)});
}

void WorkerMachine::on_runner(trial::RunnerSaved& happened, StudyTime) {
    if (!current_->leads()) return;
    const wire::AttemptKey& key = current_->key;
    happened.checkpoint.generation = current_->assignment.start.generation;
    send(base::head_rank,
         study::CheckpointSaved{key.trial, key.attempt, key.incarnation, std::move(happened.checkpoint)});
}

void WorkerMachine::on_runner(trial::RunnerUnsaved& happened, StudyTime) {
    send(base::head_rank, wire::CheckpointMissed{current_->key, std::move(happened.why)});
}

void WorkerMachine::on_runner(trial::RunnerNamed& happened, StudyTime) {
    send(base::head_rank,
         wire::PlaceNamed{current_->key, std::move(happened.place.host), std::move(happened.place.path)});
}

void WorkerMachine::on_runner(trial::RunnerEnded& happened, StudyTime now) {
    grace_until_.reset();
    if (!happened.sick_device.empty() && !leave_) {
        give_up(happened.sick_device, false);
        end_->device = true;
        return;
    }
    if (leave_) {
        current_.reset();
        return say_bye();
    }
    current_->unread = std::move(happened.unread);
    current_->program_start_s = happened.starting_s;
    over_here(*current_, happened.outcome, happened.failure, now);
    // The leader of a superseded attempt has nobody to report to.
    if (next_ && current_ && current_->abandoned) current_.reset();
    move_up();
}

// --- time ---

void WorkerMachine::heartbeat(StudyTime now) {
    if (!welcome_ || leave_ || now < next_heartbeat_) return;
    next_heartbeat_ = now + welcome_->heartbeat_interval;
    wire::Heartbeat beat;
    if (current_ && current_->stage != Stage::over) {
        beat.key = current_->key;
        if (current_->stage == Stage::running) beat.progress = runner_->progress() - current_->progress_base;
    }
    send(base::head_rank, beat);
}

void WorkerMachine::watch(StudyTime now) {
    // Time in which this process was suspended does not count as silence.
    if (const base::Duration gap = now - last_tick_; gap > head_timeout() / 4) {
        heard_head_ += gap;
        if (current_ && current_->moved) *current_->moved += gap;
    }
    last_tick_ = now;
    if (grace_until_ && now >= *grace_until_) {
        const std::string limit = study_seconds(leave_ && !leave_->clean ? unclean_grace : welcome_->abort_grace);
        const std::string why = "user code did not return within " + limit + " after it was told to stop";
        if (!leave_) return give_up(why, true);
        log_.write(base::LogLevel::warning, "worker", {{"reason", why}});
        send(base::head_rank, wire::Bye{});
        return finish(leave_->outcome, why, false, true); // the exit code stays the study's
    }
    if (const auto limit = hung_at(); limit && now >= *limit)
        return give_up("no report or gradient step for " + study::duration_text(welcome_->progress_timeout) +
                           " (failure.report_timeout)",
                       true, true);
    if (const auto limit = closes_at(); limit && now >= *limit) close_lost(now);
    if (now - heard_head_ >= head_timeout())
        lose_head("no sign of life of the head for " + study_seconds(head_timeout()), true);
}

/// `silent`: the head may only be held up; then the message tells it later why its workers left.
void WorkerMachine::lose_head(const std::string& why, bool silent) {
    log_.write(base::LogLevel::error, "worker", {{"rank", std::to_string(options_.rank.value())}, {"reason", why}});
    if (silent) send(base::head_rank, wire::Bye{why, {}, true});
    // A head that somebody has stopped must read that, where no launcher ends it.
    if (silent && options_.signal_rank) options_.signal_rank(base::head_rank, SIGCONT);
    finish(study::StudyOutcome::resumable, why, false, true);
    end_->lost_head = true;
}

} // namespace ranktune::group
