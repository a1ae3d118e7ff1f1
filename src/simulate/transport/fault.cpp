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
    if (towards.stream.uniform() < plan_.drop) {
        ++counts_.dropped;
        return;
    }
    const auto spread = static_cast<std::uint64_t>((plan_.max_delay - plan_.min_delay).count());
    const auto due = now_ + plan_.min_delay + base::Duration(towards.stream.below(spread + 1));
    towards.last_due = std::max(due, towards.last_due);
    held_.emplace(Due{towards.last_due, next_sequence_++}, Held{to, {bytes.begin(), bytes.end()}});
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

void FaultTransport::release_due() {
    while (!held_.empty() && held_.begin()->first.at <= now_) {
        const auto held = held_.extract(held_.begin());
        wire_->send(held.mapped().to, held.mapped().bytes);
    }
}

} // namespace ranktune::simulate
