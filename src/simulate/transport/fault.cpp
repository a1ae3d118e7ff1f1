// SPDX-License-Identifier: Apache-2.0
#include "simulate/transport/fault.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace ranktune::simulate {

FaultTransport::FaultTransport(std::unique_ptr<comm::Transport> wire, const FaultPlan& plan)
    : wire_(std::move(wire)), plan_(plan) {
    assert(plan_.min_delay <= plan_.max_delay);
}

void FaultTransport::advance(base::StudyTime now) {
    assert(now >= now_);
    // Messages that were due before the death are sent.
    now_ = plan_.death && !dead_ ? std::min(now, *plan_.death) : now;
    if (!dead_) release_due();
    now_ = now;
    if (plan_.death && now >= *plan_.death) die();
}

std::optional<base::StudyTime> FaultTransport::next_due() const {
    if (held_.empty()) return std::nullopt;
    return held_.begin()->first.at;
}

void FaultTransport::die() {
    dead_ = true;
    held_.clear();
}

void FaultTransport::send(base::Rank to, std::span<const std::byte> bytes) {
    if (dead_) return;
    ++counts_.sent;
    Link& towards = link(to);
    // Make all draws for every message, so that a change of one probability does not change the others' draws.
    const double drop = towards.stream.uniform();
    const double duplicate = towards.stream.uniform();
    const double reorder = towards.stream.uniform();
    if (drop < plan_.drop) {
        ++counts_.dropped;
        return;
    }
    hold(towards, to, bytes, reorder >= plan_.reorder);
    if (duplicate < plan_.duplicate) {
        ++counts_.duplicated;
        hold(towards, to, bytes, false);
    }
    release_due();
}

std::optional<comm::Packet> FaultTransport::poll() {
    if (dead_) return std::nullopt;
    release_due();
    return wire_->poll();
}

bool FaultTransport::flushed() { return held_.empty() && wire_->flushed(); }

FaultTransport::Link& FaultTransport::link(base::Rank to) {
    const auto it = links_.find(to);
    if (it != links_.end()) return it->second;
    return links_.emplace(to, Link{base::RngStream(plan_.seed, base::Purpose::fault, rank().value(), to.value()), now_})
        .first->second;
}

void FaultTransport::hold(Link& link, base::Rank to, std::span<const std::byte> bytes, bool ordered) {
    const auto spread = static_cast<std::uint64_t>((plan_.max_delay - plan_.min_delay).count());
    auto due = now_ + plan_.min_delay + base::Duration(link.stream.below(spread + 1));
    if (ordered) {
        due = std::max(due, link.last_due);
    } else if (due < link.last_due) {
        ++counts_.overtook;
    }
    link.last_due = std::max(due, link.last_due);
    held_.emplace(Due{due, next_sequence_++}, Held{to, {bytes.begin(), bytes.end()}});
}

void FaultTransport::release_due() {
    while (!held_.empty() && held_.begin()->first.at <= now_) {
        const auto held = held_.extract(held_.begin());
        wire_->send(held.mapped().to, held.mapped().bytes);
    }
}

} // namespace ranktune::simulate
