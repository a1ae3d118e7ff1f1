// SPDX-License-Identifier: Apache-2.0
#include "device/module.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>

#include "base/number_in.hpp"
#include "base/take_until.hpp"
#include "device/built.hpp"
#include "ranktune/base/text.hpp"

namespace ranktune::device {

namespace {

/// A number without sign and spaces.
std::optional<int> whole_number(std::string_view text) {
    const auto value = base::number_in<int>(text);
    return value && *value >= 0 ? value : std::nullopt;
}

/// The only one whose UUID begins with `name`.
std::optional<int> with_uuid(std::string_view name, const std::vector<DeviceFacts>& devices) {
    std::optional<int> found;
    for (std::size_t i = 0; i < devices.size(); ++i) {
        if (!devices[i].uuid.starts_with(name)) continue;
        if (found) return std::nullopt;
        found = static_cast<int>(i);
    }
    return found;
}

/// By its place in the list that CUDA should have read; a number without a list is the device's own.
std::optional<int> by_place(std::string_view name, std::optional<std::string_view> visible,
                            const std::vector<DeviceFacts>& devices) {
    std::optional<int> number = whole_number(name);
    if (visible) {
        const auto list = items(*visible);
        const auto found = std::ranges::find(list, name);
        number = found == list.end() ? std::nullopt : std::optional(static_cast<int>(found - list.begin()));
    }
    return number && static_cast<std::size_t>(*number) < devices.size() ? number : std::nullopt;
}

/// "CUDA shows this process GPU-5ca1..., GPU-77... (CUDA_VISIBLE_DEVICES=0,1)".
std::string shown_words(std::optional<std::string_view> visible, const std::vector<DeviceFacts>& devices) {
    std::vector<std::string> uuids;
    for (const DeviceFacts& device : devices) uuids.push_back(device.uuid);
    return "CUDA shows this process " + base::join(uuids) +
           (visible ? " (CUDA_VISIBLE_DEVICES=" + std::string(*visible) + ")" : "");
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
    while (!list.empty()) result.push_back(base::take_until(list, ','));
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

Granted find_granted(std::string_view name, const Survey& survey, std::optional<std::string_view> visible,
                     const std::vector<DeviceFacts>& devices) {
    const auto with = [&](const SurveyedGpu& gpu) { return std::ranges::find(devices, gpu.uuid, &DeviceFacts::uuid); };
    const auto refused = [&](const std::string& why) {
        return Granted{std::nullopt, "this rank was granted the GPU " + std::string(name) + ", but " + why};
    };
    const std::size_t at = position_of(name, survey.gpus);
    if (at < survey.gpus.size() && with(survey.gpus[at]) != devices.end())
        return {static_cast<int>(with(survey.gpus[at]) - devices.begin()), {}};
    if (const auto found = whole_number(name) ? std::nullopt : with_uuid(name, devices)) return {found, {}};
    // A driver's library without a device of CUDA's speaks of another machine, or of GPUs that are cut into slices.
    const bool same_machine =
        std::ranges::any_of(survey.gpus, [&](const SurveyedGpu& gpu) { return with(gpu) != devices.end(); });
    const auto found = by_place(name, visible, devices);
    if (!found || (same_machine && whole_number(name) && at == survey.gpus.size()))
        return refused(shown_words(visible, devices) + "; ranktune doctor on that node shows what there is");
    if (visible && devices.size() > items(*visible).size())
        return refused(shown_words(visible, devices) +
                       ": another library, such as an MPI with CUDA, initialised CUDA before this rank had its GPU. "
                       "Only libnvidia-ml.so.1 could tell which one is meant, and it does not show that: install it "
                       "(in a container: NVIDIA_DRIVER_CAPABILITIES=compute,utility)");
    return {found, {}};
}

int granted_number(std::string_view name) {
    static const Survey survey = survey_gpus();
    const Runtime& runtime = require_devices();
    const Granted granted = find_granted(name, survey, runtime.visible(), runtime.devices());
    if (!granted.number) throw NoDeviceError(granted.why);
    return *granted.number;
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

std::uint64_t memory_limit(const DeviceFacts& device) {
    const double share = memory_share();
    if (share >= 1.0) return device.memory_bytes;
    constexpr double beside = 512.0 * (1U << 20U);
    const double part = share * static_cast<double>(device.memory_bytes);
    return static_cast<std::uint64_t>(part - std::min(beside, 0.25 * part));
}

Accelerator& open_granted(std::string_view name) {
    Accelerator& opened = require_devices().open(granted_number(name));
    if (std::ranges::find(opened_devices(), &opened) == opened_devices().end()) {
        opened_devices().push_back(&opened);
        if (memory_share() < 1.0) opened.limit_memory(memory_limit(opened.facts()));
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

namespace {
/// A device that does not answer is found by `sickness`.
template <class Call>
void on_opened_devices(Call&& call) noexcept {
    for (Accelerator* const device : opened_devices()) {
        try {
            call(*device);
        } catch (...) { // NOLINT(bugprone-empty-catch): also exceptions of other libraries
        }
    }
}
} // namespace

void free_caches() noexcept {
    on_opened_devices([](Accelerator& device) { device.free_caches(); });
}

bool relieve() noexcept {
    bool any = false;
    on_opened_devices([&](Accelerator& device) { any = device.relieve() || any; });
    return any;
}

std::string version_text(int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string nccl_version_text(int version) {
    return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
           std::to_string(version % 100);
}

} // namespace ranktune::device
