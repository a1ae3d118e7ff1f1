// SPDX-License-Identifier: Apache-2.0
#include "head/workers.hpp"

#include <algorithm>
#include <utility>

#include "head/rank_table.hpp"

namespace ranktune::head {

using base::Rank;
using base::StudyTime;

namespace {

/// How long the last messages of a process that has ended may take: its Bye says why.
constexpr base::Duration last_words_take = std::chrono::milliseconds(30);
/// How long the answer may take that a silent process was killed. Without one its node is lost, or nobody can see it.
constexpr base::Duration fence_patience = std::chrono::seconds(5);

} // namespace

Workers::Workers(std::uint32_t count, Limits limits, comm::Outbox& outbox, Kill kill, base::LogSink& log, StudyTime now)
    : limits_(limits),
      outbox_(outbox),
      kill_(std::move(kill)),
      log_(log),
      all_(count + 1),
      hello_until_(now + limits.hello),
      last_round_(now),
      next_scan_(now) {
    all_[0].alive = false;
    for (std::uint32_t r = 0; r <= count; ++r) {
        all_[r].info.rank = Rank(r);
        all_[r].heard = all_[r].spoken_to = now;
    }
}

void Workers::on_hello(Rank rank) {
    all_[rank.value()].hello = true;
    ++greeted_;
}

std::vector<Rank> Workers::gone() const {
    std::vector<Rank> gone;
    for (const Worker& worker : *this)
        if (!worker.alive) gone.push_back(worker.info.rank);
    return gone;
}

void Workers::send_buffer(Rank to, StudyTime now) {
    all_[to.value()].spoken_to = now;
    outbox_.send(to, buffer_);
}

void Workers::take_note(Rank leader, const comm::AttemptKey& key, StudyTime now) {
    Worker& worker = all_[leader.value()];
    if (worker.reporting != key) worker.reports = 0;
    worker.reporting = key;
    if (++worker.reports % comm::report_window_step == 0) send(leader, comm::ReportsTaken{key, worker.reports}, now);
}

// ---- processes that end

void Workers::on_ended(Rank rank, StudyTime now) {
    Worker& worker = all_[rank.value()];
    if (!worker.alive || worker.bye || worker.ended) return;
    worker.ended = now;
    ended_.push_back(rank);
}

std::vector<Workers::Lost> Workers::ended(StudyTime now) {
    std::vector<Lost> lost;
    std::erase_if(ended_, [&](Rank rank) {
        const Worker& worker = all_[rank.value()];
        if (now < *worker.ended + last_words_take) return false;
        if (!worker.bye && worker.alive)
            lost.push_back({rank, worker.fenced ? silence(worker) + "; it was killed" : "its process has ended"});
        return true;
    });
    return lost;
}

// ---- silence

std::string Workers::silence(const Worker& worker) const {
    return "no sign of life for " + seconds_text(patience(worker));
}

/// A silent rank may be alive: frozen, or behind a broken network. It must not write for its trial when others do.
void Workers::fence(Worker& worker, StudyTime now) {
    worker.fenced = now;
    const process::Killing here = kill_(worker.info.rank, worker.spared);
    if (here == process::Killing::waits) return spare(worker);
    if (here == process::Killing::done) return;
    for (const Worker& mate : *this)
        if (mate.alive && mate.hello && mate.info.rank != worker.info.rank && mate.info.host == worker.info.host &&
            now - mate.heard < limits_.silence)
            return send(mate.info.rank, comm::EndRank{worker.info.rank, worker.spared}, now);
    worker.fenced = now - fence_patience; // nobody is there to do it
}

void Workers::spare(Worker& worker) {
    if (worker.spared || !worker.fenced) return;
    worker.spared = true;
    worker.fenced.reset();
    log_.write(base::LogLevel::warning, "slow",
               {{"rank", std::to_string(worker.info.rank.value())},
                {"host", worker.info.host},
                {"reason", "it is silent, but runs or waits for a core: it has as much time again"}});
}

bool Workers::is_lost(Worker& worker, StudyTime now) {
    const base::Duration silence_of = worker.hello ? now - worker.heard : base::Duration{0};
    if (worker.bye || silence_of < limits_.silence) worker.spared = false;
    if (worker.bye || silence_of < patience(worker)) {
        worker.fenced.reset();
        return false;
    }
    if (!worker.fenced) fence(worker, now);
    return worker.fenced && now - *worker.fenced >= fence_patience;
}

bool Workers::watch(StudyTime now) {
    const base::Duration gap = now - last_round_;
    last_round_ = now;
    longest_gap_ = std::max(longest_gap_, gap);
    // Time in which this process was suspended or waited for a disk does not count as silence. Messages that
    // arrived meanwhile are read in the next rounds.
    if (gap > limits_.silence / 4) {
        for (Worker& worker : all_) worker.heard = std::min(worker.heard + gap, now);
        hello_until_ += gap;
    }
    if (now < next_scan_) return false;
    next_scan_ = now + limits_.interval;
    return true;
}

std::string Workers::missing(StudyTime now) const {
    std::vector<Rank> missing;
    for (const Worker& worker : *this)
        if (!worker.hello) missing.push_back(worker.info.rank);
    if (missing.empty() || now < hello_until_) return {};
    return "no answer within " + seconds_text(limits_.hello) + " from " + (missing.size() == 1 ? "rank " : "ranks ") +
           ranks_text(missing) + " of " + std::to_string(all_.size() - 1) + " workers";
}

std::vector<Workers::Lost> Workers::scan(StudyTime now) {
    std::vector<Lost> lost;
    for (Worker& worker : all_) {
        if (!worker.alive) continue;
        if (is_lost(worker, now)) {
            lost.push_back({worker.info.rank, silence(worker)});
            continue;
        }
        // Each message to a node that is gone makes Open MPI try, and complain, again. Who lives speaks first.
        const bool speaks = !worker.hello || now - worker.heard < 4 * limits_.interval;
        if (!worker.bye && speaks && now - worker.spoken_to >= limits_.interval)
            send(worker.info.rank, comm::Alive{}, now);
    }
    return lost;
}

StudyTime Workers::wake_at() const {
    StudyTime at = std::min(next_scan_, last_round_ + limits_.silence / 4);
    for (const Rank rank : ended_) at = std::min(at, *all_[rank.value()].ended + last_words_take);
    return at;
}

// ---- the head's own silence

void Workers::on_deserted(StudyTime now) {
    deserted_ = true;
    longest_gap_ = std::max(longest_gap_, now - last_round_);
}

std::string Workers::desertion() const {
    if (!deserted_) return {};
    const std::string limit = seconds_text(limits_.silence) + " (run.heartbeat_timeout)";
    // The last message may be an interval old when the head stalls, and the workers' time-out starts there.
    if (longest_gap_ + 2 * limits_.interval < limits_.silence)
        return "workers heard nothing of the head for " + limit + ", and left";
    return "the head was held up for " + seconds_text(longest_gap_) + ": its workers heard nothing of it for " + limit +
           ", and left";
}

} // namespace ranktune::head
