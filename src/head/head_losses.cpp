// SPDX-License-Identifier: Apache-2.0
// Ranks that end or fall silent.
#include "head/head_machine.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "head/rank_table.hpp"
#include "ranktune/base/text.hpp"

namespace ranktune::head {

using base::Rank;
using study::StudyOutcome;

namespace {

/// How long the answer may take that a silent process was killed. Without one its node is lost, or nobody can see it.
constexpr base::Duration fence_patience = std::chrono::seconds(5);

} // namespace

/// Gives up a rank that cannot say why any more: the note that it left, if any, tells whose fault it was.
void HeadMachine::lose_dead(Rank rank, const std::string& why) {
    const auto left = duties_.last_words(rank);
    const bool guilty =
        left && left->guilty &&
        wire::AttemptKey{left->note.trial, left->note.attempt, options_.incarnation} == table_.held_by(rank);
    lose(rank, left ? left->note.failure.message : why, guilty);
}

/// Gives up ranks whose processes have ended, once their last messages are read.
void HeadMachine::lose_ended() {
    std::erase_if(ended_, [this](Rank rank) {
        const Worker& worker = workers_[rank.value()];
        if (now_ < *worker.ended + last_words_take) return false;
        if (!worker.bye && worker.alive)
            lose_dead(rank, worker.fenced ? silence(worker) + "; it was killed" : "its process has ended");
        return true;
    });
}

base::Duration HeadMachine::patience(const Worker& worker) const {
    return options_.heartbeat_timeout * (worker.spared ? 2 : 1);
}

std::string HeadMachine::silence(const Worker& worker) const {
    return "no sign of life for " + seconds_text(patience(worker));
}

/// A silent rank may be alive: frozen, or behind a broken network. It must not write for its trial when others do.
void HeadMachine::fence(Worker& worker) {
    worker.fenced = now_;
    const process::Killing here = duties_.end_rank(worker.info.rank, worker.spared);
    if (here == process::Killing::waits) return spare(worker);
    if (here == process::Killing::done) return;
    for (const Worker& mate : workers_)
        if (mate.alive && mate.hello && mate.info.rank != worker.info.rank && mate.info.host == worker.info.host &&
            now_ - mate.heard < options_.heartbeat_timeout)
            return send(mate.info.rank, wire::EndRank{worker.info.rank, worker.spared});
    worker.fenced = now_ - fence_patience; // nobody is there to do it
}

/// A starved process is silent, too. Once.
void HeadMachine::spare(Worker& worker) {
    if (worker.spared || !worker.fenced) return;
    worker.spared = true;
    worker.fenced.reset();
    log_.write(base::LogLevel::warning, "slow",
               {{"rank", std::to_string(worker.info.rank.value())},
                {"host", worker.info.host},
                {"reason", "it is silent, but runs or waits for a core: it has as much time again"}});
}

void HeadMachine::on(Rank from, wire::RankWaits& m) {
    if (m.rank.value() >= workers_.size()) return count_stale();
    Worker& worker = workers_[m.rank.value()];
    // The answer came so late that the rank was given up: its trial goes on elsewhere, so it must not.
    if (!worker.alive) return send(from, wire::EndRank{m.rank, true});
    spare(worker);
}

void HeadMachine::judge_silence(Worker& worker) {
    const base::Duration silence_of = worker.hello ? now_ - worker.heard : base::Duration{0};
    if (worker.bye || silence_of < options_.heartbeat_timeout) worker.spared = false;
    if (worker.bye || silence_of < patience(worker)) return worker.fenced.reset();
    if (!worker.fenced) fence(worker);
    if (worker.fenced && now_ - *worker.fenced >= fence_patience) lose_dead(worker.info.rank, silence(worker));
}

/// Checks for silent workers, and sends to those that this side has been silent to.
void HeadMachine::watch() {
    const base::Duration gap = now_ - last_tick_;
    last_tick_ = now_;
    longest_gap_ = std::max(longest_gap_, gap);
    // Time in which this process was suspended or waited for a disk does not count as silence. Messages that
    // arrived meanwhile are read in the next rounds.
    if (gap > options_.heartbeat_timeout / 4) {
        for (Worker& worker : workers_) worker.heard = std::min(worker.heard + gap, now_);
        hello_until_ += gap;
    }
    if (now_ < next_scan_) return;
    next_scan_ = now_ + options_.heartbeat_interval;
    if (phase_ == Phase::joining && greeted_ < options_.workers && now_ >= hello_until_) return missing_workers();
    for (Worker& worker : workers_) {
        if (!worker.alive) continue;
        judge_silence(worker);
        // Each message to a node that is gone makes Open MPI try, and complain, again. Who lives speaks first.
        const bool speaks = !worker.hello || now_ - worker.heard < 4 * options_.heartbeat_interval;
        if (worker.alive && !worker.bye && speaks && now_ - worker.spoken_to >= options_.heartbeat_interval)
            send(worker.info.rank, wire::Alive{});
    }
}

void HeadMachine::missing_workers() {
    std::vector<Rank> missing;
    for (std::uint32_t r = 1; r <= options_.workers; ++r)
        if (!workers_[r].hello) missing.push_back(Rank(r));
    finish({StudyOutcome::runtime_error, study::Reason::lost,
            "no answer within " + seconds_text(options_.hello_timeout) + " from " +
                (missing.size() == 1 ? "rank " : "ranks ") + ranks_text(missing) + " of " +
                std::to_string(options_.workers) + " workers"});
}

} // namespace ranktune::head
