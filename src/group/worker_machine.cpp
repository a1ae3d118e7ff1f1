// SPDX-License-Identifier: Apache-2.0
#include "group/worker_machine.hpp"

#include <algorithm>
#include <exception>
#include <unordered_map>
#include <utility>
#include <vector>

#include "group/part.hpp"
#include "ranktune/study/parse.hpp"

namespace ranktune::group {

using base::StudyTime;
using study::AttemptOutcome;
using Stage = Part::Stage;

struct WorkerMachine::Impl {
    Impl(WorkerOptions options_in, wire::Outbox& outbox_in, MakeRunner make_runner_in, base::LogSink& log_in,
         StudyTime now)
        : options(std::move(options_in)),
          outbox(outbox_in),
          make_runner(std::move(make_runner_in)),
          log(log_in),
          heard_head(now),
          last_tick(now) {}

    /// A message to a leader that came before its own StartTrial.
    struct Early {
        wire::AttemptKey key;
        base::Rank from;
        std::optional<wire::MemberOver> over; ///< absent: a Ready
    };

    WorkerOptions options;
    wire::Outbox& outbox;
    MakeRunner make_runner;
    base::LogSink& log;
    std::unique_ptr<trial::Runner> runner;
    std::optional<wire::Welcome> welcome;
    std::optional<wire::Leave> leave;
    std::optional<WorkerEnd> end;
    std::optional<Part> current;                           ///< the attempt whose user code may run here
    std::optional<Part> next;                              ///< waits until `current` is over
    std::unordered_map<base::TrialId, base::Attempt> seen; ///< newest attempt of each trial started here
    std::vector<Early> early;
    StudyTime heard_head;
    StudyTime last_tick;
    StudyTime next_heartbeat;
    std::optional<StudyTime> grace_until; ///< user code was told to return by then
    std::uint64_t stale = 0;
    study::Bytes buffer;
    wire::Message message;

    template <class T>
    void send(base::Rank to, const T& what) {
        wire::encode_message(what, buffer);
        outbox.send(to, buffer);
    }

    void finish(study::StudyOutcome outcome, std::string text, bool clean, bool at_once) {
        if (!end) end = WorkerEnd{outcome, std::move(text), clean, at_once};
    }
    /// Ends the worker on its own initiative and tells the head why.
    void give_up(const std::string& why, bool at_once, bool guilty = false) {
        if (end) return;
        log.write(base::LogLevel::error, "worker", {{"rank", std::to_string(options.rank.value())}, {"reason", why}});
        send(base::head_rank, wire::Bye{why, guilty});
        finish(study::StudyOutcome::runtime_error, why, false, at_once);
        end->guilty = guilty;
    }

    [[nodiscard]] Part* find(const wire::AttemptKey& key) {
        if (current && current->key == key) return &*current;
        if (next && next->key == key) return &*next;
        return nullptr;
    }
    [[nodiscard]] bool is_new(const wire::AttemptKey& key) const {
        // Another member may have been welcomed and started before this one.
        if (welcome && key.incarnation != welcome->incarnation) return false;
        const auto at = seen.find(key.trial);
        return at == seen.end() || at->second < key.attempt;
    }

    /// How long user code may go on after a Leave that forbids finalising MPI.
    static constexpr base::Duration unclean_grace = std::chrono::seconds(2);

    // --- the life of a part ---

    /// Tells user code to return, within a limited time.
    void stop_user_code(StudyTime now) {
        runner->abandon();
        if (!grace_until) grace_until = now + welcome->abort_grace;
    }

    void become_ready(Part& part) {
        part.stage = Stage::ready;
        if (!part.leads()) return send(part.leader(), wire::Ready{part.key});
        part.members.front().ready = true;
        go_if_ready(part);
    }

    void go_if_ready(Part& part) {
        if (!part.may_go()) return;
        for (const Part::Member& member : part.members)
            if (member.rank != options.rank) send(member.rank, wire::Go{part.key});
        run(part);
    }

    void run(Part& part) {
        part.stage = Stage::running;
        part.progress_base = part.progress_seen = runner->progress();
        runner->start(part.assignment);
        if (part.interrupt) runner->interrupt(*part.interrupt);
    }

