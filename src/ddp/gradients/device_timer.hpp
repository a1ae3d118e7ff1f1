// SPDX-License-Identifier: Apache-2.0
#pragma once
// DeviceTimer: how long the sums of a reducer on a device take, and how much of that nothing else was done.

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "device/device.hpp"
#include "ranktune/ddp/gradient_reducer.hpp"

namespace ranktune::ddp {

/// Records events on both streams in each step and reads them later, so that nothing waits for the device. Waited is
/// the time from the end of the compute stream's own work to the moment when that stream can go on: after the sums, and
/// after the status of the step has come to the host.
class DeviceTimer {
  public:
    explicit DeviceTimer(device::Accelerator& on) : on_(on) {}
    /// A new step, of which nothing is known yet.
    void begin();
    /// A sum is about to be started.
    void sums();
    /// All have been started, and the compute stream is about to wait for them.
    void joins();
    /// The step is complete on the host.
    void ends();
    /// Times of all steps together. Waits until the device has done the last one; `look` is called meanwhile, and may
    /// throw.
    [[nodiscard]] GradientReducer::Timing total(const std::function<void()>& look);

  private:
    struct Step {
        std::unique_ptr<device::Event> begun;    ///< the first bucket could be sent
        std::unique_ptr<device::Event> computed; ///< the compute stream had nothing left to do
        std::unique_ptr<device::Event> summed;
        std::unique_ptr<device::Event> resumed; ///< the compute stream could go on
    };
    [[nodiscard]] Step fresh();
    /// Takes over the steps that the device has done.
    void collect();

    device::Accelerator& on_;
    Step open_;
    bool has_sums_ = false; ///< the open step
    bool joined_ = false;
    std::deque<Step> ended_; ///< not yet read
    std::vector<Step> spare_;
    GradientReducer::Timing total_;
};

} // namespace ranktune::ddp
