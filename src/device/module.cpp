// SPDX-License-Identifier: Apache-2.0
#include "device/module.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <charconv>

#include "device/built.hpp"

namespace ranktune::device {

namespace {

/// A number without sign and spaces.
std::optional<int> whole_number(std::string_view text) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
    return value;
}

std::optional<int> with_uuid(std::string_view name, const std::vector<DeviceFacts>& devices) {
    std::optional<int> found;
    for (std::size_t i = 0; i < devices.size(); ++i) {
        if (!devices[i].uuid.starts_with(name)) continue;
        if (found) return std::nullopt;
        found = static_cast<int>(i);
    }
    return found;
}

Opened load_module() {
    if (built_with().empty()) return {nullptr, "this build has no CUDA (meson -Dcuda=enabled)"};
    void* const library = dlopen(built::module_name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* const error = dlerror();
        return {nullptr, "no CUDA device: " + std::string(error != nullptr ? error : built::module_name) +
                             "; install " + built::module_name +
                             " beside libranktune.so, and load what it was built with: " + built_with()};
    }
    const auto* const entry = static_cast<const ModuleEntry*>(dlsym(library, "ranktune_cuda_module"));
    if (entry == nullptr || std::string_view(entry->version) != built::module_version)
        return {nullptr, "no CUDA device: " + std::string(built::module_name) + " is of another version of ranktune (" +
                             (entry == nullptr ? "unknown" : entry->version) + ", not " + built::module_version +
                             "); install the one of this version"};
    Runtime& runtime = entry->runtime();
    const std::string absence = runtime.absence();
    return {&runtime, absence.empty() ? "" : "no CUDA device: " + absence};
}

} // namespace

std::vector<std::string_view> items(std::string_view list) {
    std::vector<std::string_view> result;
    while (!list.empty()) {
        const std::size_t comma = std::min(list.find(','), list.size());
        result.push_back(list.substr(0, comma));
        list.remove_prefix(std::min(comma + 1, list.size()));
    }
    return result;
}

std::string built_with() { return built::libraries; }

const Opened& open_module() {
    static const Opened opened = load_module();
    return opened;
}

Runtime& require_devices() {
    const Opened& opened = open_module();
    if (!opened.why.empty()) throw NoDeviceError(opened.why);
    return *opened.runtime;
}

std::optional<int> number_of(std::string_view name, std::optional<std::string_view> visible,
                             const std::vector<DeviceFacts>& devices) {
    const auto in_range = [&](std::size_t number) {
        return number < devices.size() ? std::optional(static_cast<int>(number)) : std::nullopt;
    };
    if (visible) {
        const auto list = items(*visible);
        const auto found = std::ranges::find(list, name);
        if (found != list.end()) return in_range(static_cast<std::size_t>(found - list.begin()));
        if (whole_number(name)) return std::nullopt;
    } else if (const auto number = whole_number(name)) {
        return in_range(static_cast<std::size_t>(*number));
    }
    return with_uuid(name, devices);
}

namespace {

std::vector<Accelerator*>& opened_devices() {
    static std::vector<Accelerator*> all;
    return all;
}

/// Set by the worker, read by the thread of its trial. (In tests several workers of a process set it.)
std::atomic<double>& share_of_memory() {
    static std::atomic<double> share{1.0};
    return share;
}

} // namespace

void set_memory_share(double share) { share_of_memory() = share; }
double memory_share() { return share_of_memory(); }

Accelerator& open_granted(std::string_view name) {
    Runtime& runtime = require_devices();
    const auto number = number_of(name, runtime.visible(), runtime.devices());
    if (!number)
        throw NoDeviceError("this rank was granted the GPU " + std::string(name) + ", but CUDA shows it " +
                            std::to_string(runtime.devices().size()) + " without that one" +
                            (runtime.visible() ? " (CUDA_VISIBLE_DEVICES=" + *runtime.visible() + ")" : "") +
                            "; ranktune doctor on that node shows what there is");
    Accelerator& opened = runtime.open(*number);
    if (std::ranges::find(opened_devices(), &opened) == opened_devices().end()) {
        opened_devices().push_back(&opened);
        if (memory_share() < 1.0)
            opened.limit_memory(
                static_cast<std::uint64_t>(memory_share() * static_cast<double>(opened.facts().memory_bytes)));
    }
    return opened;
}

std::string sickness() {
    for (Accelerator* const device : opened_devices()) {
        try {
            static_cast<void>(device->compute_stream().idle());
        } catch (const DeviceError& error) {
            if (error.lost()) return error.what();
        }
    }
    return {};
}

std::string version_text(int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string nccl_version_text(int version) {
    return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
           std::to_string(version % 100);
}

} // namespace ranktune::device
