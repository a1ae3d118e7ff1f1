// SPDX-License-Identifier: Apache-2.0
#include "searchers/suggested_tickets.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "ranktune/base/error.hpp"
#include "ranktune/study/schema.hpp"

namespace ranktune::searchers {

void SuggestedTickets::apply(const study::Record& record) {
    if (const auto* opened = std::get_if<study::TicketOpened>(&record)) {
        Open open{opened->ticket, without_ticket_ + opened_++, {}, {}, true};
        for (const Open& each : open_)
            if (each.waits) open.others.push_back(each.number);
        open_.push_back(std::move(open));
    } else if (const auto* prepared = std::get_if<study::TicketPrepared>(&record)) {
        const auto open = std::ranges::find(open_, prepared->ticket, &Open::number);
        if (open == open_.end()) return;
        open->configuration = prepared->configuration;
        open->waits = prepared->configuration.has_value();
        forget();
    } else if (const auto* created = std::get_if<study::TrialCreated>(&record)) {
        using Kind = study::Origin::Kind;
        if (created->origin.kind == Kind::searcher || created->origin.kind == Kind::stopgap) ++without_ticket_;
        if (created->origin.kind != Kind::ticket) return;
        const auto open = std::ranges::find(open_, created->origin.index, &Open::number);
        if (open == open_.end()) return;
        open->waits = false;
        forget();
    }
}

/// Drops tickets that a trial has taken and that no other one has still to keep away from.
void SuggestedTickets::forget() {
    std::set<std::uint64_t> needed;
    for (const Open& each : open_) {
        if (!each.waits) continue;
        needed.insert(each.number);
        if (!each.configuration) needed.insert(each.others.begin(), each.others.end());
    }
    std::erase_if(open_, [&](const Open& each) { return !needed.contains(each.number); });
}

std::vector<SuggestedTickets::Open> SuggestedTickets::others_of(std::uint64_t ticket) const {
    std::vector<Open> others;
    const auto opened = std::ranges::find(open_, ticket, &Open::number);
    if (opened == open_.end()) return others;
    for (const Open& each : open_)
        if (std::ranges::find(opened->others, each.number) != opened->others.end()) others.push_back(each);
    return others;
}

Turn SuggestedTickets::turn_of(std::uint64_t ticket) const {
    const auto opened = std::ranges::find(open_, ticket, &Open::number);
    return opened == open_.end() ? Turn(ticket) : Turn(ticket, opened->place);
}

std::vector<space::Configuration> SuggestedTickets::waiting() const {
    std::vector<space::Configuration> all;
    for (const Open& each : open_)
        if (each.waits && each.configuration) all.push_back(*each.configuration);
    return all;
}

void SuggestedTickets::snapshot(study::Encoder& out) const {
    out.u8(2);
    out.varint(opened_);
    out.varint(without_ticket_);
    study::put(out, open_);
}

void SuggestedTickets::restore(study::Decoder& in, std::string_view searcher) {
    if (in.u8() != 2) throw base::FormatError("a snapshot of \"" + std::string(searcher) + "\" has an unknown version");
    opened_ = in.varint();
    without_ticket_ = in.varint();
    study::get(in, open_);
}

std::vector<space::Configuration> ComputedTickets::of(const std::vector<SuggestedTickets::Open>& tickets) const {
    std::vector<space::Configuration> all;
    for (const SuggestedTickets::Open& each : tickets) {
        if (each.configuration)
            all.push_back(*each.configuration);
        else if (const auto made = computed_.find(each.number); made != computed_.end())
            all.push_back(made->second);
    }
    return all;
}

void ComputedTickets::keep(std::uint64_t ticket, const space::Configuration& configuration) {
    constexpr std::size_t most = 1024;
    computed_.insert_or_assign(ticket, configuration);
    while (computed_.size() > most) computed_.erase(computed_.begin());
}

} // namespace ranktune::searchers
