// SPDX-License-Identifier: Apache-2.0
#include "tuner/ledger.hpp"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <unordered_map>

namespace ranktune::tuner {

using study::Rank;

void Ledger::reset(const std::vector<study::RankInfo>& workers) {
    *this = Ledger{};
    std::unordered_map<std::string, std::uint32_t> host_numbers;
    for (const auto& worker : workers) {
        const auto [entry, added] = host_numbers.try_emplace(worker.host, static_cast<std::uint32_t>(hosts_.size()));
        if (added) hosts_.emplace_back();
        const std::size_t rank = worker.rank.value();
        if (host_by_rank_.size() <= rank) host_by_rank_.resize(rank + 1);
        host_by_rank_[rank] = entry->second;
        hosts_[entry->second].free.insert(worker.rank);
    }
    for (std::uint32_t host = 0; host < hosts_.size(); ++host) {
        hosts_by_free_[static_cast<std::uint32_t>(hosts_[host].free.size())].insert(host);
    }
    free_ = alive_ = static_cast<std::uint32_t>(workers.size());
}

std::vector<Rank> Ledger::plan(std::uint32_t size) const {
    assert(size > 0);
    std::vector<Rank> ranks;
    if (size > free_) return ranks;
    ranks.reserve(size);
    const auto take_from = [&](std::uint32_t host) {
        const auto& free = hosts_[host].free;
        const auto wanted = static_cast<std::ptrdiff_t>(std::min<std::size_t>(size - ranks.size(), free.size()));
        std::copy(free.begin(), std::next(free.begin(), wanted), std::back_inserter(ranks));
    };
    if (const auto fit = hosts_by_free_.lower_bound(size); fit != hosts_by_free_.end()) {
        take_from(*fit->second.begin());
        return ranks;
    }
    for (auto level = hosts_by_free_.rbegin(); level != hosts_by_free_.rend() && ranks.size() < size; ++level) {
        for (const std::uint32_t host : level->second) {
            if (ranks.size() == size) break;
            take_from(host);
        }
    }
    std::sort(ranks.begin(), ranks.end());
    return ranks;
}

void Ledger::take(Rank rank) {
    const std::uint32_t host = host_of(rank);
    const std::size_t before = hosts_[host].free.size();
    [[maybe_unused]] const std::size_t erased = hosts_[host].free.erase(rank);
    assert(erased == 1);
    move(host, before);
    --free_;
}

void Ledger::release(Rank rank) {
    const std::uint32_t host = host_of(rank);
    const std::size_t before = hosts_[host].free.size();
    [[maybe_unused]] const bool inserted = hosts_[host].free.insert(rank).second;
    assert(inserted);
    move(host, before);
    ++free_;
}

void Ledger::lose(Rank rank, bool was_free) {
    if (was_free) take(rank);
    --alive_;
}

bool Ledger::is_free(Rank rank) const {
    return rank.value() < host_by_rank_.size() && !hosts_.empty() && hosts_[host_of(rank)].free.contains(rank);
}

std::uint32_t Ledger::host_of(Rank rank) const {
    assert(rank.value() < host_by_rank_.size());
    return host_by_rank_[rank.value()];
}

void Ledger::move(std::uint32_t host, std::size_t before) {
    if (before > 0) {
        const auto level = hosts_by_free_.find(static_cast<std::uint32_t>(before));
        level->second.erase(host);
        if (level->second.empty()) hosts_by_free_.erase(level);
    }
    const std::size_t after = hosts_[host].free.size();
    if (after > 0) hosts_by_free_[static_cast<std::uint32_t>(after)].insert(host);
}

} // namespace ranktune::tuner
