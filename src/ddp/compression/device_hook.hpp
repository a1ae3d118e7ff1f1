// SPDX-License-Identifier: Apache-2.0
#pragma once
// DeviceHook: how the buckets of a reducer on a device travel in another form than as they are.

#include <cstddef>
#include <memory>
#include <vector>

#include "ddp/compression/hook.hpp"
#include "device/device.hpp"

namespace ranktune::ddp {

class DeviceSums;

/// The counterpart of Hook for gradients in memory of a device: everything that a bucket needs is issued at once, as
/// work of the stream of the sums; nothing waits. All memory is allocated by the constructor.
class DeviceHook {
  public:
    virtual ~DeviceHook() = default;
    /// Appends the operations of a step, in the order in which they are started.
    virtual void announce(StepPlan::OnDevice& step) const = 0;
    /// Bucket b is full on the compute stream: it gets its sums, of the stream of the sums.
    virtual void start(DeviceSums& sums, std::size_t b) = 0;
    /// Empty without error feedback.
    [[nodiscard]] virtual std::vector<HookState> state() { return {}; }
};

/// Null for Compression::Kind::none. `on` outlives the result.
[[nodiscard]] std::unique_ptr<DeviceHook> make_device_hook(HookInput input, device::Accelerator& on);
[[nodiscard]] std::unique_ptr<DeviceHook> make_device_half_hook(HookInput input, device::Accelerator& on);
[[nodiscard]] std::unique_ptr<DeviceHook> make_device_power_hook(HookInput input, device::Accelerator& on);
[[nodiscard]] std::unique_ptr<DeviceHook> make_device_top_hook(HookInput input, device::Accelerator& on);

/// Numbers in memory of a device.
template <class T>
class OnDevice {
  public:
    OnDevice() = default;
    /// All bytes are zero after the work of the compute stream so far.
    OnDevice(device::Accelerator& on, std::size_t count)
        : memory_(base::allocate(base::Place(on), count * sizeof(T))), count_(count) {
        on.compute_stream().fill_zero(memory_.get(), count * sizeof(T));
    }
    [[nodiscard]] T* data() const { return static_cast<T*>(memory_.get()); }
    [[nodiscard]] std::size_t size() const { return count_; }

  private:
    std::shared_ptr<void> memory_;
    std::size_t count_ = 0;
};

} // namespace ranktune::ddp