    /// No user code of `part` runs here any more. May end the part; the caller must not use it afterwards.
    void over_here(Part& part, AttemptOutcome outcome, const study::Failure& failure, StudyTime now) {
        part.stage = Stage::over;
        part.ended = now;
        const AttemptOutcome told = part.abandoned ? AttemptOutcome::lost : outcome;
        if (part.leads()) {
            member_over(part, options.rank, told, failure);
        } else {
            send(part.leader(), wire::MemberOver{part.key, told, failure});
            drop(part);
        }
    }

    void member_over(Part& part, base::Rank rank, AttemptOutcome outcome, const study::Failure& failure) {
        Part::Member* member = part.member(rank);
        if (member == nullptr || member->over) return count_stale();
        member->over = true;
        member->outcome = outcome;
        member->failure = failure;
        close_if_all_over(part);
    }

    void close_if_all_over(Part& part) {
        if (part.stage != Stage::over || !part.all_over()) return;
        send(base::head_rank, part.summary());
        drop(part);
    }

    void drop(Part& part) {
        if (next && &part == &*next)
            next.reset();
        else
            current.reset();
    }

    /// Moves the waiting attempt up if `current` is free.
    void move_up() {
        if (current || !next) return;
        current = std::move(next);
        next.reset();
        if (current->stage == Stage::queued) become_ready(*current);
    }

