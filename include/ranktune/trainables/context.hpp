// SPDX-License-Identifier: Apache-2.0
#pragma once
// TrialContext and FunctionContext: a trainable's view of its trial.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ranktune/base/ids.hpp"
#include "ranktune/ddp/group.hpp"
#include "ranktune/space/configuration.hpp"
#include "ranktune/study/spec.hpp"
#include "ranktune/study/state.hpp"

namespace ranktune::trainables {

/// The metrics of one iteration, by name. Rank 0's count.
using Metrics = std::vector<std::pair<std::string, double>>;

/// For a context: the file of this name. Throws as TrialContext::data.
[[nodiscard]] const study::DataFile& data_called(std::string_view name, std::span<const study::DataFile> files);

/// What a trainable sees of its trial. Every rank of the trial has one, which is valid during the calls to which it is
/// passed. Only the operations of `group()` are collective.
class TrialContext {
  public:
    virtual ~TrialContext() = default;

    /// The hyper-parameters together with the fixed options of [trainable].
    [[nodiscard]] virtual const space::Configuration& configuration() const = 0;
    /// Number of the trial in its study, from 0.
    [[nodiscard]] virtual base::TrialId trial() const = 0;
    /// The study's seed; of the repetitions of a configuration (searcher.repeats), one more each. Random streams keyed
    /// with (seed, purpose, trial, draw) are the same on any number of ranks. As the purpose use base::user_purpose.
    [[nodiscard]] virtual std::uint64_t seed() const = 0;
    /// Iterations completed so far, including those before a checkpoint (0 before the first).
    [[nodiscard]] virtual base::Iteration iteration() const = 0;
    /// The limit study.max_iterations, for schedules. A trial may be stopped earlier, but never trains longer.
    [[nodiscard]] virtual base::Iteration max_iterations() const = 0;

    /// Operations over the trial's ranks.
    [[nodiscard]] virtual ddp::Group& group() const = 0;
    [[nodiscard]] int rank() const { return group().rank(); } ///< from 0
    [[nodiscard]] int size() const { return group().size(); } ///< ranks of the trial
    /// Threads that this rank may keep busy: resources.cpus_per_rank.
    [[nodiscard]] virtual int cpus_per_rank() const = 0;
    /// Bytes of memory that this rank may fill: an equal share of what its node, or the job there, has.
    [[nodiscard]] virtual std::uint64_t memory() const = 0;
    /// GPUs that the launcher granted to this rank, as CUDA_VISIBLE_DEVICES names them; empty: none.
    [[nodiscard]] virtual std::vector<std::string> devices() const = 0;

    /// The file or folder that [data] calls `name`, for data::Source::open. Throws base::UsageError with the names that
    /// there are.
    [[nodiscard]] virtual const study::DataFile& data(std::string_view name) const = 0;

    /// Whether only `load` and `predict` follow `setup`: the data of training may be gone.
    [[nodiscard]] virtual bool only_predicts() const { return false; }

    /// Writes one line to the worker's log.
    virtual void log(std::string_view line) = 0;
};

/// Context of the function form. The function itself reports when an iteration is complete and how its state is saved.
class FunctionContext : public TrialContext {
  public:
    /// Ends an iteration with rank 0's metrics. Collective. Returns false when the trial has to end (paused or
    /// stopped): return from the function then. Before a pause it calls the `save` given to checkpoints(). All ranks
    /// get the same answer after the same iteration.
    [[nodiscard]] virtual bool report(const Metrics& metrics) = 0;
    /// How to save and load the state, under the rules of Trainable::save and load; both may be called until the
    /// function returns. `load` is called at once when the trial resumes from a checkpoint. Collective. Call it before
    /// the first report. A trial that never calls it starts over after a restart of the study, and fails when its
    /// scheduler pauses it (unless restart_paused is set).
    virtual void checkpoints(std::function<void(study::StateSink&)> save,
                             std::function<void(study::StateSource&)> load) = 0;
};

} // namespace ranktune::trainables
