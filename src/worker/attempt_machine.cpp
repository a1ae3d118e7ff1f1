// SPDX-License-Identifier: Apache-2.0
#include "worker/attempt_machine.hpp"

#include <algorithm>
#include <utility>

#include "ranktune/study/parse.hpp"
#include "ranktune/study/side_task.hpp"

namespace ranktune::worker {

using base::StudyTime;
using study::AttemptOutcome;
using Stage = Part::Stage;

namespace {

/// How long user code may go on after a Leave that forbids finalising MPI.
constexpr base::Duration unclean_grace = std::chrono::seconds(2);

/// So many times the grace of user code a leader waits for members whose group is lost: they find out at their next
/// operation of the group, and validation may take minutes.
constexpr int graces_of_lost = 10;

} // namespace

void AttemptMachine::begin(std::unique_ptr<worker::Runner> runner, const comm::Welcome& welcome) {
    runner_ = std::move(runner);
    incarnation_ = welcome.incarnation;
    abort_grace_ = welcome.abort_grace;
    progress_timeout_ = welcome.progress_timeout;
}

void AttemptMachine::leave(bool clean, StudyTime now) {
    leaving_ = true;
    next_.reset();
    if (!runs()) return;
    current_->abandoned = true;
    stop_user_code(now);
    if (clean) return;
    // The process will `_exit` anyway (a rank is dead, or the study ends at once): do not wait long.
    abort_grace_ = unclean_grace;
    grace_until_ = std::min(*grace_until_, now + unclean_grace);
}

template <class T>
void AttemptMachine::send(base::Rank to, const T& what) {
    comm::encode_message(what, buffer_);
    outbox_.send(to, buffer_);
}

Part* AttemptMachine::find(const comm::AttemptKey& key) {
    if (current_ && current_->key == key) return &*current_;
    if (next_ && next_->key == key) return &*next_;
    return nullptr;
}
bool AttemptMachine::is_new(const comm::AttemptKey& key) const {
    // Another member may have been welcomed and started before this one.
    if (incarnation_ && key.incarnation != *incarnation_) return false;
    const auto at = seen_.find(key.trial);
    return at == seen_.end() || at->second < key.attempt;
}

// --- the life of a part ---

/// Tells user code to return, within a limited time.
void AttemptMachine::stop_user_code(StudyTime now) {
    runner_->abandon();
    if (!grace_until_) grace_until_ = now + abort_grace_;
}

/// Or stays queued, until this rank is prepared.
void AttemptMachine::become_ready(Part& part) {
    const auto side = study::side_task_of(part.key.trial);
    const bool prepares_others = side && side->kind == study::SideTask::Kind::before;
    if (!prepares_others && !runner_->prepared()) {
        prepares_ = true;
        return;
    }
    part.stage = Stage::ready;
    if (!part.leads()) return send(part.leader(), comm::Ready{part.key});
    part.members.front().ready = true;
    go_if_ready(part);
}

void AttemptMachine::go_if_ready(Part& part) {
    if (!part.may_go()) return;
    for (const Part::Member& member : part.members)
        if (member.rank != self_) send(member.rank, comm::Go{part.key});
    run(part);
}

void AttemptMachine::run(Part& part) {
    part.stage = Stage::running;
    part.progress_base = part.progress_seen = runner_->progress();
    runner_->start(part.assignment);
    if (part.interrupt) runner_->interrupt(*part.interrupt);
}

/// No user code of `part` runs here any more. May end the part; the caller must not use it afterwards.
void AttemptMachine::over_here(Part& part, AttemptOutcome outcome, const study::Failure& failure, StudyTime now) {
    part.stage = Stage::over;
    part.ended = now;
    const AttemptOutcome told = part.abandoned ? AttemptOutcome::lost : outcome;
    if (part.leads()) {
        member_over(part, self_, told, failure);
    } else {
        send(part.leader(), comm::MemberOver{part.key, told, failure});
        drop(part);
    }
}

void AttemptMachine::member_over(Part& part, base::Rank rank, AttemptOutcome outcome, const study::Failure& failure) {
    Part::Member* member = part.member(rank);
    if (member == nullptr || member->over) return count_stale();
    member->over = true;
    member->outcome = outcome;
    member->failure = failure;
    if (outcome == AttemptOutcome::lost && !part.lost) part.lost = last_tick_;
    close_if_all_over(part);
}

/// Nobody trains yet, as some members are not prepared, which may take long. These wait for what comes next.
void AttemptMachine::end_unprepared(Part& part, const study::Verdict& verdict) {
    part.stage = Stage::over;
    part.ended = last_tick_;
    for (Part::Member& member : part.members) {
        member.over = true;
        member.outcome = verdict.verb == study::Verb::pause ? AttemptOutcome::paused : AttemptOutcome::stopped;
    }
    close_if_all_over(part);
}

/// The head gives their ranks another attempt. They end then, if user code still does not return.
void AttemptMachine::close_lost(StudyTime now) {
    if (current_->stage == Stage::running) return stop_user_code(now);
    current_->close();
    close_if_all_over(*current_);
    move_up();
}

void AttemptMachine::close_if_all_over(Part& part) {
    if (part.stage != Stage::over || !part.all_over()) return;
    send(base::head_rank, part.summary());
    drop(part);
}

void AttemptMachine::drop(Part& part) {
    if (next_ && &part == &*next_)
        next_.reset();
    else
        current_.reset();
}

/// Moves the waiting attempt up if `current_` is free.
void AttemptMachine::move_up() {
    if (current_ || !next_) return;
    current_ = std::move(next_);
    next_.reset();
    if (current_->stage == Stage::queued) become_ready(*current_);
}

// --- messages ---

void AttemptMachine::on_message(base::Rank from, const comm::Message& message, StudyTime now) {
    std::visit(
        [&](const auto& m) {
            if constexpr (requires { this->on(m, now); }) {
                if (from == base::head_rank) return this->on(m, now);
            } else if constexpr (requires { this->on(from, m); }) {
                if (!leaving_) return this->on(from, m);
            }
            count_stale();
        },
        message);
}

void AttemptMachine::on(const study::StartTrial& m, StudyTime now) {
    if (leaving_ || !runner_ || !is_new(comm::key_of(m))) return count_stale();
    std::optional<Part> part = Part::make(m, self_, now);
    if (!part) return count_stale();
    seen_[m.trial] = m.attempt;
    // The head counts this rank as free. If user code of an older attempt still runs, its leader died.
    if (runs()) {
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
void AttemptMachine::take_early(Part& part) {
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

void AttemptMachine::on(const study::Decide& m, StudyTime) {
    Part* part = find(comm::key_of(m));
    if (part == nullptr || !part->leads() || part->stage != Stage::running || m.iteration <= part->decided)
        return count_stale();
    part->decided = m.iteration;
    runner_->decide(m);
}

void AttemptMachine::on(const comm::ReportsTaken& m, StudyTime) {
    Part* part = find(m.key);
    if (part == nullptr || !part->leads() || m.reports > part->reports) return count_stale();
    part->reports_taken = std::max(part->reports_taken, m.reports);
}

void AttemptMachine::on(const comm::Stage&, StudyTime) {
    if (leaving_ || !runner_) return count_stale();
    runner_->stage();
}

void AttemptMachine::on(const study::Interrupt& m, StudyTime) {
    Part* part = find(comm::key_of(m));
    if (part == nullptr || !part->leads() || part->stage == Stage::over) return count_stale();
    if (part->stage == Stage::running)
        runner_->interrupt(m.verdict);
    else if (prepares_ && current_ && part == &*current_)
        end_unprepared(*part, m.verdict);
    else
        part->interrupt = m.verdict;
}

void AttemptMachine::on(const comm::PlaceContested& m, StudyTime) {
    Part* part = find(m.key);
    if (part == nullptr || !part->leads() || part->stage != Stage::running) return count_stale();
    runner_->contest();
}

void AttemptMachine::on(const study::Abandon& m, StudyTime now) {
    Part* part = find(comm::key_of(m));
    if (part == nullptr) return count_stale();
    part->abandon(m.ranks);
    switch (part->stage) {
        case Stage::queued:
        case Stage::ready:
            over_here(*part, AttemptOutcome::lost, {}, now);
            break;
        case Stage::running:
            stop_user_code(now);
            break;
        case Stage::over:
            close_if_all_over(*part);
            break;
    }
    move_up();
}

void AttemptMachine::on(base::Rank from, const comm::Ready& m) {
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

void AttemptMachine::on(base::Rank from, const comm::Go& m) {
    if (!current_ || current_->key != m.key || current_->stage != Stage::ready || from != current_->leader() ||
        current_->leads())
        return count_stale();
    run(*current_);
}

void AttemptMachine::on(base::Rank from, const comm::MemberOver& m) {
    if (Part* part = find(m.key); part != nullptr && part->leads()) {
        member_over(*part, from, m.outcome, m.failure);
        move_up();
    } else if (is_new(m.key)) {
        early_.push_back({m.key, from, m});
    } else {
        count_stale();
    }
}

// --- the runner ---

std::string AttemptMachine::poll(StudyTime now) {
    if (!runner_) return {};
    if (current_ && current_->stage == Stage::queued && !leaving_) become_ready(*current_);
    note_progress(now);
    while (!held_up()) {
        auto event = runner_->poll();
        if (!event) break;
        if (runs())
            std::visit([&](auto& happened) { on_runner(happened, now); }, *event);
        else
            count_stale();
    }
    return sick_device_;
}

void AttemptMachine::note_progress(StudyTime now) {
    if (!runs()) return;
    if (held_up() || runner_->waits()) current_->moved = now;
    const std::uint64_t progress = runner_->progress();
    if (!current_->progressed && progress != current_->progress_base) current_->progressed = now;
    if (current_->moved && progress == current_->progress_seen) return;
    current_->progress_seen = progress;
    current_->moved = now;
}

void AttemptMachine::on_runner(worker::RunnerReported& happened, StudyTime now) {
    if (!current_->progressed) current_->progressed = now;
    // After giving up, the head ignores reports.
    if (!current_->leads() || current_->abandoned) return;
    current_->trained_s = happened.seconds - current_->assignment.start.seconds;
    const comm::AttemptKey& key = current_->key;
    ++current_->reports;
    send(base::head_rank, study::ReportArrived{key.trial, key.attempt, key.incarnation, happened.iteration,
                                               happened.seconds, std::move(happened.metrics), happened.ends});
}

void AttemptMachine::on_runner(worker::RunnerSaved& happened, StudyTime) {
    if (!current_->leads()) return;
    const comm::AttemptKey& key = current_->key;
    happened.checkpoint.generation = current_->assignment.start.generation;
    send(base::head_rank,
         study::CheckpointSaved{key.trial, key.attempt, key.incarnation, std::move(happened.checkpoint)});
}

void AttemptMachine::on_runner(worker::RunnerUnsaved& happened, StudyTime) {
    send(base::head_rank, comm::CheckpointMissed{current_->key, std::move(happened.why)});
}

void AttemptMachine::on_runner(worker::RunnerNamed& happened, StudyTime) {
    send(base::head_rank,
         comm::PlaceNamed{current_->key, std::move(happened.place.host), std::move(happened.place.path)});
}

void AttemptMachine::on_runner(worker::RunnerEnded& happened, StudyTime now) {
    grace_until_.reset();
    if (leaving_) return current_.reset();
    sick_device_ = std::move(happened.sick_device);
    if (!sick_device_.empty()) return;
    current_->unread = std::move(happened.unread);
    current_->program_start_s = happened.starting_s;
    over_here(*current_, happened.outcome, happened.failure, now);
    // The leader of a superseded attempt has nobody to report to.
    if (next_ && current_ && current_->abandoned) current_.reset();
    move_up();
}

comm::Heartbeat AttemptMachine::heartbeat() const {
    comm::Heartbeat beat;
    if (!current_ || current_->stage == Stage::over) return beat;
    beat.key = current_->key;
    if (runs()) beat.progress = runner_->progress() - current_->progress_base;
    return beat;
}

// --- time ---

/// When user code counts as hung. User code that was told to return has its own limit.
std::optional<StudyTime> AttemptMachine::hung_at() const {
    if (progress_timeout_ == base::Duration{} || leaving_ || grace_until_ || !runs() || !current_->moved)
        return std::nullopt;
    return *current_->moved + progress_timeout_;
}

/// When a leader no longer waits for members whose group is lost: user code that hangs may never return.
std::optional<StudyTime> AttemptMachine::closes_at() const {
    if (leaving_ || grace_until_ || !current_ || !current_->lost || current_->abandoned) return std::nullopt;
    if (current_->stage != Stage::running && current_->stage != Stage::over)
        return std::nullopt; // the head gives it up
    return *current_->lost + graces_of_lost * abort_grace_;
}

StudyTime AttemptMachine::wake_at(StudyTime latest) const {
    for (const auto& limit : {grace_until_, hung_at(), closes_at()})
        if (limit) latest = std::min(latest, *limit);
    return latest;
}

std::optional<AttemptMachine::Overdue> AttemptMachine::watch(base::Duration suspended, StudyTime now) {
    if (current_ && current_->moved) *current_->moved += suspended;
    last_tick_ = now;
    if (grace_until_ && now >= *grace_until_)
        return Overdue{"user code did not return within " +
                       std::to_string(std::chrono::duration_cast<std::chrono::seconds>(abort_grace_).count()) +
                       " s after it was told to stop"};
    if (const auto limit = hung_at(); limit && now >= *limit)
        return Overdue{
            "no report or gradient step for " + study::duration_text(progress_timeout_) + " (failure.report_timeout)",
            true};
    if (const auto limit = closes_at(); limit && now >= *limit) close_lost(now);
    return std::nullopt;
}

} // namespace ranktune::worker
