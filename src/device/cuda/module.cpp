// SPDX-License-Identifier: Apache-2.0
// The module's only symbol, and the devices behind it.

#include "device/module.hpp"

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <map>
#include <memory>

#include "device/built.hpp"
#include "device/cuda/accelerator.hpp"
#include "device/cuda/check.hpp"

namespace ranktune::device::cuda {

namespace {

std::string uuid_text(const cudaUUID_t& uuid) {
    constexpr const char* digits = "0123456789abcdef";
    std::string text = "GPU-";
    for (int i = 0; i < 16; ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
        text += digits[byte / 16];
        text += digits[byte % 16];
    }
    return text;
}

/// Without opening the device: that takes memory on it.
DeviceFacts facts_of(int number) {
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, number), "cudaGetDeviceProperties");
    char bus[32] = "";
    check(cudaDeviceGetPCIBusId(bus, sizeof bus, number), "cudaDeviceGetPCIBusId");
    return {properties.name,           uuid_text(properties.uuid), bus,
            properties.totalGlobalMem, properties.major,           properties.minor};
}

/// "13.0"; the module's own copy, because it is linked to no room of ranktune but base.
std::string short_version(int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

class CudaRuntime final : public Runtime {
  public:
    CudaRuntime() {
        if (const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES")) visible_ = visible;
        const cudaError_t code = cudaGetDeviceCount(&count_);
        if (code == cudaSuccess && count_ > 0) return;
        count_ = 0;
        absence_ = reason(code);
        static_cast<void>(cudaGetLastError());
    }

    [[nodiscard]] LibraryVersions versions() const override {
        LibraryVersions versions;
        cudaRuntimeGetVersion(&versions.cuda_runtime);
        cudaDriverGetVersion(&versions.cuda_driver);
        versions.cublas = cublas_version();
        versions.nccl = nccl_version();
        return versions;
    }
    [[nodiscard]] std::string absence() const override { return absence_; }

    [[nodiscard]] std::vector<DeviceFacts> devices() const override {
        std::vector<DeviceFacts> all;
        for (int i = 0; i < count_; ++i) all.push_back(facts_of(i));
        return all;
    }

    [[nodiscard]] const std::optional<std::string>& visible() const override { return visible_; }

    [[nodiscard]] Accelerator& open(int number) override {
        if (number < 0 || number >= count_)
            throw base::UsageError("there is no GPU " + std::to_string(number) +
                                   " here: " + (absence_.empty() ? "there are " + std::to_string(count_) : absence_));
        auto& device = open_[number];
        if (!device) device = std::make_unique<CudaAccelerator>(number, facts_of(number));
        return *device;
    }

    [[nodiscard]] CommunicatorId make_id() const override { return make_nccl_id(); }

  private:
    static std::string reason(cudaError_t code) {
        int driver = 0;
        int runtime = 0;
        cudaDriverGetVersion(&driver);
        cudaRuntimeGetVersion(&runtime);
        if (code == cudaErrorInsufficientDriver && driver == 0) return "this machine has no NVIDIA driver";
        if (code == cudaErrorInsufficientDriver)
            return "the NVIDIA driver supports CUDA up to " + short_version(driver) + ", and this build uses " +
                   short_version(runtime) + "; ask for a newer driver, or build with an older CUDA toolkit";
        if (code == cudaErrorNoDevice || code == cudaSuccess)
            return "the driver shows none; look at CUDA_VISIBLE_DEVICES, and at what the job was granted";
        return std::string(cudaGetErrorString(code)) + " (" + cudaGetErrorName(code) + ")";
    }

    std::optional<std::string> visible_;
    int count_ = 0;
    std::string absence_;
    std::map<int, std::unique_ptr<CudaAccelerator>> open_;
};

/// Never destroyed: at the end of a process the CUDA runtime may be gone before it.
Runtime& the_runtime() {
    static auto* const runtime = new CudaRuntime;
    return *runtime;
}

} // namespace

} // namespace ranktune::device::cuda

extern "C" {
[[gnu::visibility("default")]] extern const ranktune::device::ModuleEntry ranktune_cuda_module;
const ranktune::device::ModuleEntry ranktune_cuda_module{ranktune::device::built::module_version,
                                                         &ranktune::device::cuda::the_runtime};
}
