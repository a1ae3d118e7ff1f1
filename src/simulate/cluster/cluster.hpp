// SPDX-License-Identifier: Apache-2.0
#pragma once
// Cluster: simulates a whole job in one thread and in virtual time: one head machine, N worker machines, faulty wires
// between them, and learning curves instead of user code. The same study, options and seed give the same run, event by
// event.

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "head/head_machine.hpp"
#include "simulate/cluster/curve_world.hpp"
#include "simulate/transport/fault.hpp"
#include "tuner/tuner.hpp"
#include "worker/worker_machine.hpp"

namespace ranktune::simulate {

struct ClusterOptions {
    std::uint32_t workers = 4;
    std::uint32_t with_gpu = 0; ///< the last so many workers have a GPU each
    std::uint64_t seed = 1;
    base::Incarnation incarnation{1};
    FaultPlan wires; ///< delays and faults of every link; its `seed` and `death` are not used
    CurveOptions curve;
    /// (rank, time since the beginning) at which a process is killed. Rank 0 is the head.
    std::vector<std::pair<base::Rank, base::Duration>> deaths;
    std::optional<study::JobDeath> death;          ///< how the previous life ended, for the head
    std::optional<base::Duration> stop_at;         ///< somebody asks for a resumable end
    std::optional<base::Duration> deadline;        ///< of the job, known from the start
    std::optional<base::Duration> stop_at_once_at; ///< somebody asks for it again
    base::Duration head_nap{0};                    ///< how long the head lets messages accumulate
    base::Duration heartbeat_interval = std::chrono::seconds(1);
    base::Duration heartbeat_timeout = std::chrono::seconds(10);
    base::Duration hello_timeout = std::chrono::seconds(30);
    base::Duration abort_grace = std::chrono::seconds(5);
    base::Duration limit = std::chrono::hours(10); ///< of virtual time; reaching it is a problem
    bool check_invariants = true;                  ///< of the core, after every event
    std::function<double()> cpu_clock;             ///< in seconds; if set, measures the head's rounds
};

struct ClusterResult {
    std::optional<head::HeadEnd> head;                     ///< none: the head was killed
    std::vector<std::optional<worker::WorkerEnd>> workers; ///< position is rank - 1; none: killed
    base::Duration elapsed{};                              ///< virtual
    std::uint64_t steps = 0;                               ///< of the simulation
    std::uint64_t messages = 0;                            ///< sent
    std::uint64_t attempts = 0;
    head::HeadFigures figures;
    double head_cpu_s = 0.0;           ///< of the head's rounds, measured by `cpu_clock`
    std::vector<std::string> problems; ///< violations; empty in a correct run
};

/// Runs one life of a study: `tuner` holds a created or replayed study. `files`: existing checkpoints, updated.
/// `observer` may be null. Throws what the core throws (a violated invariant is a std::logic_error).
[[nodiscard]] ClusterResult run_cluster(const ClusterOptions& options, tuner::Tuner& tuner, study::RecordSink& sink,
                                        std::set<std::string>& files, head::Observer* observer = nullptr);

} // namespace ranktune::simulate
