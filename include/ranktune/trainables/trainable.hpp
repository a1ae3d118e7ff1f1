// SPDX-License-Identifier: Apache-2.0
#pragma once
// Trainable: what a user of the library writes. One object per rank and trial.

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ranktune/base/ids.hpp"
#include "ranktune/ddp/collective.hpp"
#include "ranktune/space/configuration.hpp"
#include "ranktune/study/parse.hpp"
#include "ranktune/study/state.hpp"

namespace ranktune::trainables {

/// The metrics of one iteration. Rank 0's count.
using Metrics = std::vector<std::pair<std::string, double>>;

/// What a trainable sees of the world. Every rank of the trial has one. Valid during the calls it is passed to.
class TrialContext {
  public:
    virtual ~TrialContext() = default;

    [[nodiscard]] virtual base::TrialId trial() const = 0;
    /// The study's seed: key random streams with (seed, purpose, trial, draw) and they are the same on any number of
    /// ranks. The purpose is one of yours: base::user_purpose.
    [[nodiscard]] virtual std::uint64_t seed() const = 0;
    /// Hyper-parameters and the fixed options of [trainable], in one.
    [[nodiscard]] virtual const space::Configuration& configuration() const = 0;
    /// The ceiling study.max_iterations.
    [[nodiscard]] virtual base::Iteration max_iterations() const = 0;
    /// Iterations completed so far (0 before the first).
    [[nodiscard]] virtual base::Iteration iteration() const = 0;
    [[nodiscard]] virtual int cpus_per_rank() const = 0;
    /// GPUs that the launcher granted to this rank, as CUDA_VISIBLE_DEVICES names them; empty: none.
    [[nodiscard]] virtual std::vector<std::string> devices() const { return {}; }

    [[nodiscard]] virtual int rank() const = 0;
    [[nodiscard]] virtual int size() const = 0;
    /// Operations over the trial's ranks.
    [[nodiscard]] virtual ddp::Collective& collective() = 0;

    /// Function form only: ends an iteration with rank 0's metrics. Collective. Returns false when the trial has to end
    /// (paused or stopped): return from the function then. Before a pause it calls the `save` given to checkpoints().
    [[nodiscard]] virtual bool report(const Metrics& metrics) = 0;
    /// Function form only: how to save and load the state. `load` is called at once when the trial goes on from a
    /// checkpoint. A trial that never calls it begins again in the next start when the job or the study ends before it
    /// does, and fails when its scheduler pauses it (unless restart_paused is set).
    virtual void checkpoints(std::function<void(study::StateSink&)> save,
                             std::function<void(study::StateSource&)> load) = 0;

    /// One line in the worker's log.
    virtual void log(std::string_view line) = 0;
};

/// The class form. The driver calls, on every rank at the same time: setup, load (when the trial goes on from a
/// checkpoint), then step until the study says otherwise, save before a pause and at the end. An exception on any rank
/// fails the trial on all of them.
class Trainable {
  public:
    virtual ~Trainable() = default;
    /// Builds model and data. Collective.
    virtual void setup(TrialContext& context) = 0;
    /// Trains one iteration and returns its metrics (rank 0's count). Collective.
    [[nodiscard]] virtual Metrics step(TrialContext& context) = 0;
    /// Writes the state; called on every rank, rank 0's copy is stored. Must not communicate.
    virtual void save(study::StateSink& sink) const = 0;
    /// Restores what `save` wrote, on every rank, possibly on another number of ranks. Must not communicate.
    virtual void load(study::StateSource& source) = 0;
    /// With TrainableInfo::can_reset: offered to the object of the trial before, when it ended well on as many ranks as
    /// the next trial has: take over the new context and configuration, as after `setup`, and keep what is expensive to
    /// make again (datasets, buffers). Only when all ranks return true the object is used; otherwise it is destroyed
    /// and a new one is set up. Nothing of the old context or its collective may be touched. Collective.
    [[nodiscard]] virtual bool reset_config(TrialContext& /*context*/) { return false; }
    /// Sizes in floats of the gradient buckets that a training step reduces, in order; needed so that this rank can
    /// stand in with zeros when it fails (Collective::fail). Trainables that use GradientReducer return its plan.
    [[nodiscard]] virtual std::vector<std::size_t> owed_buckets() const { return {}; }
};

using TrainableFactory = std::function<std::unique_ptr<Trainable>()>;
/// The function form: trains all iterations, calling context.report after each.
using TrainFunction = std::function<void(TrialContext&)>;

/// Makes a trainable known to this process under info.name. Call before ranktune::cli::main; the name may not be taken.
/// Throws base::UsageError.
void register_trainable(study::TrainableInfo info, TrainableFactory factory);
void register_function(study::TrainableInfo info, TrainFunction function);
/// A class that is made without arguments.
template <std::derived_from<Trainable> T>
void register_trainable(study::TrainableInfo info) {
    register_trainable(std::move(info), [] { return std::make_unique<T>(); });
}

/// A registered trainable or an adapter around a registered function.
struct Registration {
    study::TrainableInfo info;
    TrainableFactory factory; ///< empty for functions
    TrainFunction function;   ///< empty for classes
};
/// Throws base::UsageError naming the known ones and the nearest.
[[nodiscard]] const Registration& find_trainable(const std::string& name);
/// Everything that can be named in a study file: what was registered and the built-ins, by name.
[[nodiscard]] std::vector<study::TrainableInfo> known_trainables();

} // namespace ranktune::trainables
