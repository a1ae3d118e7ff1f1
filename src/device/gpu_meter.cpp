// SPDX-License-Identifier: Apache-2.0
#include "device/gpu_meter.hpp"

#include <algorithm>
#include <utility>

#include "device/nvml.hpp"
#include "device/survey.hpp"

namespace ranktune::device {

struct GpuMeter::Impl {
    struct Gpu {
        NvmlDevice handle = nullptr;
        unsigned long long millijoules = 0; ///< at the last reading
    };

    [[nodiscard]] unsigned long long energy_of(const Gpu& gpu) const {
        unsigned long long millijoules = 0;
        return nvml.call("nvmlDeviceGetTotalEnergyConsumption", gpu.handle, &millijoules) ? millijoules
                                                                                          : gpu.millijoules;
    }

    Nvml nvml;
    std::vector<Gpu> gpus;
    double peak_bytes = 0.0;
    double busy_sum = 0.0;
    std::uint64_t busy_samples = 0;
};

GpuMeter::GpuMeter(const std::vector<std::string>& granted) : impl_(std::make_unique<Impl>()) {
    if (!impl_->nvml.works()) return;
    const Survey survey = survey_gpus();
    std::vector<std::size_t> positions; // ranks may share a GPU
    for (const std::string& name : granted) positions.push_back(position_of(name, survey.gpus));
    std::ranges::sort(positions);
    const auto repeated = std::ranges::unique(positions);
    positions.erase(repeated.begin(), repeated.end());
    for (const std::size_t position : positions) {
        Impl::Gpu gpu;
        const auto number = static_cast<unsigned>(position);
        if (position == survey.gpus.size() || !impl_->nvml.call("nvmlDeviceGetHandleByIndex_v2", number, &gpu.handle))
            continue;
        gpu.millijoules = impl_->energy_of(gpu);
        impl_->gpus.push_back(gpu);
    }
}

GpuMeter::~GpuMeter() = default;

bool GpuMeter::works() const { return !impl_->gpus.empty(); }

void GpuMeter::sample() {
    for (const Impl::Gpu& gpu : impl_->gpus) {
        NvmlMemory memory{};
        if (impl_->nvml.call("nvmlDeviceGetMemoryInfo", gpu.handle, &memory))
            impl_->peak_bytes = std::max(impl_->peak_bytes, static_cast<double>(memory.used));
        NvmlUtilization load{};
        if (!impl_->nvml.call("nvmlDeviceGetUtilizationRates", gpu.handle, &load)) continue;
        impl_->busy_sum += 0.01 * load.gpu;
        ++impl_->busy_samples;
    }
}

GpuReading GpuMeter::take() {
    sample();
    GpuReading reading;
    reading.peak_bytes = std::exchange(impl_->peak_bytes, 0.0);
    if (impl_->busy_samples > 0) reading.busy = impl_->busy_sum / static_cast<double>(impl_->busy_samples);
    impl_->busy_sum = 0.0;
    impl_->busy_samples = 0;
    for (Impl::Gpu& gpu : impl_->gpus) {
        const auto now = impl_->energy_of(gpu);
        reading.joules += 1e-3 * static_cast<double>(now - std::exchange(gpu.millijoules, now));
    }
    return reading;
}

} // namespace ranktune::device
