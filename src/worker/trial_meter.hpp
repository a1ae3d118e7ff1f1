// SPDX-License-Identifier: Apache-2.0
#pragma once
// TrialMeter: adds memory, load and energy of a trial's GPUs to the reports of its leader.

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/gpu_meter.hpp"
#include "ranktune/base/log.hpp"
#include "worker/trial/runner.hpp"

namespace ranktune::worker {

/// Used by the service thread.
class TrialMeter {
  public:
    /// `gpus_on_node`: by rank of the job (worker::DeviceGrant::on_node). Says in the log when there is no driver.
    TrialMeter(bool on, std::vector<std::vector<std::string>> gpus_on_node, base::LogSink& log);
    void start(const worker::Assignment& assignment);
    /// Call often: samples, and completes a report.
    void measure(std::optional<worker::RunnerEvent>& event);

  private:
    using Clock = std::chrono::steady_clock;
    bool on_;
    std::vector<std::vector<std::string>> gpus_on_node_;
    base::LogSink& log_;
    std::vector<std::string> measured_; ///< the GPUs of `meter_`
    std::unique_ptr<device::GpuMeter> meter_;
    bool runs_ = false; ///< this rank leads an attempt whose GPUs can be measured
    Clock::time_point next_{};
};

} // namespace ranktune::worker
