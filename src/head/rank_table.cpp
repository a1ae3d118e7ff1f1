// SPDX-License-Identifier: Apache-2.0
#include "head/rank_table.hpp"

#include <algorithm>

namespace ranktune::head {

using base::StudyTime;

RankTable::RankTable(std::uint32_t workers, StudyTime now) : entries_(workers + 1), at_(now), alive_(workers) {}

void RankTable::advance(StudyTime now) {
    sums_ = seconds(now);
    at_ = std::max(at_, now);
}

RankSeconds RankTable::seconds(StudyTime now) const {
    RankSeconds sums = sums_;
    const double passed = now > at_ ? base::to_seconds(now - at_) : 0.0;
    sums.training += passed * static_cast<double>(training_);
    sums.starting += passed * static_cast<double>(starting_);
    sums.idle += passed * static_cast<double>(alive_ - training_ - starting_);
    return sums;
}

void RankTable::start(const comm::AttemptKey& key, const std::vector<base::Rank>& ranks, StudyTime now) {
    advance(now);
    for (const base::Rank rank : ranks)
        if (const base::Rank leader = entry(rank).leader; leader != base::head_rank) release(entry(leader));
    for (const base::Rank rank : ranks) {
        entry(rank).key = key;
        entry(rank).leader = ranks.front();
    }
    Entry& leader = entry(ranks.front());
    leader.ranks = ranks;
    leader.trains = false;
    leader.since = now;
    starting_ += ranks.size();
}

void RankTable::training(base::Rank leader, const comm::AttemptKey& key, StudyTime now) {
    Entry& held = entry(leader);
    if (held.leader != leader || held.key != key || held.trains) return;
    advance(now);
    held.trains = true;
    held.train_at = now;
    starting_ -= held.ranks.size();
    training_ += held.ranks.size();
}

bool RankTable::finish(base::Rank leader, const comm::AttemptKey& key, double starting_s, double training_s,
                       StudyTime now) {
    Entry& held = entry(leader);
    if (held.leader != leader || held.key != key) return false;
    advance(now);
    // So far the table counted what the head could see; the leader's times are exact. The rest of the time was spent on
    // messages and counts as idle.
    const double ranks = static_cast<double>(held.ranks.size());
    const double all = base::to_seconds(now - held.since);
    const double counted_training = held.trains ? base::to_seconds(now - held.train_at) : 0.0;
    const double counted_starting = all - counted_training;
    const double true_training = std::clamp(training_s, 0.0, all);
    const double true_starting = std::clamp(starting_s, 0.0, all - true_training);
    sums_.training += ranks * (true_training - counted_training);
    sums_.starting += ranks * (true_starting - counted_starting);
    sums_.idle += ranks * (all - true_training - true_starting);
    release(held);
    return true;
}

void RankTable::lose(base::Rank rank, StudyTime now) {
    Entry& lost = entry(rank);
    if (!lost.alive) return;
    advance(now);
    lost.alive = false;
    if (lost.leader == rank) {
        release(lost);
    } else if (lost.leader != base::head_rank) {
        Entry& leader = entry(lost.leader);
        std::erase(leader.ranks, rank);
        --(leader.trains ? training_ : starting_);
        lost.key = {};
        lost.leader = base::head_rank;
    }
    --alive_;
}

void RankTable::release(Entry& leader) {
    (leader.trains ? training_ : starting_) -= leader.ranks.size();
    for (const base::Rank rank : leader.ranks) {
        entry(rank).key = {};
        entry(rank).leader = base::head_rank;
    }
    leader.ranks.clear();
    leader.trains = false;
}

std::string seconds_text(base::Duration duration) {
    return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(duration).count()) + " s";
}

std::string ranks_text(const std::vector<base::Rank>& ranks) {
    std::string text;
    for (std::size_t i = 0; i < ranks.size();) {
        std::size_t last = i;
        while (last + 1 < ranks.size() && ranks[last + 1].value() == ranks[last].value() + 1) ++last;
        if (!text.empty()) text += ", ";
        text += std::to_string(ranks[i].value());
        if (last > i) text += (last > i + 1 ? "-" : ", ") + std::to_string(ranks[last].value());
        i = last + 1;
    }
    return text;
}

namespace {

/// Added to the numbers of NVLink domains, which would otherwise be those of NUMA domains.
constexpr std::uint32_t nvlink_domains = 1000;

} // namespace

study::RankInfo place_of(base::Rank rank, const comm::Hello& hello, const std::vector<study::RankInfo>& places,
                         study::GpuUse gpus) {
    study::RankInfo info;
    if (rank.value() < places.size()) info = places[rank.value()];
    info.rank = rank;
    info.host = hello.host;
    info.gpus = hello.gpus;
    if (!hello.device.empty()) info.device = hello.device;
    if (gpus == study::GpuUse::none) info.device.clear(); // trials do not use it
    if (hello.nvlink > 0) info.domain = nvlink_domains + hello.nvlink;
    if (!hello.nvlink_fabric.empty()) info.switches += (info.switches.empty() ? "" : ".") + hello.nvlink_fabric;
    return info;
}

} // namespace ranktune::head
