// SPDX-License-Identifier: Apache-2.0
#include "device/survey.hpp"

#include <algorithm>
#include <cstdio>

#include "base/number_in.hpp"
#include "device/nvml.hpp"
#include "ranktune/base/text.hpp"

namespace ranktune::device {

namespace {

constexpr int default_compute_mode = 0;
constexpr unsigned most_nvlinks = 18;

/// The other ends of the active NVLinks: GPUs, or switches.
void survey_links(const Nvml& nvml, NvmlDevice device, SurveyedGpu& gpu) {
    for (unsigned link = 0; link < most_nvlinks; ++link) {
        unsigned active = 0;
        if (!nvml.call("nvmlDeviceGetNvLinkState", device, link, &active) || active == 0) continue;
        ++gpu.nvlinks;
        NvmlPci other{};
        if (!nvml.call("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, link, &other)) continue;
        if (std::ranges::find(gpu.linked, &other.id[0]) == gpu.linked.end()) gpu.linked.emplace_back(&other.id[0]);
    }
    NvmlFabric fabric{};
    if (!nvml.call("nvmlDeviceGetGpuFabricInfo", device, &fabric) || fabric.state != nvml_fabric_completed ||
        fabric.status != nvml_success ||
        std::ranges::all_of(fabric.cluster, [](unsigned char byte) { return byte == 0; }))
        return;
    for (const unsigned char byte : fabric.cluster) {
        char digits[3] = "";
        static_cast<void>(std::snprintf(&digits[0], sizeof digits, "%02x", byte));
        gpu.fabric += &digits[0];
    }
    gpu.fabric += "-" + std::to_string(fabric.clique);
}

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
    NvmlPci own{};
    if (nvml.call("nvmlDeviceGetPciInfo_v3", device, &own)) gpu.bus = &own.id[0];
    survey_links(nvml, device, gpu);
    int mode = default_compute_mode;
    gpu.exclusive = nvml.call("nvmlDeviceGetComputeMode", device, &mode) && mode != default_compute_mode;
    unsigned pending = 0;
    gpu.partitioned = nvml.call("nvmlDeviceGetMigMode", device, &value, &pending) && value != 0;
    return gpu;
}

/// For each GPU, the first one that it reaches over NVLink, directly or through switches and other GPUs.
std::vector<std::size_t> first_reached(const std::vector<SurveyedGpu>& gpus) {
    std::vector<std::size_t> first(gpus.size());
    for (std::size_t i = 0; i < gpus.size(); ++i) first[i] = i;
    const auto meet = [&](const SurveyedGpu& a, const SurveyedGpu& b) {
        return std::ranges::any_of(a.linked, [&](const std::string& end) {
            return end == b.bus || std::ranges::find(b.linked, end) != b.linked.end();
        });
    };
    for (std::size_t i = 0; i < gpus.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            if (first[i] == first[j] || !(meet(gpus[i], gpus[j]) || meet(gpus[j], gpus[i]))) continue;
            const std::size_t to = std::min(first[i], first[j]);
            const std::size_t from = std::max(first[i], first[j]);
            std::ranges::replace(first, from, to);
        }
    }
    return first;
}

} // namespace

std::size_t position_of(std::string_view name, const std::vector<SurveyedGpu>& gpus) {
    if (const auto number = base::number_in<std::size_t>(name)) return std::min(*number, gpus.size());
    const auto found =
        std::ranges::find_if(gpus, [&](const SurveyedGpu& gpu) { return !name.empty() && gpu.uuid.starts_with(name); });
    return static_cast<std::size_t>(found - gpus.begin());
}

GpuPlace place_of(const std::vector<std::string>& granted, const Survey& survey) {
    GpuPlace place;
    const auto first = first_reached(survey.gpus);
    const bool linked = std::ranges::any_of(survey.gpus, [](const SurveyedGpu& gpu) { return !gpu.linked.empty(); });
    const bool divided = std::ranges::any_of(first, [](std::size_t each) { return each != 0; });
    std::vector<std::string> uuids;
    for (const std::string& name : granted) {
        const std::size_t at = position_of(name, survey.gpus);
        if (at == survey.gpus.size() || survey.gpus[at].uuid.empty()) return {};
        uuids.push_back(survey.gpus[at].uuid);
        if (linked && divided) place.island = 1 + static_cast<std::uint32_t>(first[at]);
        place.fabric = survey.gpus[at].fabric;
    }
    place.uuid = base::join(uuids, ",");
    return place;
}

Survey survey_gpus() {
    Survey survey;
    const Nvml nvml;
    if (!nvml.found()) {
        survey.why = "this machine has no NVIDIA driver (libnvidia-ml.so.1 is not found)";
        return survey;
    }
    if (!nvml.works()) {
        survey.why = "the NVIDIA driver does not answer (nvmlInit fails): nvidia-smi says why";
        return survey;
    }
    char text[96] = "";
    if (nvml.call("nvmlSystemGetDriverVersion", &text[0], 96U)) survey.driver = text;
    unsigned count = 0;
    if (!nvml.call("nvmlDeviceGetCount_v2", &count)) count = 0;
    for (unsigned i = 0; i < count; ++i) {
        NvmlDevice device = nullptr;
        if (!nvml.call("nvmlDeviceGetHandleByIndex_v2", i, &device)) continue;
        survey.gpus.push_back(surveyed(nvml, device));
        survey.gpus.back().index = i;
    }
    return survey;
}

} // namespace ranktune::device
