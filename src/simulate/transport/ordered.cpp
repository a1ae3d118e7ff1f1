// SPDX-License-Identifier: Apache-2.0
#include "simulate/transport/ordered.hpp"

#include <cassert>
#include <utility>

namespace ranktune::simulate {
namespace {

constexpr std::size_t header_size = 4;

std::uint32_t read_sequence(const std::vector<std::byte>& bytes) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < header_size; ++i) value |= std::to_integer<std::uint32_t>(bytes[i]) << (8 * i);
    return value;
}

} // namespace

OrderedTransport::OrderedTransport(comm::Transport& wire) : wire_(wire), peers_(wire.size()) {}

OrderedTransport::OrderedTransport(std::unique_ptr<comm::Transport> wire)
    : owned_(std::move(wire)), wire_(*owned_), peers_(wire_.size()) {}

void OrderedTransport::send(base::Rank to, std::span<const std::byte> bytes) {
    assert(to.value() < peers_.size());
    const std::uint32_t sequence = peers_[to.value()].next_out++;
    scratch_.clear();
    for (std::size_t i = 0; i < header_size; ++i) scratch_.push_back(static_cast<std::byte>(sequence >> (8 * i)));
    scratch_.insert(scratch_.end(), bytes.begin(), bytes.end());
    wire_.send(to, scratch_);
}

std::optional<comm::Packet> OrderedTransport::poll() {
    if (auto message = take_held()) return message;
    while (auto arrived = wire_.poll()) {
        if (auto message = accept(std::move(*arrived))) return message;
    }
    return std::nullopt;
}

std::optional<comm::Packet> OrderedTransport::take_held() {
    if (!unblocked_) return std::nullopt;
    Peer& peer = peers_[unblocked_->value()];
    const auto it = peer.early.find(peer.next_in);
    if (it == peer.early.end()) {
        unblocked_.reset();
        return std::nullopt;
    }
    comm::Packet message{*unblocked_, std::move(it->second)};
    peer.early.erase(it);
    ++peer.next_in;
    return message;
}

std::optional<comm::Packet> OrderedTransport::accept(comm::Packet message) {
    if (message.bytes.size() < header_size || message.from.value() >= peers_.size()) {
        ++malformed_;
        return std::nullopt;
    }
    Peer& peer = peers_[message.from.value()];
    const std::uint32_t sequence = read_sequence(message.bytes);
    message.bytes.erase(message.bytes.begin(), message.bytes.begin() + header_size);
    // Serial-number arithmetic (RFC 1982): numbers less than 2^31 ahead are new, all others are duplicates.
    const std::uint32_t ahead = sequence - peer.next_in;
    if (ahead >= (std::uint32_t{1} << 31)) {
        ++duplicates_;
        return std::nullopt;
    }
    if (ahead > 0) {
        if (!peer.early.emplace(sequence, std::move(message.bytes)).second) ++duplicates_;
        return std::nullopt;
    }
    ++peer.next_in;
    if (!peer.early.empty()) unblocked_ = message.from;
    return message;
}

} // namespace ranktune::simulate
