// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a contract on a group whose ranks are threads.

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "collective_contract.hpp"
#include "ddp/collective/thread_collective.hpp"
#include "support/catch.hpp"

namespace ranktune::test {

inline const std::atomic<bool> never{false};

/// Runs `body` on each of `size` threads with a function that forms the group of all of them.
inline Complaints on_threads(std::uint32_t size, const std::function<Complaints(const MakeCollective&)>& body) {
    ddp::ThreadMeeting meeting;
    std::vector<base::Rank> ranks;
    for (std::uint32_t rank = 0; rank < size; ++rank) ranks.push_back(base::Rank{rank});
    std::vector<Complaints> complaints(size);
    std::vector<std::thread> threads;
    for (const auto me : ranks) {
        threads.emplace_back([&, me] {
            std::uint64_t ticket = 0;
            complaints[me.value()] = body([&] { return meeting.form(ranks, me, ++ticket, never); });
        });
    }
    for (auto& thread : threads) thread.join();
    CHECK(meeting.incomplete() == 0);
    Complaints all;
    for (const auto& list : complaints) all.insert(all.end(), list.begin(), list.end());
    return all;
}

} // namespace ranktune::test
