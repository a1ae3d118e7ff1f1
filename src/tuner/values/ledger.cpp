// SPDX-License-Identifier: Apache-2.0
#include "tuner/values/ledger.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <functional>
#include <unordered_map>

namespace ranktune::tuner {

using study::Rank;

namespace {

/// "s0.s2.s5" -> {"s0", "s0.s2", "s0.s2.s5"}: the switches above a host, the outermost first, by unique names.
std::vector<std::string> switches_around(const std::string& switches) {
    std::vector<std::string> names;
    for (std::size_t at = switches.find('.'); at != std::string::npos; at = switches.find('.', at + 1))
        names.push_back(switches.substr(0, at));
    if (!switches.empty()) names.push_back(switches);
    return names;
}

/// Hosts whose ranks lie in more than one NUMA domain.
std::set<std::string> divided_hosts(const std::vector<study::RankInfo>& workers) {
    std::unordered_map<std::string, std::uint32_t> first;
    std::set<std::string> divided;
    for (const auto& worker : workers)
        if (first.try_emplace(worker.host, worker.domain).first->second != worker.domain) divided.insert(worker.host);
    return divided;
}

/// The position of a rank in a descending list, present or not.
template <class Ranks>
auto position(Ranks& ranks, Rank rank) {
    return std::ranges::lower_bound(ranks, rank, std::ranges::greater{});
}

} // namespace

void Ledger::reset(const std::vector<study::RankInfo>& workers) {
    *this = Ledger{};
    std::size_t deepest = 0;
    for (const auto& worker : workers) deepest = std::max(deepest, switches_around(worker.switches).size());
    levels_.resize(2 + deepest);
    places_.emplace_back();
    std::unordered_map<std::string, PlaceIndex> known;
    const auto inside = [&](PlaceIndex around, const std::string& name, std::size_t level) {
        const auto [entry, added] = known.try_emplace(name, static_cast<PlaceIndex>(places_.size()));
        if (added) {
            places_.emplace_back();
            places_.back().around = around;
            places_.back().level = level;
        }
        return entry->second;
    };
    const auto divided = divided_hosts(workers);
    for (const auto& worker : workers) {
        PlaceIndex place = 0;
        std::size_t level = levels_.size(); // of a switch by its depth: those next to the hosts are looked at first
        for (const auto& name : switches_around(worker.switches)) place = inside(place, "switch " + name, --level);
        // A host with a single domain counts as a domain.
        const bool in_pieces = divided.contains(worker.host);
        place = inside(place, "host " + worker.host, in_pieces ? 1 : 0);
        if (in_pieces) place = inside(place, "domain " + std::to_string(worker.domain) + " of " + worker.host, 0);
        const std::size_t rank = worker.rank.value();
        if (place_by_rank_.size() <= rank) place_by_rank_.resize(rank + 1);
        place_by_rank_[rank] = place;
        places_[place].ranks.push_back(worker.rank);
        add(place, 1);
    }
    number_in_place_.resize(place_by_rank_.size());
    for (Place& place : places_) {
        std::ranges::sort(place.ranks, std::ranges::greater{});
        place.members.assign(place.ranks.rbegin(), place.ranks.rend());
        for (std::size_t i = 0; i < place.members.size(); ++i)
            number_in_place_[place.members[i].value()] = static_cast<std::uint32_t>(i);
    }
    free_ = alive_ = static_cast<std::uint32_t>(workers.size());
}

std::vector<Rank> Ledger::plan(std::uint32_t size, std::uint32_t largest) const {
    assert(size > 0);
    std::vector<Rank> ranks;
    if (size > free_) return ranks;
    ranks.reserve(size);
    PlaceIndex chosen = 0;
    for (const auto& level : levels_) {
        const auto fit = level.lower_bound({size, 0});
        if (fit == level.end()) continue;
        chosen = fit->place;
        break;
    }
    collect(chosen, size, largest > 1, ranks);
    std::sort(ranks.begin(), ranks.end());
    return ranks;
}

void Ledger::collect(PlaceIndex place, std::uint32_t wanted, bool aligned, std::vector<Rank>& ranks) const {
    const Place& here = places_[place];
    if (!here.ranks.empty()) {
        const auto part = static_cast<std::ptrdiff_t>(std::min<std::size_t>(wanted, here.ranks.size()));
        const bool whole = static_cast<std::size_t>(part) == here.ranks.size();
        const auto skipped = aligned && !whole ? static_cast<std::ptrdiff_t>(start_of_block(here, wanted)) : 0;
        ranks.insert(ranks.end(), here.ranks.end() - skipped - part, here.ranks.end() - skipped);
    }
    for (const Free& inner : here.within) {
        if (wanted == 0) return;
        const std::uint32_t part = std::min(wanted, inner.ranks);
        collect(inner.place, part, aligned, ranks);
        wanted -= part;
    }
}

/// How many free ranks lie below the best free block that begins at a multiple of `size`; 0 if there is none. The best
/// one lies in the smallest larger block that is free; of equals the lowest.
std::size_t Ledger::start_of_block(const Place& place, std::uint32_t size) const {
    constexpr std::size_t enough = 64; // blocks to compare
    const auto number_of = [&](std::size_t i) {
        return number_in_place_[place.ranks[place.ranks.size() - 1 - i].value()];
    };
    std::size_t best = 0;
    std::size_t compared = 0;
    std::uint32_t least = UINT32_MAX;
    for (std::size_t i = 0; i + size <= place.ranks.size() && compared < enough && least > size; ++i) {
        const std::uint32_t first = number_of(i);
        if (first % size != 0 || number_of(i + size - 1) != first + size - 1) continue;
        ++compared;
        const std::uint32_t room = room_around(place, first, size);
        if (room >= least) continue;
        least = room;
        best = i;
    }
    return best;
}

/// The size of the largest free block of a power of two around that block, which may reach beyond the place.
std::uint32_t Ledger::room_around(const Place& place, std::uint32_t first, std::uint32_t size) const {
    if (!std::has_single_bit(size)) return size;
    const auto all = static_cast<std::uint32_t>(place.members.size());
    std::uint32_t room = size;
    while (room < all) {
        const std::uint32_t from = first / (2 * room) * (2 * room);
        const std::uint32_t to = std::min(from + 2 * room, all);
        const auto begin = position(place.ranks, place.members[to - 1]);
        const auto end = std::ranges::upper_bound(place.ranks, place.members[from], std::ranges::greater{});
        if (end - begin != static_cast<std::ptrdiff_t>(to - from)) break;
        room *= 2;
    }
    return room;
}

void Ledger::take(Rank rank) {
    const PlaceIndex place = place_of(rank);
    auto& ranks = places_[place].ranks;
    const auto at = position(ranks, rank);
    assert(at != ranks.end() && *at == rank);
    ranks.erase(at);
    add(place, -1);
    --free_;
}

void Ledger::release(Rank rank) {
    const PlaceIndex place = place_of(rank);
    assert(!is_free(rank));
    auto& ranks = places_[place].ranks;
    ranks.insert(position(ranks, rank), rank);
    add(place, 1);
    ++free_;
}

void Ledger::lose(Rank rank, bool was_free) {
    if (was_free) take(rank);
    --alive_;
}

bool Ledger::is_free(Rank rank) const {
    if (rank.value() >= place_by_rank_.size() || places_.empty()) return false;
    const auto& ranks = places_[place_of(rank)].ranks;
    const auto at = position(ranks, rank);
    return at != ranks.end() && *at == rank;
}

Ledger::PlaceIndex Ledger::place_of(Rank rank) const {
    assert(rank.value() < place_by_rank_.size());
    return place_by_rank_[rank.value()];
}

/// Adds to the number of free ranks in a place and in all places around it.
void Ledger::add(PlaceIndex place, std::int32_t ranks) {
    while (place != 0) {
        Place& here = places_[place];
        const std::uint32_t before = here.free;
        here.free += static_cast<std::uint32_t>(ranks);
        recount(levels_[here.level], place, before, here.free);
        recount(places_[here.around].within, place, before, here.free);
        place = here.around;
    }
}

template <class Places>
void Ledger::recount(Places& places, PlaceIndex place, std::uint32_t before, std::uint32_t after) {
    if (before == 0) {
        places.insert({after, place});
        return;
    }
    auto node = places.extract({before, place});
    if (after == 0) return;
    node.value().ranks = after; // reuses the node: no allocation
    places.insert(std::move(node));
}

} // namespace ranktune::tuner
