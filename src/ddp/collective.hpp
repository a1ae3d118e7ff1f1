// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collective: the library's view of a Group: gradient steps, and the calls of the trial loop.

#include <atomic>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "ranktune/ddp/group.hpp"

namespace ranktune::device {
class Accelerator;
}

namespace ranktune::ddp {

/// A started operation on a buffer that must live until `test` has returned true (also after an exception: see
/// GradientReducer).
class Pending {
  public:
    virtual ~Pending() = default;
    /// Drives progress; true when complete. Never blocks.
    virtual bool test() = 0;
};

class DeviceSums;

/// The buckets of one step of a GradientReducer, in order: numbers of elements of one type.
struct StepPlan {
    base::DType type = base::DType::float32;
    std::vector<std::size_t> counts;
    /// How a count travels. Of a gather or an exchange it is in bytes: those of every rank, and those for every rank.
    /// rounded_sum: of bfloat16 on a device, by NCCL itself.
    enum class Route : std::uint8_t { sum, gather, exchange, rounded_sum };
    /// Buckets that lie on a device come before those, and travel from there.
    struct OnDevice {
        DeviceSums* sums = nullptr; ///< of this rank; null: none
        base::DType type = base::DType::float32;
        std::vector<std::size_t> counts;
        std::vector<Route> routes = {}; ///< one per count; empty: all are sums
        [[nodiscard]] Route route(std::size_t i) const { return routes.empty() ? Route::sum : routes[i]; }
        friend bool operator==(const OnDevice&, const OnDevice&) = default;
    } on_device = {};
    std::vector<Route> routes = {}; ///< one per count; empty: all are sums
    friend bool operator==(const StepPlan&, const StepPlan&) = default;
};

/// A gradient step that has begun and not ended. Implemented by its owner.
class OpenStep {
  public:
    virtual ~OpenStep() = default;
    /// Ends the step for a rank that failed: starts the remaining buckets as zeros, sets the status word in the last
    /// one, and waits for them. Calls Collective::part.
    virtual void fail() noexcept = 0;
};

/// Elements of the largest bucket: MPI counts with an int.
inline constexpr std::size_t largest_bucket = INT_MAX;

/// Failure protocol: each collective operation begins with the reduction of a small header {operation, failed}. A rank
/// that fails outside an operation calls `fail`: it takes part in the next header, reports its failure there, and (when
/// that operation is a gradient step) joins it with zeros. All ranks then leave with PeerFailed, and nothing stays in
/// flight. A rank that waits for a message learns of the failure by a notice and joins the header as well.
///
/// *Every* member function except `announce`, `part`, `fail` and those that say "Local" is collective.
class Collective : public Group {
  public:
    Collective() = default;
    /// Every Group is a Collective.
    [[nodiscard]] static Collective& of(Group& group) { return static_cast<Collective&>(group); }

    /// Minimum and maximum of one number, reduced in the header itself: for verdicts and agreement checks.
    [[nodiscard]] virtual std::pair<std::uint64_t, std::uint64_t> min_max(std::uint64_t value) = 0;

    // ---- for GradientReducer ----
    /// Sums in memory of this rank's device `on`; lives as long as the group. Throws base::UsageError when the group
    /// cannot reduce there, and what DeviceGroups::form throws.
    [[nodiscard]] virtual DeviceSums& sums_on(device::Accelerator& on);
    /// Registers the plan of later steps; returns its number. All ranks announce the same plans in the same order, and
    /// begin no step before all have announced it, so that a failing rank knows which buckets it must still send.
    /// Local.
    [[nodiscard]] virtual std::size_t announce(const StepPlan& plan) = 0;
    /// Opens a step: starts the header's reduction. Requires that no step is open. `step` lives until end_step.
    virtual void begin_step(std::size_t plan, OpenStep& step) = 0;
    /// Starts summing the next bucket of the plan in place, as all_reduce does. Requires `reaches(values.place())`.
    [[nodiscard]] virtual std::unique_ptr<Pending> start_sum(base::Buffer values) = 0;
    /// Starts the next operation of the plan on bytes: `all` gets rank r's bytes as part r.
    [[nodiscard]] virtual std::unique_ptr<Pending> start_gather(std::span<const std::byte> mine,
                                                                std::span<std::byte> all) = 0;
    /// Likewise: rank r gets part r of `parts`, and `all` has what rank r sent to this one as part r.
    [[nodiscard]] virtual std::unique_ptr<Pending> start_exchange(std::span<const std::byte> parts,
                                                                  std::span<std::byte> all) = 0;
    /// Ends a step, after all its buckets completed: throws PeerFailed or Aborted when the header reported that.
    virtual void end_step() = 0;
    /// Whether buffers in `place` can be reduced.
    [[nodiscard]] bool reaches(const base::Place& place) const override { return place.is_host(); }

    /// Called while the caller waits for a step, since `begin`: throws GroupLost after the longest wait. Local.
    virtual void check_wait(std::chrono::steady_clock::time_point begin) { static_cast<void>(begin); }

    // ---- for the trial loop ----
    /// From now on a rank that waits for others longer than this, in an operation or a step, gives up the group: all
    /// ranks that wait throw GroupLost. Sums on devices have this time from the moment when all ranks have started
    /// them. min_max waits without limit: the leader may wait for the head meanwhile. The same on all ranks. Local.
    virtual void limit_waits(std::chrono::nanoseconds longest) { static_cast<void>(longest); }
    /// Throws GroupLost when sums on a device were given up: what was computed since then is undefined. Local.
    virtual void check_sums() {}
    /// This rank failed (it is not inside an operation): takes part in the other ranks' next operation as described
    /// above, or ends its own open step, then returns. Throws GroupLost when a device of this rank cannot join any sum.
    virtual void fail() = 0;
    /// Called by GradientReducer when a step has ended with a failure, and by the trial loop after the last operation:
    /// all ranks leave here. A driver that wraps the group records it, so that the failing rank does not call `fail` a
    /// second time. Local.
    virtual void part() noexcept = 0;
};

/// The Collective of a trial of one rank. Every operation is local. With `abort` (which outlives the result), each
/// throws Aborted once it is raised, as the collectives of larger trials do.
[[nodiscard]] std::unique_ptr<Collective> make_self_collective(const std::atomic<bool>* abort = nullptr);

} // namespace ranktune::ddp
