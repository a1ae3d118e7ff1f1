// SPDX-License-Identifier: Apache-2.0
#include "worker/worker_machine.hpp"

#include <algorithm>
#include <csignal>
#include <exception>
#include <utility>

#include "ranktune/study/parse.hpp"

namespace ranktune::worker {

using base::StudyTime;

namespace {

std::string study_seconds(base::Duration duration) {
    return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(duration).count()) + " s";
}

} // namespace

WorkerMachine::WorkerMachine(WorkerOptions options, comm::Outbox& outbox, MakeRunner make_runner, base::LogSink& log,
                             StudyTime now)
    : options_(std::move(options)),
      outbox_(outbox),
      make_runner_(std::move(make_runner)),
      log_(log),
      attempts_(options_.rank, outbox, now),
      heard_head_(now),
      last_tick_(now) {
    send(base::head_rank, comm::Hello{comm::protocol_version, options_.version, options_.host, options_.gpus,
                                      options_.gpu.uuid, options_.gpu.island, options_.gpu.fabric});
}

void WorkerMachine::on_message(base::Rank from, std::span<const std::byte> bytes, StudyTime now) {
    if (end_) return;
    try {
        comm::decode_message(bytes, message_);
    } catch (const base::FormatError& error) {
        return give_up("cannot read a message of rank " + std::to_string(from.value()) + ": " + error.what(), true);
    }
    if (from == base::head_rank) heard_head_ = now;
    if (const auto* ended = std::get_if<comm::RankEnded>(&message_)) return on(*ended);
    std::visit(
        [&](const auto& m) {
            if constexpr (!requires { this->on(m, now); })
                attempts_.on_message(from, message_, now);
            else if (from == base::head_rank)
                this->on(m, now);
            else
                count_stale();
        },
        message_);
}

void WorkerMachine::on_stop_request(study::Asker signal, StudyTime) {
    if (!end_) send(base::head_rank, comm::StopAsked{signal});
}

void WorkerMachine::on_rank_ended(base::Rank rank) {
    if (end_ || leave_) return;
    if (rank != base::head_rank) return send(base::head_rank, comm::RankEnded{rank});
    comm::encode_message(comm::RankEnded{rank}, buffer_);
    for (std::uint32_t r = 1; r < options_.ranks; ++r)
        if (r != options_.rank.value()) outbox_.send(base::Rank(r), buffer_);
    lose_head("the process of the head has ended", false);
}

void WorkerMachine::on_tick(StudyTime now) {
    if (end_) return;
    if (const std::string sick = attempts_.poll(now); !sick.empty()) {
        give_up(sick, false);
        end_->device = true;
    } else if (leave_ && !attempts_.runs()) {
        say_bye();
    }
    if (end_) return;
    heartbeat(now);
    watch(now);
}

StudyTime WorkerMachine::wake_at() const {
    StudyTime at = std::min(heard_head_ + head_timeout(), last_tick_ + head_timeout() / 4);
    if (welcome_ && !leave_) at = std::min(at, next_heartbeat_);
    return attempts_.wake_at(at);
}

template <class T>
void WorkerMachine::send(base::Rank to, const T& what) {
    comm::encode_message(what, buffer_);
    outbox_.send(to, buffer_);
}

void WorkerMachine::finish(study::StudyOutcome outcome, std::string text, bool clean, bool at_once) {
    if (!end_) end_ = WorkerEnd{outcome, std::move(text), clean, at_once};
}
/// Ends the worker on its own initiative and tells the head why. `guilty`: the attempt that it works on is to blame.
void WorkerMachine::give_up(const std::string& why, bool at_once, bool guilty) {
    if (end_) return;
    log_.write(base::LogLevel::error, "worker", {{"rank", std::to_string(options_.rank.value())}, {"reason", why}});
    send(base::head_rank, comm::Bye{why, guilty ? working_on() : comm::AttemptKey{}});
    finish(study::StudyOutcome::runtime_error, why, false, at_once);
    end_->guilty = guilty;
}

// --- messages ---

void WorkerMachine::on(const comm::Welcome& m, StudyTime now) {
    if (welcome_ || leave_) return count_stale();
    welcome_ = m;
    next_heartbeat_ = now;
    try {
        attempts_.begin(make_runner_(m), m);
    } catch (const std::exception& error) {
        give_up(error.what(), false);
    }
}

void WorkerMachine::on(const comm::RankEnded& m) {
    if (leave_) return count_stale();
    if (m.rank == base::head_rank) lose_head("the process of the head has ended", false);
}

void WorkerMachine::on(const comm::EndRank& m, StudyTime) {
    if (options_.kill_silent && options_.kill_silent(m.rank, m.at_once) == process::Killing::waits)
        send(base::head_rank, comm::RankWaits{m.rank});
}

void WorkerMachine::on(const comm::Alive&, StudyTime) {}

void WorkerMachine::on(const comm::Leave& m, StudyTime now) {
    if (leave_) return count_stale();
    leave_ = m;
    attempts_.leave(m.clean, now);
    if (!attempts_.runs()) say_bye();
}

void WorkerMachine::say_bye() {
    send(base::head_rank, comm::Bye{});
    finish(leave_->outcome, leave_->message, leave_->clean, false);
}

// --- time ---

void WorkerMachine::heartbeat(StudyTime now) {
    if (!welcome_ || leave_ || now < next_heartbeat_) return;
    next_heartbeat_ = now + welcome_->heartbeat_interval;
    send(base::head_rank, attempts_.heartbeat());
}

void WorkerMachine::watch(StudyTime now) {
    // Time in which this process was suspended does not count as silence.
    base::Duration suspended = now - last_tick_;
    if (suspended <= head_timeout() / 4) suspended = {};
    heard_head_ += suspended;
    last_tick_ = now;
    if (const auto late = attempts_.watch(suspended, now)) {
        if (!leave_) return give_up(late->why, true, late->hung);
        log_.write(base::LogLevel::warning, "worker", {{"reason", late->why}});
        send(base::head_rank, comm::Bye{});
        return finish(leave_->outcome, late->why, false, true); // the exit code stays the study's
    }
    if (now - heard_head_ >= head_timeout())
        lose_head("no sign of life of the head for " + study_seconds(head_timeout()), true);
}

/// `silent`: the head may only be held up; then the message tells it later why its workers left.
void WorkerMachine::lose_head(const std::string& why, bool silent) {
    log_.write(base::LogLevel::error, "worker", {{"rank", std::to_string(options_.rank.value())}, {"reason", why}});
    if (silent) send(base::head_rank, comm::Bye{why, {}, true});
    // A head that somebody has stopped must read that, where no launcher ends it.
    if (silent && options_.signal_rank) options_.signal_rank(base::head_rank, SIGCONT);
    finish(study::StudyOutcome::resumable, why, false, true);
    end_->lost_head = true;
}

} // namespace ranktune::worker
