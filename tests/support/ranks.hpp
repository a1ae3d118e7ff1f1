// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a function on the ranks of a trial, each a thread of this process.

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "ddp/collective/thread_collective.hpp"

namespace ranktune::testing {

/// Calls `body` on `size` ranks at the same time and returns, per rank, the message of what it threw ("" for nothing;
/// the type name for PeerFailed and Aborted).
inline std::vector<std::string> on_ranks(int size, const std::function<void(ddp::Collective&)>& body) {
    const auto collectives = ddp::make_thread_collectives(size);
    std::vector<std::string> thrown(static_cast<std::size_t>(size));
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < thrown.size(); ++rank) {
        threads.emplace_back([&, rank] {
            try {
                body(*collectives[rank]);
            } catch (const ddp::PeerFailed&) {
                thrown[rank] = "PeerFailed";
            } catch (const ddp::Aborted&) {
                thrown[rank] = "Aborted";
            } catch (const std::exception& error) {
                thrown[rank] = error.what();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    return thrown;
}

/// What on_ranks returns when nothing was thrown.
inline std::vector<std::string> all_well(int size) { return std::vector<std::string>(static_cast<std::size_t>(size)); }

} // namespace ranktune::testing
