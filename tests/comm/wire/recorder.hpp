// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by the tests of the machines: an outbox that records messages after encoding and decoding them.

#include <deque>
#include <map>
#include <string>

#include "comm/transport/transport.hpp"
#include "comm/wire/protocol.hpp"
#include "support/catch.hpp"

namespace ranktune::testing {

using base::AttemptId;
using base::Incarnation;
using base::Rank;
using base::StudyTime;
using base::TrialId;
using namespace std::chrono_literals;

inline StudyTime at(base::Duration since_begin) { return StudyTime{since_begin}; }

/// Keeps the messages sent to each rank. A test takes those it expects; none may be left at its end.
class Recorder final : public comm::Outbox {
  public:
    void send(Rank to, std::span<const std::byte> message) override {
        comm::Message decoded;
        comm::decode_message(message, decoded);
        sent_[to].push_back(std::move(decoded));
    }

    /// The next message to `to`, which must be a T.
    template <class T>
    T take(Rank to) {
        auto& queue = sent_[to];
        REQUIRE_FALSE(queue.empty());
        INFO("the next message is of kind " << queue.front().index());
        REQUIRE(std::holds_alternative<T>(queue.front()));
        T taken = std::get<T>(std::move(queue.front()));
        queue.pop_front();
        return taken;
    }
    [[nodiscard]] std::size_t count(Rank to) const {
        const auto at = sent_.find(to);
        return at == sent_.end() ? 0 : at->second.size();
    }
    template <class T>
    [[nodiscard]] bool next_is(Rank to) const {
        const auto at = sent_.find(to);
        return at != sent_.end() && !at->second.empty() && std::holds_alternative<T>(at->second.front());
    }
    /// Drops every message of kind T; returns how many there were.
    template <class T>
    std::size_t drop() {
        std::size_t dropped = 0;
        for (auto& [to, queue] : sent_)
            dropped += std::erase_if(queue, [](const comm::Message& m) { return std::holds_alternative<T>(m); });
        return dropped;
    }
    /// Requires that nothing else was sent.
    void check_empty() const {
        for (const auto& [to, queue] : sent_) {
            INFO("to rank " << to.value() << ", kind " << (queue.empty() ? 0 : queue.front().index()));
            CHECK(queue.empty());
        }
    }

  private:
    std::map<Rank, std::deque<comm::Message>> sent_;
};

template <class T>
study::Bytes bytes_of(const T& message) {
    study::Bytes bytes;
    comm::encode_message(message, bytes);
    return bytes;
}

} // namespace ranktune::testing
