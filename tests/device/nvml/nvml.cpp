// SPDX-License-Identifier: Apache-2.0
// A stand-in for NVIDIA's management library: four GPUs in two pairs that are linked by NVLink, with the UUIDs of the
// stand-in's devices. Every question about energy adds a joule to the answer, every one about memory 100 MB, which
// are forgotten after the tenth.

#include <atomic>
#include <cstdio>
#include <cstring>

#include "device/nvml.hpp"

namespace {

constexpr unsigned count = 4;
constexpr int not_found = 6;

struct Gpu {
    std::atomic<unsigned long long> millijoules{1'000'000};
    std::atomic<unsigned> asked_for_memory{0};
};
Gpu gpus[count];

unsigned number_of(ranktune::device::NvmlDevice device) {
    return static_cast<unsigned>(reinterpret_cast<Gpu*>(device) - gpus);
}
void bus_text(char* text, unsigned number) { std::snprintf(text, 32, "00000000:%02X:00.0", number + 1); }

} // namespace

extern "C" {

using namespace ranktune::device;

int nvmlInit_v2() { return nvml_success; }
int nvmlShutdown() { return nvml_success; }
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
    std::snprintf(text, size, "stand-in");
    return nvml_success;
}
int nvmlDeviceGetCount_v2(unsigned* devices) {
    *devices = count;
    return nvml_success;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, NvmlDevice* device) {
    if (index >= count) return not_found;
    *device = reinterpret_cast<NvmlDevice>(&gpus[index]);
    return nvml_success;
}
int nvmlDeviceGetName(NvmlDevice, char* text, unsigned size) {
    std::snprintf(text, size, "stand-in (no GPU)");
    return nvml_success;
}
int nvmlDeviceGetUUID(NvmlDevice device, char* text, unsigned size) {
    std::snprintf(text, size, "GPU-%02x010203-0405-0607-0809-0a0b0c0d0e0f", number_of(device));
    return nvml_success;
}
int nvmlDeviceGetPciInfo_v3(NvmlDevice device, NvmlPci* pci) {
    std::memset(pci, 0, sizeof *pci);
    bus_text(&pci->id[0], number_of(device));
    return nvml_success;
}
int nvmlDeviceGetNvLinkState(NvmlDevice, unsigned link, unsigned* active) {
    *active = link < 2 ? 1 : 0;
    return nvml_success;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(NvmlDevice device, unsigned, NvmlPci* pci) {
    std::memset(pci, 0, sizeof *pci);
    bus_text(&pci->id[0], number_of(device) ^ 1U);
    return nvml_success;
}
int nvmlDeviceGetMemoryInfo(NvmlDevice device, NvmlMemory* memory) {
    constexpr unsigned long long step = 100'000'000;
    const unsigned asked = reinterpret_cast<Gpu*>(device)->asked_for_memory++ % 10;
    *memory = {20 * step, 20 * step - asked * step, asked * step};
    return nvml_success;
}
int nvmlDeviceGetUtilizationRates(NvmlDevice, NvmlUtilization* load) {
    *load = {75, 10};
    return nvml_success;
}
int nvmlDeviceGetTotalEnergyConsumption(NvmlDevice device, unsigned long long* millijoules) {
    *millijoules = reinterpret_cast<Gpu*>(device)->millijoules += 1000;
    return nvml_success;
}
}
