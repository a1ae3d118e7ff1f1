// SPDX-License-Identifier: Apache-2.0
#include "libtorch/cuda.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <memory>
#include <utility>

#include <ATen/detail/CUDAHooksInterface.h>
#include <torch/cuda.h>

#include "device/device.hpp"
#include "device/module.hpp"
#include "libtorch/tensors.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/libtorch/data_parallel.hpp"

namespace ranktune::libtorch {

namespace {

/// The file that defines ncclGetVersion for the library `name`, if that is loaded and defines or needs it.
std::string nccl_file_of(const char* name) {
    void* const library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) return {};
    void* const function = dlsym(library, "ncclGetVersion");
    Dl_info info{};
    const bool found = function != nullptr && dladdr(function, &info) != 0 && info.dli_fname != nullptr;
    const std::string file = found ? info.dli_fname : "";
    dlclose(library);
    return file;
}

} // namespace

std::string clash(const CudaFacts& facts) {
    if (facts.ours != 0 && facts.torchs != 0 && facts.ours / 1000 != facts.torchs / 1000)
        return "LibTorch uses CUDA " + device::version_text(facts.torchs) + ", and libranktune-cuda.so uses CUDA " +
               device::version_text(facts.ours) +
               ": one process needs the same major version; build ranktune with the nvcc of LibTorch's CUDA, or take a "
               "LibTorch for this one";
    if (facts.nccl_files.size() > 1)
        return "two copies of NCCL are in this process (" + base::join(facts.nccl_files) +
               "): build ranktune with LibTorch's NCCL, or put its folder first in LD_LIBRARY_PATH so that both load "
               "it; "
               "a LibTorch with NCCL inside libtorch_cuda.so (the zip) cannot be used on GPUs: take the wheel torch, "
               "whose NCCL is the wheel nvidia-nccl-cu12 or -cu13";
    return {};
}

CudaFacts cuda_facts() {
    CudaFacts facts;
    if (device::Runtime* const runtime = device::open_module().runtime) facts.ours = runtime->versions().cuda_runtime;
    if (::torch::cuda::is_available()) facts.torchs = static_cast<int>(at::detail::getCUDAHooks().versionCUDART());
    const auto visit = [](dl_phdr_info* info, std::size_t, void* files) {
        static_cast<std::vector<std::string>*>(files)->emplace_back(info->dlpi_name);
        return 0;
    };
    std::vector<std::string> loaded;
    dl_iterate_phdr(visit, &loaded);
    for (const std::string& name : loaded) {
        if (name.find("libnccl") == std::string::npos && name.find("libtorch_cuda") == std::string::npos) continue;
        const std::string file = nccl_file_of(name.c_str());
        if (!file.empty() && std::ranges::find(facts.nccl_files, file) == facts.nccl_files.end())
            facts.nccl_files.push_back(file);
    }
    return facts;
}

Where where_to_compute(const trainables::TrialContext& context) {
    const std::vector<std::string> granted = context.devices();
    if (granted.empty() || !::torch::cuda::is_available()) return {};
    device::Accelerator& accelerator = device::open_granted(granted.front()); // explains a device that is not there
    const int number = device::granted_number(granted.front());
    if (const std::string why = clash(cuda_facts()); !why.empty()) throw base::UsageError(why);
    choose_device_of_libtorch(number); // another library may have made all of the node visible
    static const auto cache = std::make_shared<const device::Accelerator::Freeing>([] {
        empty_cache_of_libtorch();
        return false;
    });
    static device::Accelerator* emptied = nullptr; // a rank has one
    if (std::exchange(emptied, &accelerator) != &accelerator) accelerator.add_cache(cache);
    if (device::memory_share() < 1.0)
        limit_memory_of_libtorch(number, static_cast<double>(device::memory_limit(accelerator.facts())) /
                                             static_cast<double>(accelerator.facts().memory_bytes));
    return {::torch::Device(::torch::kCUDA, static_cast<c10::DeviceIndex>(number)), base::Place(accelerator)};
}

} // namespace ranktune::libtorch
