// SPDX-License-Identifier: Apache-2.0
#pragma once
// The contract of every Transport: every rank runs `transport_contract` on its own endpoint, as a thread or as a
// process. Returns complaints instead of asserting, because Catch2's assertions are not thread-safe.

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "comm/transport/transport.hpp"

namespace ranktune::test {

inline constexpr std::array<std::size_t, 6> contract_sizes{0, 1, 100, 4096, 70'000, 1'000'000};

inline std::vector<std::byte> contract_bytes(std::uint32_t from, std::uint32_t to, std::size_t i) {
    std::vector<std::byte> bytes(contract_sizes[i % contract_sizes.size()]);
    for (std::size_t k = 0; k < bytes.size(); ++k)
        bytes[k] = static_cast<std::byte>((from * 31 + to * 7 + i + k) & 255);
    return bytes;
}

/// Calls `turn` while waiting (yield, advance a virtual clock). Collective over all endpoints.
inline std::vector<std::string> transport_contract(comm::Transport& mine, const std::function<void()>& turn) {
    std::vector<std::string> complaints;
    const auto me = mine.rank().value();
    constexpr std::size_t rounds = 2 * contract_sizes.size();

    // Everything is sent before anything is received: no send may wait for its receiver, this rank included.
    for (std::size_t i = 0; i < rounds; ++i) {
        for (std::uint32_t to = 0; to < mine.size(); ++to) mine.send(base::Rank{to}, contract_bytes(me, to, i));
    }
    std::vector<std::size_t> received(mine.size(), 0);
    for (std::size_t missing = rounds * mine.size(); missing > 0;) {
        const auto message = mine.poll();
        if (!message) {
            turn();
            continue;
        }
        const auto from = message->from.value();
        if (from >= mine.size()) {
            complaints.push_back("a message from outside the world");
            return complaints;
        }
        if (message->bytes != contract_bytes(from, me, received[from])) {
            complaints.push_back("message " + std::to_string(received[from]) + " of rank " + std::to_string(from) +
                                 " is wrong or out of order");
        }
        ++received[from];
        --missing;
    }
    while (!mine.flushed()) turn();
    for (const auto count : received) {
        if (count != rounds) complaints.push_back("a rank's messages were not delivered once each");
    }
    if (mine.poll()) complaints.push_back("a message arrived that nobody sent");
    return complaints;
}

} // namespace ranktune::test
