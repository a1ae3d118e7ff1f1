// SPDX-License-Identifier: Apache-2.0
#pragma once
// GpuMeter: memory, load and energy of GPUs, as the driver counts them (NVML).

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ranktune::device {

/// What GPUs did between two readings.
struct GpuReading {
    double peak_bytes = 0.0; ///< of memory in use, the largest of all samples and GPUs
    double busy = 0.0;       ///< share of the time in which kernels ran, a mean over samples and GPUs
    double joules = 0.0;     ///< sum over the GPUs
};

/// Counts whole GPUs, whoever uses them. Not thread-safe. Calls of NVML take about a millisecond.
class GpuMeter {
  public:
    /// Opens NVML and finds these GPUs, named as in CUDA_VISIBLE_DEVICES. Those that the driver does not show are left
    /// out.
    explicit GpuMeter(const std::vector<std::string>& granted);
    ~GpuMeter();
    GpuMeter(const GpuMeter&) = delete;
    GpuMeter& operator=(const GpuMeter&) = delete;
    /// False: there is no driver, or it shows none of the GPUs.
    [[nodiscard]] bool works() const;
    void sample();
    /// Takes a sample, and returns what happened since the last call or the beginning.
    [[nodiscard]] GpuReading take();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace ranktune::device
