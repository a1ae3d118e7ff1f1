// SPDX-License-Identifier: Apache-2.0
#pragma once
// DeviceSums: sums of gradients in device memory over the ranks of a trial, as work of the device's streams.

#include <cstdint>
#include <string>

#include "ranktune/ddp/group.hpp"

namespace ranktune::ddp {

/// The group cannot be used any more, because a device or the connection between devices failed. The attempt is lost,
/// and no fault of the trial.
class GroupLost : public Aborted {
  public:
    enum class Cause : std::uint8_t {
        peer,   ///< another rank is gone
        device, ///< this rank's device failed
        system, ///< NCCL or the network failed
        timeout ///< the ranks did not come together in time
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
    /// float32, float64, and float16 and bfloat16, which are added in float and rounded once. The same bits on all
    /// ranks. Collective: all ranks start the same sums in the same order.
    virtual void start(base::Buffer values) = 0;
    /// Later work of the compute stream begins after all sums that were started.
    virtual void join() = 0;
    /// Sums zeros for a rank that has failed, as `start` would. Collective with the `start` of others.
    virtual void start_zeros(std::size_t count, base::DType type) = 0;
    /// Throws when the sums can never complete.
    virtual void look() = 0;
    /// Ends what is in flight; the sums must never be used again. Local.
    virtual void abandon() noexcept = 0;
};

} // namespace ranktune::ddp
