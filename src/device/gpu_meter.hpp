// SPDX-License-Identifier: Apache-2.0
#pragma once
// GpuMeter: memory, load and energy of GPUs, as the driver counts them (NVML).

#include <cstdint>
#include <string>
#include <vector>

#include "device/nvml.hpp"

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
    GpuMeter(const GpuMeter&) = delete;
    GpuMeter& operator=(const GpuMeter&) = delete;
    /// False: there is no driver, or it shows none of the GPUs.
    [[nodiscard]] bool works() const { return !gpus_.empty(); }
    void sample();
    /// Takes a sample, and returns what happened since the last call or the beginning.
    [[nodiscard]] GpuReading take();

  private:
    struct Gpu {
        NvmlDevice handle = nullptr;
        unsigned long long millijoules = 0; ///< at the last reading
    };
    [[nodiscard]] unsigned long long energy_of(const Gpu& gpu) const;

    Nvml nvml_;
    std::vector<Gpu> gpus_;
    double peak_bytes_ = 0.0;
    double busy_sum_ = 0.0;
    std::uint64_t busy_samples_ = 0;
};

} // namespace ranktune::device
