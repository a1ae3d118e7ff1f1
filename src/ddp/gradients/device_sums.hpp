// SPDX-License-Identifier: Apache-2.0
#pragma once
// DeviceSums: sums of gradients in device memory over the ranks of a trial, as work of the device's streams.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "ddp/collective.hpp"

namespace ranktune::device {
class Stream;
}

namespace ranktune::ddp {

/// The group cannot be used any more, because a device or the connection between devices failed. The attempt is lost,
/// and no fault of the trial.
class GroupLost : public Aborted {
  public:
    enum class Cause : std::uint8_t {
        peer,   ///< another rank is gone
        told,   ///< another rank has given up the group, and says why
        device, ///< this rank's device failed
        system, ///< NCCL or the network failed
        timeout ///< the ranks did not come together in time, or a sum was not complete
    };
    GroupLost(Cause cause, const std::string& message) : Aborted(message), cause_(cause) {}
    [[nodiscard]] Cause cause() const { return cause_; }

  private:
    Cause cause_;
};

/// The sums of one group on one device of this rank. Owned by the group; used by the thread of the group. Every
/// function returns without waiting for the device, and throws Aborted or GroupLost.
class DeviceSums {
  public:
    virtual ~DeviceSums() = default;
    /// Sums `values`, in memory of the device, in place, after the work that was issued on the compute stream so far.
    /// float32, float64, and float16 and bfloat16, which travel as such, are added in float in the order of ranks, and
    /// rounded once. The same bits on all ranks. Collective: all ranks start the same sums in the same order.
    virtual void start(base::Buffer values) = 0;
    /// Later work of the compute stream begins after all sums that were started.
    virtual void join() = 0;
    /// Issues work to the stream of the sums, after the work that was issued on the compute stream so far. Local.
    virtual void issue(const std::function<void(device::Stream&)>& work) = 0;
    /// Part r of `parts` goes to rank r, and part r of `all`, which must not overlap it, comes from there: `bytes`
    /// bytes each, in memory of the device; work of the stream of the sums. Collective, in the order of the sums.
    virtual void exchange(const void* parts, void* all, std::size_t bytes) = 0;
    /// Likewise: rank r's `bytes` bytes become part r of `all`.
    virtual void gather(const void* mine, void* all, std::size_t bytes) = 0;
    /// Sums bfloat16 in place by NCCL itself: every rank rounds that adds. Otherwise as `exchange`.
    virtual void sum_rounded(void* values, std::size_t count) = 0;
    /// Rank 0's values become those of all ranks, after the work that was issued on the compute stream so far.
    /// Collective, in the order of the sums.
    virtual void broadcast(base::Buffer values) = 0;
    /// Takes part in a sum, an exchange or a gather with zeros, for a rank that has failed. Collective with the others'
    /// `start`, `exchange` or `gather`. `count`: as StepPlan has it; `type`: of sums.
    virtual void start_zeros(StepPlan::Route route, std::size_t count, base::DType type) = 0;
    /// All ranks have started what was started here so far: it has to be complete within the time of
    /// Collective::limit_waits. After that the communicator is aborted, even while this thread waits for the device.
    virtual void expect() = 0;
    /// Whether that has happened, or a watcher has found another reason to give up: `look` throws then.
    [[nodiscard]] virtual bool lost() const = 0;
    /// Throws when the sums can never complete.
    virtual void look() = 0;
    /// Ends what is in flight; the sums must never be used again. Local.
    virtual void abandon() noexcept = 0;
};

} // namespace ranktune::ddp
