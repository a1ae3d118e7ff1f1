// SPDX-License-Identifier: Apache-2.0
#include "device/survey.hpp"

#include <dlfcn.h>

#include <memory>
#include <utility>

namespace ranktune::device {

namespace {

// The part of nvml.h that is used here; its binary interface is stable.
using NvmlDevice = struct nvmlDevice_st*;
struct NvmlMemory {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
};
constexpr int success = 0;
constexpr int default_compute_mode = 0;
constexpr unsigned most_nvlinks = 18;

/// The library, opened; its functions by name.
class Nvml {
  public:
    Nvml() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {}
    ~Nvml() {
        if (library_ != nullptr) dlclose(library_);
    }
    Nvml(const Nvml&) = delete;
    Nvml& operator=(const Nvml&) = delete;
    [[nodiscard]] bool found() const { return library_ != nullptr; }

    /// Calls function `name`; false when it fails or does not exist.
    template <class... A>
    [[nodiscard]] bool call(const char* name, A... arguments) const {
        auto* const function = reinterpret_cast<int (*)(A...)>(dlsym(library_, name));
        return function != nullptr && function(arguments...) == success;
    }

  private:
    void* library_;
};

SurveyedGpu surveyed(const Nvml& nvml, NvmlDevice device) {
    SurveyedGpu gpu;
    char text[96] = "";
    if (nvml.call("nvmlDeviceGetName", device, &text[0], 96U)) gpu.name = text;
    if (nvml.call("nvmlDeviceGetUUID", device, &text[0], 96U)) gpu.uuid = text;
    NvmlMemory memory{};
    if (nvml.call("nvmlDeviceGetMemoryInfo", device, &memory)) {
        gpu.memory_bytes = memory.total;
        gpu.used_bytes = memory.used;
    }
    unsigned value = 0;
    if (nvml.call("nvmlDeviceGetCurrPcieLinkGeneration", device, &value)) gpu.pcie_generation = value;
    if (nvml.call("nvmlDeviceGetCurrPcieLinkWidth", device, &value)) gpu.pcie_width = value;
    if (nvml.call("nvmlDeviceGetMaxPcieLinkWidth", device, &value)) gpu.pcie_most_width = value;
    for (unsigned link = 0; link < most_nvlinks; ++link) {
        unsigned active = 0;
        if (nvml.call("nvmlDeviceGetNvLinkState", device, link, &active)) gpu.nvlinks += active != 0 ? 1 : 0;
    }
    int mode = default_compute_mode;
    gpu.exclusive = nvml.call("nvmlDeviceGetComputeMode", device, &mode) && mode != default_compute_mode;
    unsigned pending = 0;
    gpu.partitioned = nvml.call("nvmlDeviceGetMigMode", device, &value, &pending) && value != 0;
    return gpu;
}

} // namespace

Survey survey_gpus() {
    Survey survey;
    const Nvml nvml;
    if (!nvml.found()) {
        survey.why = "this machine has no NVIDIA driver (libnvidia-ml.so.1 is not found)";
        return survey;
    }
    if (!nvml.call("nvmlInit_v2")) {
        survey.why = "the NVIDIA driver does not answer (nvmlInit fails): nvidia-smi says why";
        return survey;
    }
    char text[96] = "";
    if (nvml.call("nvmlSystemGetDriverVersion", &text[0], 96U)) survey.driver = text;
    unsigned count = 0;
    if (!nvml.call("nvmlDeviceGetCount_v2", &count)) count = 0;
    for (unsigned i = 0; i < count; ++i) {
        NvmlDevice device = nullptr;
        if (nvml.call("nvmlDeviceGetHandleByIndex_v2", i, &device)) survey.gpus.push_back(surveyed(nvml, device));
    }
    static_cast<void>(nvml.call("nvmlShutdown"));
    return survey;
}

} // namespace ranktune::device
