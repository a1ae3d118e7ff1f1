// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collective: operations over the ranks of one trial, in a form in which no failure strands a partner.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "ranktune/base/error.hpp"

namespace ranktune::ddp {

/// Another rank of the trial failed. Thrown on every healthy rank by the same operation, so that all leave at the same
/// place and the communicator stays usable.
class PeerFailed : public base::Error {
  public:
    using Error::Error;
};
/// The trial was told to give up (a member died, the study ends at once).
class Aborted : public base::Error {
  public:
    using Error::Error;
};

/// A started operation on a buffer that must live until `test` has returned true (also after an exception: see
/// GradientReducer).
class Pending {
  public:
    virtual ~Pending() = default;
    /// Drives progress; true when complete. Never blocks.
    virtual bool test() = 0;
};

/// The ranks of one trial. *Every* member function but rank() and size() is collective: all ranks call the same ones in
/// the same order.
///
/// Failure protocol: each blocking operation begins with the reduction of a small header {operation, failed}. A rank
/// that fails outside an operation calls `fail`: it takes part in the next header, says that it failed, and (when that
/// operation was a reduction step) joins it with zeros. All ranks then leave with PeerFailed, and nothing stays in
/// flight.
class Collective {
  public:
    virtual ~Collective() = default;
    [[nodiscard]] virtual int rank() const = 0; ///< within the trial: 0 is the leader
    [[nodiscard]] virtual int size() const = 0;

    virtual void barrier() = 0;
    /// Copies rank `root`'s bytes to all.
    virtual void broadcast(std::span<std::byte> bytes, int root = 0) = 0;
    /// Sums in place, same result bit for bit on all ranks. Deterministic for a given number of ranks.
    virtual void all_reduce_sum(std::span<double> values) = 0;
    /// Element-wise minimum and maximum of one number: for agreement checks.
    [[nodiscard]] virtual std::pair<std::uint64_t, std::uint64_t> min_max(std::uint64_t value) = 0;

    // ---- building blocks of GradientReducer; not for trainables ----
    /// Opens a step: starts the header's reduction.
    virtual void begin_step() = 0;
    /// Starts summing a bucket in place, in the order of the plan.
    [[nodiscard]] virtual std::unique_ptr<Pending> start_sum(std::span<float> values) = 0;
    /// Ends a step, after all its buckets completed: throws PeerFailed or Aborted when the header said so.
    virtual void end_step() = 0;

    /// This rank failed (it is not inside an operation): takes part in the next operation of the others as described
    /// above, then returns. `owed` are the sizes of the buckets of a step that this rank would have started, in plan
    /// order (empty: none planned yet).
    virtual void fail(std::span<const std::size_t> owed) = 0;
    /// Told by GradientReducer when a step has ended with the word that a rank failed: all ranks part here. A driver
    /// that wraps the group remembers it, so that the failing rank does not call `fail` for a second time. Local.
    virtual void part() noexcept {}
};

/// One rank: every operation is local. For trials of one rank and for tests.
[[nodiscard]] std::unique_ptr<Collective> make_self_collective();

} // namespace ranktune::ddp
