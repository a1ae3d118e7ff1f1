// SPDX-License-Identifier: Apache-2.0
#include "head/worker_place.hpp"

namespace ranktune::head {
namespace {

/// Added to the numbers of NVLink domains, which would otherwise be those of NUMA domains.
constexpr std::uint32_t nvlink_domains = 1000;

} // namespace

study::RankInfo place_of(base::Rank rank, const wire::Hello& hello, const std::vector<study::RankInfo>& places,
                         study::GpuUse gpus) {
    study::RankInfo info;
    if (rank.value() < places.size()) info = places[rank.value()];
    info.rank = rank;
    info.host = hello.host;
    info.gpus = hello.gpus;
    if (!hello.device.empty()) info.device = hello.device;
    if (gpus == study::GpuUse::none) info.device.clear(); // trials do not use it
    if (hello.nvlink > 0) info.domain = nvlink_domains + hello.nvlink;
    if (!hello.nvlink_fabric.empty()) info.switches += (info.switches.empty() ? "" : ".") + hello.nvlink_fabric;
    return info;
}

} // namespace ranktune::head