    void abandon(Part& part, const std::vector<base::Rank>& living, StudyTime now) {
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

    void count_stale() { ++stale; }

    // --- messages ---

    void on(const wire::Welcome& m, StudyTime now) {
        if (welcome || leave) return count_stale();
        welcome = m;
        next_heartbeat = now;
        try {
            runner = make_runner(m);
        } catch (const std::exception& error) {
            give_up(error.what(), false);
        }
    }

    void on(const study::StartTrial& m, StudyTime now) {
        if (leave || !runner || !is_new(wire::key_of(m))) return count_stale();
        std::optional<Part> part = Part::make(m, options.rank, now);
        if (!part) return count_stale();
        seen[m.trial] = m.attempt;
        // The head counts this rank as free. If user code of an older attempt still runs, its leader died.
        if (current && current->stage == Stage::running) {
            current->abandoned = true;
            stop_user_code(now);
            next = std::move(part);
            take_early(*next);
        } else {
            next.reset();
            current = std::move(part);
            take_early(*current);
            become_ready(*current);
        }
    }

    /// Gives a leader the messages of members that came before its own StartTrial.
    void take_early(Part& part) {
        std::erase_if(early, [&](const Early& item) {
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

    void on(const study::Decide& m, StudyTime) {
        Part* part = find(wire::key_of(m));
        if (part == nullptr || !part->leads() || part->stage != Stage::running || m.iteration <= part->decided)
            return count_stale();
        part->decided = m.iteration;
        runner->decide(m);
    }

    void on(const wire::ReportsTaken& m, StudyTime) {
        Part* part = find(m.key);
        if (part == nullptr || !part->leads() || m.reports > part->reports) return count_stale();
        part->reports_taken = std::max(part->reports_taken, m.reports);
    }

    void on(const study::Interrupt& m, StudyTime) {
        Part* part = find(wire::key_of(m));
        if (part == nullptr || !part->leads() || part->stage == Stage::over) return count_stale();
        if (part->stage == Stage::running)
            runner->interrupt(m.verdict);
        else
            part->interrupt = m.verdict;
    }

    void on(const study::Abandon& m, StudyTime now) {
        Part* part = find(wire::key_of(m));
        if (part == nullptr) return count_stale();
        abandon(*part, m.ranks, now);
        move_up();
    }

    void on(const wire::Alive&, StudyTime) {}

    void on(const wire::Leave& m, StudyTime now) {
        if (leave) return count_stale();
        leave = m;
        next.reset();
        if (current && current->stage == Stage::running) {
            current->abandoned = true;
            stop_user_code(now);
            // The process will `_exit` anyway (a rank is dead, or the study ends at once): do not wait long.
            if (!m.clean) grace_until = std::min(*grace_until, now + unclean_grace);
        } else {
            say_bye();
        }
    }

    void say_bye() {
        send(base::head_rank, wire::Bye{});
        finish(leave->outcome, leave->message, leave->clean, false);
    }

    void on(base::Rank from, const wire::Ready& m) {
        if (Part* part = find(m.key); part != nullptr && part->leads()) {
            Part::Member* member = part->member(from);
            if (member == nullptr || member->ready) return count_stale();
            member->ready = true;
            go_if_ready(*part);
        } else if (is_new(m.key)) {
            early.push_back({m.key, from, std::nullopt});
        } else {
            count_stale();
        }
    }

    void on(base::Rank from, const wire::Go& m) {
        if (!current || current->key != m.key || current->stage != Stage::ready || from != current->leader() ||
            current->leads())
            return count_stale();
        run(*current);
    }

    void on(base::Rank from, const wire::MemberOver& m) {
        if (Part* part = find(m.key); part != nullptr && part->leads()) {
            member_over(*part, from, m.outcome, m.failure);
            move_up();
        } else if (is_new(m.key)) {
            early.push_back({m.key, from, m});
        } else {
            count_stale();
        }
    }

    void dispatch(base::Rank from, StudyTime now) {
        std::visit(
            [&](const auto& m) {
                if constexpr (requires { this->on(m, now); }) {
                    if (from == base::head_rank) return this->on(m, now);
                } else if constexpr (requires { this->on(from, m); }) {
                    if (!leave) return this->on(from, m);
                }
                count_stale();
            },
            message);
    }

    // --- the runner ---

    void poll_runner(StudyTime now) {
        if (!runner) return;
        note_progress(now);
        while (!held_up()) {
            auto event = runner->poll();
            if (!event) return;
            if (!current || current->stage != Stage::running) {
                count_stale();
                continue;
            }
            std::visit([&](auto& happened) { on_runner(happened, now); }, *event);
        }
    }

    /// The trial waits until the head has taken its reports.
    [[nodiscard]] bool held_up() const { return current && current->stage == Stage::running && current->held_up(); }

    void note_progress(StudyTime now) {
        if (!current || current->stage != Stage::running) return;
        if (held_up() || runner->waits()) current->moved = now;
        const std::uint64_t progress = runner->progress();
        if (!current->progressed && progress != current->progress_base) current->progressed = now;
        if (current->moved && progress == current->progress_seen) return;
        current->progress_seen = progress;
        current->moved = now;
    }

    /// When user code counts as hung. User code that was told to return has its own limit.
    [[nodiscard]] std::optional<StudyTime> hung_at() const {
        if (!welcome || welcome->progress_timeout == base::Duration{} || leave || grace_until) return std::nullopt;
        if (!current || current->stage != Stage::running || !current->moved) return std::nullopt;
        return *current->moved + welcome->progress_timeout;
    }

    void on_runner(trial::RunnerReported& happened, StudyTime now) {
        if (!current->progressed) current->progressed = now;
        // After giving up, the head ignores reports.
        if (!current->leads() || current->abandoned) return;
        current->trained_s = happened.seconds - current->assignment.start.seconds;
        const wire::AttemptKey& key = current->key;
        ++current->reports;
        send(base::head_rank, study::ReportArrived{key.trial, key.attempt, key.incarnation, happened.iteration,
                                                   happened.seconds, std::move(happened.metrics)});
    }

    void on_runner(trial::RunnerSaved& happened, StudyTime) {
        if (!current->leads()) return;
        const wire::AttemptKey& key = current->key;
        happened.checkpoint.generation = current->assignment.start.generation;
        send(base::head_rank,
             study::CheckpointSaved{key.trial, key.attempt, key.incarnation, std::move(happened.checkpoint)});
    }

    void on_runner(trial::RunnerUnsaved& happened, StudyTime) {
        send(base::head_rank, wire::CheckpointMissed{current->key, std::move(happened.why)});
    }

    void on_runner(trial::RunnerEnded& happened, StudyTime now) {
        grace_until.reset();
        if (!happened.sick_device.empty() && !leave) {
            give_up(happened.sick_device, false);
            end->device = true;
            return;
        }
        if (leave) {
            current.reset();
            return say_bye();
        }
        current->unread = std::move(happened.unread);
        over_here(*current, happened.outcome, happened.failure, now);
        // The leader of a superseded attempt has nobody to report to.
        if (next && current && current->abandoned) current.reset();
        move_up();
    }

    // --- time ---

    [[nodiscard]] base::Duration head_timeout() const { return welcome ? welcome->head_timeout : options.join_timeout; }

    void heartbeat(StudyTime now) {
        if (!welcome || leave || now < next_heartbeat) return;
        next_heartbeat = now + welcome->heartbeat_interval;
        wire::Heartbeat beat;
        if (current && current->stage != Stage::over) {
            beat.key = current->key;
            if (current->stage == Stage::running) beat.progress = runner->progress() - current->progress_base;
        }
        send(base::head_rank, beat);
    }

    void watch(StudyTime now) {
        // Time in which this process was suspended does not count as silence.
        if (const base::Duration gap = now - last_tick; gap > head_timeout() / 4) {
            heard_head += gap;
            if (current && current->moved) *current->moved += gap;
        }
        last_tick = now;
        if (grace_until && now >= *grace_until) {
            const std::string limit = study_seconds(leave && !leave->clean ? unclean_grace : welcome->abort_grace);
            const std::string why = "user code did not return within " + limit + " after it was told to stop";
            if (!leave) return give_up(why, true);
            log.write(base::LogLevel::warning, "worker", {{"reason", why}});
            send(base::head_rank, wire::Bye{});
            return finish(leave->outcome, why, false, true); // the exit code stays the study's
        }
        if (const auto limit = hung_at(); limit && now >= *limit)
            return give_up("no report or gradient step for " + study::duration_text(welcome->progress_timeout) +
                               " (failure.report_timeout)",
                           true, true);
        if (now - heard_head >= head_timeout()) lose_head();
    }

    /// If the head was only held up, this message tells it later why its workers left.
    void lose_head() {
        const std::string why = "no sign of life of the head for " + study_seconds(head_timeout());
        log.write(base::LogLevel::error, "worker", {{"rank", std::to_string(options.rank.value())}, {"reason", why}});
        send(base::head_rank, wire::Bye{why, false, true});
        finish(study::StudyOutcome::resumable, why, false, true);
        end->lost_head = true;
    }

    static std::string study_seconds(base::Duration duration) {
        return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(duration).count()) + " s";
    }
};

WorkerMachine::WorkerMachine(WorkerOptions options, wire::Outbox& outbox, MakeRunner make_runner, base::LogSink& log,
                             StudyTime now)
    : impl_(std::make_unique<Impl>(std::move(options), outbox, std::move(make_runner), log, now)) {
    const WorkerOptions& own = impl_->options;
    impl_->send(base::head_rank, wire::Hello{wire::protocol_version, own.version, own.host, own.gpus, own.gpu.uuid,
                                             own.gpu.island, own.gpu.fabric});
}
WorkerMachine::~WorkerMachine() = default;

void WorkerMachine::on_message(base::Rank from, std::span<const std::byte> bytes, StudyTime now) {
    if (impl_->end) return;
    try {
        wire::decode_message(bytes, impl_->message);
    } catch (const base::FormatError& error) {
        return impl_->give_up("cannot read a message of rank " + std::to_string(from.value()) + ": " + error.what(),
                              true);
    }
    if (from == base::head_rank) impl_->heard_head = now;
    impl_->dispatch(from, now);
}

void WorkerMachine::on_stop_request(study::Asker signal, StudyTime) {
    if (!impl_->end) impl_->send(base::head_rank, wire::StopAsked{signal});
}

void WorkerMachine::on_tick(StudyTime now) {
    if (impl_->end) return;
    impl_->poll_runner(now);
    if (impl_->end) return;
    impl_->heartbeat(now);
    impl_->watch(now);
}

StudyTime WorkerMachine::wake_at() const {
    StudyTime at = std::min(impl_->heard_head + impl_->head_timeout(), impl_->last_tick + impl_->head_timeout() / 4);
    if (impl_->welcome && !impl_->leave) at = std::min(at, impl_->next_heartbeat);
    if (impl_->grace_until) at = std::min(at, *impl_->grace_until);
    if (const auto limit = impl_->hung_at()) at = std::min(at, *limit);
    return at;
}

const std::optional<WorkerEnd>& WorkerMachine::end() const { return impl_->end; }
wire::AttemptKey WorkerMachine::working_on() const { return impl_->current ? impl_->current->key : wire::AttemptKey{}; }
std::uint64_t WorkerMachine::stale_messages() const { return impl_->stale; }
trial::Runner* WorkerMachine::runner() { return impl_->runner.get(); }

} // namespace ranktune::group
