// SPDX-License-Identifier: Apache-2.0
#pragma once
// The ranks of this incarnation: who holds them, which are free, and where a group would go.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ranktune/study/record.hpp"
#include "tuner/values/ledger.hpp"
#include "tuner/values/trial.hpp"

namespace ranktune::tuner {

/// In place of a position in Placement::devices(): the rank has no GPU.
inline constexpr std::uint32_t no_device = UINT32_MAX;

struct WorkerState {
    RankInfo info;
    bool alive = true;
    std::optional<TrialId> trial;      ///< holds this rank
    std::uint32_t host = 0;            ///< position in Placement::hosts()
    std::uint32_t device = no_device;  ///< position in Placement::devices(), or no_device
    std::optional<TrialId> aside = {}; ///< the side task that holds this rank, by study::unit_of
    bool spare = false;                ///< gets no trial before another worker is lost
    bool helper = false;               ///< gets side tasks alone
    // Not alive:
    StudyTime lost_at{};
    std::string lost_why = {};             ///< as in RankLost
    std::optional<TrialId> lost_from = {}; ///< held it then
    static void fields(auto&& each, auto& r) {
        each(r.info, r.alive, r.spare, r.helper, r.trial, r.aside, r.host, r.device, r.lost_at, r.lost_why,
             r.lost_from);
    }
};

/// A node of this incarnation.
struct HostState {
    std::string name;
    bool retired = false; ///< gets no more trials
    static void fields(auto&& each, auto& r) { each(r.name, r.retired); }
};

/// A GPU of this incarnation, or the GPUs that one rank has for itself.
struct DeviceState {
    std::string name; ///< RankInfo::device
    std::uint32_t host = 0;
    bool retired = false; ///< gets no more trials
    static void fields(auto&& each, auto& r) { each(r.name, r.host, r.retired); }
};

class Placement {
  public:
    [[nodiscard]] const std::vector<WorkerState>& workers() const { return workers_; } ///< ascending rank
    [[nodiscard]] const std::vector<HostState>& hosts() const { return hosts_; }       ///< in the order of first ranks
    [[nodiscard]] const std::vector<DeviceState>& devices() const { return devices_; } ///< likewise
    [[nodiscard]] const WorkerState& worker(Rank rank) const { return workers_[rank.value() - 1]; }
    [[nodiscard]] bool knows(Rank rank) const { return rank.value() > 0 && rank.value() <= workers_.size(); }
    [[nodiscard]] std::uint32_t free(WorkerKind kind = WorkerKind::any) const { return sum(kind, &Ledger::free); }
    /// And in service.
    [[nodiscard]] std::uint32_t alive(WorkerKind kind = WorkerKind::any) const { return sum(kind, &Ledger::alive); }
    /// Ascending; empty when fewer than `size` are free. `largest`: of all groups of this kind. See Ledger::plan.
    /// `kind` is `any` exactly if the workers are not kept apart.
    [[nodiscard]] std::vector<Rank> plan(std::uint32_t size, std::uint32_t largest,
                                         WorkerKind kind = WorkerKind::any) const {
        return (kind == WorkerKind::without_gpu ? without_gpu_ : ledger_).plan(size, largest);
    }
    [[nodiscard]] bool keeps_kinds_apart() const { return apart_; }
    /// Whether the worker gets trials when it is free.
    [[nodiscard]] bool serves(const WorkerState& worker) const {
        return worker.alive && !worker.spare && !worker.helper && in_service(worker);
    }
    /// The rank for a side task: a helper, else a free one, those without GPUs and the highest first. nullopt: none.
    [[nodiscard]] std::optional<Rank> place_aside() const;
    /// All of `ranks` are free.
    [[nodiscard]] bool are_free(std::span<const Rank> ranks) const;
    /// Those of `ranks` that are alive.
    [[nodiscard]] std::vector<Rank> living(std::span<const Rank> ranks) const;
    /// The host of all `ranks`; nullopt: several hosts.
    [[nodiscard]] std::optional<std::uint32_t> only_host_of(std::span<const Rank> ranks) const;
    /// The GPU of the rank that failed (`failing`: position in `ranks`), or of all `ranks`; nullopt: none, or several.
    [[nodiscard]] std::optional<std::uint32_t> device_of(std::span<const Rank> ranks,
                                                         std::optional<std::uint32_t> failing) const;
    /// Ranks in service on other hosts.
    [[nodiscard]] std::uint32_t ranks_beside(std::uint32_t host, WorkerKind kind = WorkerKind::any) const;
    /// Ranks in service on other GPUs, or on none.
    [[nodiscard]] std::uint32_t ranks_beside_device(std::uint32_t device, WorkerKind kind = WorkerKind::any) const;
    /// Whether another rank of its host is in service: the GPU and the host are not the same thing then.
    [[nodiscard]] bool has_neighbour(std::uint32_t device) const;

