// SPDX-License-Identifier: Apache-2.0
#include "tuner/values/placement.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <stdexcept>

#include "tuner/rules/causes.hpp"

namespace ranktune::tuner {

bool Placement::are_free(std::span<const Rank> ranks) const {
    return std::ranges::all_of(ranks,
                               [this](Rank rank) { return knows(rank) && ledger_of(worker(rank)).is_free(rank); });
}

std::vector<Rank> Placement::living(std::span<const Rank> ranks) const {
    std::vector<Rank> alive;
    std::ranges::copy_if(ranks, std::back_inserter(alive), [&](Rank rank) { return worker(rank).alive; });
    return alive;
}

std::optional<std::uint32_t> Placement::only_host_of(std::span<const Rank> ranks) const {
    const std::uint32_t host = worker(ranks.front()).host;
    const bool alone = std::ranges::all_of(ranks, [&](Rank rank) { return worker(rank).host == host; });
    return alone ? std::optional(host) : std::nullopt;
}

std::optional<std::uint32_t> Placement::device_of(std::span<const Rank> ranks,
                                                  std::optional<std::uint32_t> failing) const {
    const bool named = failing && *failing < ranks.size();
    const std::uint32_t device = worker(named ? ranks[*failing] : ranks.front()).device;
    const bool alone = named || std::ranges::all_of(ranks, [&](Rank rank) { return worker(rank).device == device; });
    return alone && device != no_device ? std::optional(device) : std::nullopt;
}

std::uint32_t Placement::ranks_beside_device(std::uint32_t device, WorkerKind kind) const {
    return static_cast<std::uint32_t>(std::ranges::count_if(workers_, [&](const WorkerState& worker) {
        return worker.device != device && is_of(worker, kind) && serves(worker);
    }));
}

bool Placement::has_neighbour(std::uint32_t device) const {
    return std::ranges::any_of(workers_, [&](const WorkerState& worker) {
        return worker.host == devices_[device].host && worker.device != device && serves(worker);
    });
}

std::uint32_t Placement::ranks_beside(std::uint32_t host, WorkerKind kind) const {
    return static_cast<std::uint32_t>(std::ranges::count_if(workers_, [&](const WorkerState& worker) {
        return worker.host != host && is_of(worker, kind) && serves(worker);
    }));
}

std::optional<Rank> Placement::place_aside() const {
    const WorkerState* best = nullptr;
    const auto worth = [](const WorkerState& worker) { return worker.helper ? 2 : worker.info.gpus == 0 ? 1 : 0; };
    for (const WorkerState& worker : workers_) {
        if (!worker.alive || worker.spare || !in_service(worker) || is_held(worker)) continue;
        if (best == nullptr || worth(worker) >= worth(*best)) best = &worker;
    }
    return best == nullptr ? std::nullopt : std::optional(best->info.rank);
}

void Placement::begin(const std::vector<RankInfo>& workers, std::uint32_t spares, std::uint32_t helpers) {
    workers_.clear();
    hosts_.clear();
    devices_.clear();
    std::map<std::string, std::uint32_t> known;
    std::map<std::pair<std::uint32_t, std::string>, std::uint32_t>
        known_devices; // a name need not be unique in the job
    for (const auto& info : workers) {
        if (info.rank.value() != workers_.size() + 1) impossible("worker ranks are not 1, 2, 3, ...");
        const auto [host, added] = known.try_emplace(info.host, static_cast<std::uint32_t>(hosts_.size()));
        if (added) hosts_.push_back({info.host, false});
        std::uint32_t device = no_device;
        if (!info.device.empty()) {
            const auto [at, is_new] =
                known_devices.try_emplace({host->second, info.device}, static_cast<std::uint32_t>(devices_.size()));
            if (is_new) devices_.push_back({info.device, host->second, false});
            device = at->second;
        }
        workers_.push_back({info, true, std::nullopt, host->second, device});
        workers_.back().spare = workers_.size() + spares > workers.size();
    }
    for (const bool with_gpu : {false, true})
        for (auto worker = workers_.rbegin(); worker != workers_.rend() && helpers > 0; ++worker) {
            if (worker->spare || worker->helper || (worker->info.gpus > 0) != with_gpu) continue;
            worker->helper = true;
            --helpers;
        }
    rebuild();
}

void Placement::take(TrialId trial, std::span<const Rank> ranks) {
    for (const Rank rank : ranks) {
        if (!knows(rank) || !ledger_of(worker(rank)).is_free(rank))
            impossible("rank " + std::to_string(rank.value()) + " is given away but not free");
        WorkerState& worker = workers_[rank.value() - 1];
        worker.trial = trial;
        ledger_of(worker).take(rank);
    }
}

void Placement::release(TrialId trial, std::span<const Rank> ranks) {
    for (const Rank rank : ranks) {
        WorkerState& worker = workers_[rank.value() - 1];
        if (!worker.alive || worker.trial != trial) continue;
        worker.trial.reset();
        if (serves(worker)) ledger_of(worker).release(rank);
    }
}

void Placement::take_aside(TrialId unit, Rank rank) {
    if (!knows(rank) || !worker(rank).alive || is_held(worker(rank)))
        impossible("rank " + std::to_string(rank.value()) + " is given to a side task but not free");
    WorkerState& worker = workers_[rank.value() - 1];
    worker.aside = unit;
    if (serves(worker)) ledger_of(worker).take(rank);
}

void Placement::release_aside(Rank rank) {
    WorkerState& worker = workers_[rank.value() - 1];
    if (!std::exchange(worker.aside, std::nullopt)) return;
    if (serves(worker)) ledger_of(worker).release(rank);
}

std::optional<TrialId> Placement::lose(const study::RankLost& lost) {
    if (!knows(lost.rank)) impossible("an unknown rank is lost");
    WorkerState& worker = workers_[lost.rank.value() - 1];
    if (!worker.alive) impossible("rank " + std::to_string(lost.rank.value()) + " is lost twice");
    const bool served = serves(worker);
    worker.alive = false;
    worker.lost_at = lost.at;
    worker.lost_why = lost.why;
    worker.lost_from = std::exchange(worker.trial, std::nullopt);
    if (served) ledger_of(worker).lose(lost.rank, !worker.lost_from && !worker.aside);
    const auto replaces = [&](const WorkerState& other) {
        return other.spare && other.alive && (!apart_ || (other.info.gpus > 0) == (worker.info.gpus > 0));
    };
    const auto spare = std::ranges::find_if(workers_, replaces);
    if (worker.spare || worker.helper || spare == workers_.end()) return worker.lost_from;
    spare->spare = false;
    rebuild();
    return worker.lost_from;
}

std::uint32_t Placement::retire(const std::string& name) {
    const auto host = std::ranges::find(hosts_, name, &HostState::name);
    if (host == hosts_.end() || host->retired) impossible("host " + name + " is taken out of service");
    const auto position = static_cast<std::uint32_t>(host - hosts_.begin());
    take_out_of_service(host->retired, [&](const WorkerState& worker) { return worker.host == position; });
    return position;
}

std::uint32_t Placement::retire_device(const std::string& host, const std::string& name) {
    const auto device = std::ranges::find_if(
        devices_, [&](const DeviceState& each) { return each.name == name && hosts_[each.host].name == host; });
    if (device == devices_.end() || device->retired) impossible("GPU " + name + " is taken out of service");
    const auto position = static_cast<std::uint32_t>(device - devices_.begin());
    take_out_of_service(device->retired, [&](const WorkerState& worker) { return worker.device == position; });
    return position;
}

/// `retired`: of the host or GPU whose ranks `of_place` names.
template <class OfPlace>
void Placement::take_out_of_service(bool& retired, OfPlace of_place) {
    for (const WorkerState& worker : workers_)
        if (of_place(worker) && serves(worker)) ledger_of(worker).lose(worker.info.rank, !is_held(worker));
    retired = true;
}

void Placement::reset_ledgers() {
    std::vector<RankInfo> infos;
    std::vector<RankInfo> without_gpu;
    for (const auto& worker : workers_)
        (&ledger_of(worker) == &without_gpu_ ? without_gpu : infos).push_back(worker.info);
    ledger_.reset(infos);
    without_gpu_.reset(without_gpu);
}

void Placement::rebuild() {
    reset_ledgers();
    for (const auto& worker : workers_) {
        if (!serves(worker))
            ledger_of(worker).lose(worker.info.rank, true);
        else if (is_held(worker))
            ledger_of(worker).take(worker.info.rank);
    }
}

void Placement::check_invariants() const {
    std::uint32_t free = 0;
    std::uint32_t alive = 0;
    for (const auto& worker : workers_) {
        const bool serving = serves(worker);
        const bool is_free = serving && !is_held(worker);
        alive += serving ? 1 : 0;
        free += is_free ? 1 : 0;
        if (ledger_of(worker).is_free(worker.info.rank) != is_free)
            throw std::logic_error("rank " + std::to_string(worker.info.rank.value()) + " and the ledger disagree");
    }
    if (free != this->free() || alive != this->alive()) throw std::logic_error("the ledger's counts are off");
}

} // namespace ranktune::tuner
