// SPDX-License-Identifier: Apache-2.0
#include "device/gpu_meter.hpp"

#include <algorithm>
#include <utility>

#include "device/survey.hpp"

namespace ranktune::device {

unsigned long long GpuMeter::energy_of(const Gpu& gpu) const {
    unsigned long long millijoules = 0;
    return nvml_.call("nvmlDeviceGetTotalEnergyConsumption", gpu.handle, &millijoules) ? millijoules : gpu.millijoules;
}

GpuMeter::GpuMeter(const std::vector<std::string>& granted) {
    if (!nvml_.works()) return;
    const Survey survey = survey_gpus();
    std::vector<std::size_t> positions; // ranks may share a GPU
    for (const std::string& name : granted) positions.push_back(position_of(name, survey.gpus));
    std::ranges::sort(positions);
    const auto repeated = std::ranges::unique(positions);
    positions.erase(repeated.begin(), repeated.end());
    for (const std::size_t position : positions) {
        Gpu gpu;
        if (position == survey.gpus.size() ||
            !nvml_.call("nvmlDeviceGetHandleByIndex_v2", survey.gpus[position].index, &gpu.handle))
            continue;
        gpu.millijoules = energy_of(gpu);
        gpus_.push_back(gpu);
    }
}

void GpuMeter::sample() {
    for (const Gpu& gpu : gpus_) {
        NvmlMemory memory{};
        if (nvml_.call("nvmlDeviceGetMemoryInfo", gpu.handle, &memory))
            peak_bytes_ = std::max(peak_bytes_, static_cast<double>(memory.used));
        NvmlUtilization load{};
        if (!nvml_.call("nvmlDeviceGetUtilizationRates", gpu.handle, &load)) continue;
        busy_sum_ += 0.01 * load.gpu;
        ++busy_samples_;
    }
}

GpuReading GpuMeter::take() {
    sample();
    GpuReading reading;
    reading.peak_bytes = std::exchange(peak_bytes_, 0.0);
    if (busy_samples_ > 0) reading.busy = busy_sum_ / static_cast<double>(busy_samples_);
    busy_sum_ = 0.0;
    busy_samples_ = 0;
    for (Gpu& gpu : gpus_) {
        const auto now = energy_of(gpu);
        reading.joules += 1e-3 * static_cast<double>(now - std::exchange(gpu.millijoules, now));
    }
    return reading;
}

} // namespace ranktune::device