    /// Some trials need GPUs, and others go to workers without one. Once, before `begin` and a snapshot.
    void keep_kinds_apart() { apart_ = true; }
    // ---- mutators; all throw base::FormatError for an impossible change
    /// The last `spares` workers get no trial before others are lost. `helpers` others, the last ones, those without
    /// GPUs first, get side tasks alone.
    void begin(const std::vector<RankInfo>& workers, std::uint32_t spares = 0, std::uint32_t helpers = 0);
    void take(TrialId trial, std::span<const Rank> ranks);
    void release(TrialId trial, std::span<const Rank> ranks);
    void take_aside(TrialId unit, Rank rank);
    /// Also of a rank that is lost.
    void release_aside(Rank rank);
    /// Returns the trial that held the rank. A spare of its kind takes its place.
    std::optional<TrialId> lose(const study::RankLost& lost);
    /// Returns the position of the host.
    std::uint32_t retire(const std::string& host);
    /// One GPU of the host. Returns the position of the GPU.
    std::uint32_t retire_device(const std::string& host, const std::string& device);

    static void fields(auto&& each, auto& r) {
        each(r.workers_, r.hosts_, r.devices_);
        if constexpr (study::is_read<decltype(r)>) r.rebuild();
    }
    /// Throws std::logic_error naming what does not hold.
    void check_invariants() const;

  private:
    [[nodiscard]] bool in_service(const WorkerState& worker) const {
        return !hosts_[worker.host].retired && (worker.device == no_device || !devices_[worker.device].retired);
    }
    [[nodiscard]] bool is_of(const WorkerState& worker, WorkerKind kind) const {
        return kind == WorkerKind::any || (kind == WorkerKind::with_gpu) == (worker.info.gpus > 0);
    }
    [[nodiscard]] std::uint32_t sum(WorkerKind kind, std::uint32_t (Ledger::*count)() const) const {
        return (kind == WorkerKind::without_gpu ? 0 : (ledger_.*count)()) +
               (kind == WorkerKind::with_gpu ? 0 : (without_gpu_.*count)());
    }
    [[nodiscard]] const Ledger& ledger_of(const WorkerState& worker) const {
        return apart_ && worker.info.gpus == 0 ? without_gpu_ : ledger_;
    }
    [[nodiscard]] Ledger& ledger_of(const WorkerState& worker) {
        return apart_ && worker.info.gpus == 0 ? without_gpu_ : ledger_;
    }
    [[nodiscard]] static bool is_held(const WorkerState& worker) { return worker.trial || worker.aside; }
    template <class OfPlace>
    void take_out_of_service(bool& retired, OfPlace of_place);
    void reset_ledgers();
    void rebuild();

    std::vector<WorkerState> workers_;
    std::vector<HostState> hosts_;
    std::vector<DeviceState> devices_;
    bool apart_ = false; ///< follows from the study
    // Derived.
    Ledger ledger_;      ///< of all workers; if they are kept apart, of those with a GPU
    Ledger without_gpu_; ///< empty unless they are kept apart
};

} // namespace ranktune::tuner
