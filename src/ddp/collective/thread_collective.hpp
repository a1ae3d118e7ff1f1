// SPDX-License-Identifier: Apache-2.0
#pragma once
// The Collective of trials whose ranks are threads of one process: for studies without MPI and for tests under the
// thread sanitizer.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "ddp/collective/protocol_collective.hpp"
#include "ranktune/base/ids.hpp"

namespace ranktune::ddp {

/// The ranks of one group of `size` threads; element r belongs to the thread that is rank r. `aborts` has one flag per
/// rank or is empty (never aborted); the flags must outlive the result. Sums are added in the order of ranks. `pieces`:
/// for tests.
[[nodiscard]] std::vector<std::unique_ptr<Collective>> make_thread_collectives(
    int size, std::span<const std::atomic<bool>* const> aborts = {}, ProtocolCollective::Pieces pieces = {});

/// Forms groups for threads that run the ranks of a simulated cluster. Thread-safe; must outlive its groups.
class ThreadMeeting {
  public:
    /// Forms the group for `me`, one of `ranks` (distinct; the first leads). All ranks call with the same list and the
    /// same `ticket`, which is used once. Returns at once; the first operation waits for the others. `abort` must
    /// outlive the result.
    [[nodiscard]] std::unique_ptr<Collective> form(std::span<const base::Rank> ranks, base::Rank me,
                                                   std::uint64_t ticket, const std::atomic<bool>& abort);

    /// Number of groups that not all of their ranks have joined.
    [[nodiscard]] std::size_t incomplete() const;

    class Board;

  private:
    struct Forming {
        std::shared_ptr<Board> board;
        std::size_t joined = 0;
    };
    mutable std::mutex mutex_;
    std::map<std::pair<std::uint64_t, std::vector<base::Rank>>, Forming> forming_;
};

} // namespace ranktune::ddp
