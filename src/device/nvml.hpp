// SPDX-License-Identifier: Apache-2.0
#pragma once
// NVIDIA's management library, opened at run time. The part of nvml.h that is used here; its binary interface is
// stable.

#include <dlfcn.h>

namespace ranktune::device {

using NvmlDevice = struct nvmlDevice_st*;
struct NvmlMemory {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
};
struct NvmlPci {
    char short_id[16];
    unsigned domain;
    unsigned bus;
    unsigned device;
    unsigned ids[2];
    char id[32]; ///< "00000000:1B:00.0"
};
struct NvmlFabric {
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
};
struct NvmlUtilization {
    unsigned gpu; ///< per cent of the last sample period in which a kernel ran
    unsigned memory;
};
/// Version 2 and 3 of the function have this form.
struct NvmlProcess {
    unsigned pid;
    unsigned long long used;
    unsigned instance;
    unsigned compute_instance;
};
inline constexpr int nvml_success = 0;
inline constexpr unsigned char nvml_fabric_completed = 3;

/// The library, opened and initialised; its functions by name.
class Nvml {
  public:
    Nvml() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
        works_ = library_ != nullptr && call("nvmlInit_v2");
    }
    ~Nvml() {
        if (works_) static_cast<void>(call("nvmlShutdown"));
        if (library_ != nullptr) dlclose(library_);
    }
    Nvml(const Nvml&) = delete;
    Nvml& operator=(const Nvml&) = delete;
    [[nodiscard]] bool found() const { return library_ != nullptr; }
    [[nodiscard]] bool works() const { return works_; }

    /// Calls function `name`; false when it fails or does not exist. Requires found().
    template <class... A>
    [[nodiscard]] bool call(const char* name, A... arguments) const {
        auto* const function = reinterpret_cast<int (*)(A...)>(dlsym(library_, name));
        return function != nullptr && function(arguments...) == nvml_success;
    }

  private:
    void* library_;
    bool works_ = false;
};

} // namespace ranktune::device
