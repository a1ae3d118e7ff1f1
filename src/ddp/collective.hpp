// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collective: a Group as the library sees it: gradient steps, and what the trial loop alone may call.

#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "ranktune/ddp/group.hpp"

namespace ranktune::ddp {

/// A started operation on a buffer that must live until `test` has returned true (also after an exception: see
/// GradientReducer).
class Pending {
  public:
    virtual ~Pending() = default;
    /// Drives progress; true when complete. Never blocks.
    virtual bool test() = 0;
};

/// What one step of a GradientReducer reduces, in order: buckets of so many numbers of one type.
struct StepPlan {
    base::DType type = base::DType::float32;
    std::vector<std::size_t> counts;
    friend bool operator==(const StepPlan&, const StepPlan&) = default;
};

/// A gradient step that has begun and not ended, as its owner sees it.
class OpenStep {
  public:
    virtual ~OpenStep() = default;
    /// Ends the step for a rank that failed: starts the buckets that it still owes as zeros, with a word in the last
    /// one that says so, and waits for them. Calls Collective::part.
    virtual void fail() noexcept = 0;
};

/// Elements of the largest bucket: MPI counts with an int.
inline constexpr std::size_t largest_bucket = INT_MAX;

/// Failure protocol: each collective operation begins with the reduction of a small header {operation, failed}. A rank
/// that fails outside an operation calls `fail`: it takes part in the next header, says that it failed, and (when that
/// operation was a gradient step) joins it with zeros. All ranks then leave with PeerFailed, and nothing stays in
/// flight. A rank that waits for a message hears of the failure by a message and joins the header as well.
///
/// *Every* member function but `announce`, `part` and `fail` is collective.
class Collective : public Group {
  public:
    Collective() = default;
    [[nodiscard]] static Collective& of(Group& group) { return static_cast<Collective&>(group); } // nobody else is one

    /// Minimum and maximum of one number, by the header alone: for verdicts and agreement checks.
    [[nodiscard]] virtual std::pair<std::uint64_t, std::uint64_t> min_max(std::uint64_t value) = 0;

    // ---- for GradientReducer ----
    /// There will be steps with this plan; returns its number. All ranks announce the same plans in the same order, and
    /// begin no step before all have announced it: then a rank that fails knows what it owes. Local.
    [[nodiscard]] virtual std::size_t announce(const StepPlan& plan) = 0;
    /// Opens a step: starts the header's reduction. Requires that no step is open. `step` lives until end_step.
    virtual void begin_step(std::size_t plan, OpenStep& step) = 0;
    /// Starts summing the next bucket of the plan in place, as all_reduce does it. `reaches(values.place())`.
    [[nodiscard]] virtual std::unique_ptr<Pending> start_sum(base::Buffer values) = 0;
    /// Ends a step, after all its buckets completed: throws PeerFailed or Aborted when the header said so.
    virtual void end_step() = 0;
    /// Whether buffers in `place` can be reduced.
    [[nodiscard]] bool reaches(const base::Place& place) const override { return place.is_host(); }

    // ---- for the trial loop ----
    /// This rank failed (it is not inside an operation): takes part in the next operation of the others as described
    /// above, or ends the step that it has left open, then returns.
    virtual void fail() = 0;
    /// Told by GradientReducer when a step has ended with the word that a rank failed, and by the trial loop after the
    /// last operation: all ranks part here. A driver that wraps the group remembers it, so that the failing rank does
    /// not call `fail` for a second time. Local.
    virtual void part() noexcept = 0;
};

} // namespace ranktune::ddp
