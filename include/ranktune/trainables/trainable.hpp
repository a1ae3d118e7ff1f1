// SPDX-License-Identifier: Apache-2.0
#pragma once
// Trainable: implemented by users of the library. One object per rank and trial.

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ranktune/study/state.hpp"
#include "ranktune/study/trainable_info.hpp"
#include "ranktune/trainables/context.hpp"

namespace ranktune::data {
struct Batch; // ranktune/data/loader.hpp
}

namespace ranktune::trainables {

/// The class form. The driver calls, on every rank: setup; load, when the trial resumes from a checkpoint; then step,
/// until the trial ends or pauses; save, for checkpoints, before a pause and at the end. An exception on any rank fails
/// the trial on all of them.
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
    /// With TrainableInfo::can_reset: called on the previous trial's object when that trial ended well on as many ranks
    /// as the next one has. Adopt the new context and configuration, as after `setup`, and keep what is expensive to
    /// make (datasets, buffers). The object is reused only when all ranks return true; otherwise it is destroyed and a
    /// new one is set up. Do not use the old context or its group. Collective.
    [[nodiscard]] virtual bool reset_config(TrialContext& /*context*/) { return false; }
    /// For `ranktune predict`, after `setup` and `load`, in a group of one rank. Puts `y`, float32 or float64, of shape
    /// [samples of the batch, ...]: the same shape and type for each batch, and no row may depend on another one. A
    /// classifier puts its probabilities as `y` [samples, classes], and `class` [samples], int32. Not collective.
    /// Unless overridden throws base::UsageError.
    virtual void predict(TrialContext& context, const data::Batch& batch, study::StateSink& out);
};

using TrainableFactory = std::function<std::unique_ptr<Trainable>()>;
/// The function form: trains all iterations, calling context.report after each.
using TrainFunction = std::function<void(FunctionContext&)>;

/// Registers a trainable in this process under info.name. Call before run_program. Throws base::UsageError when the
/// name is taken.
void register_trainable(study::TrainableInfo info, TrainableFactory factory);
void register_function(study::TrainableInfo info, TrainFunction function);
/// Registers a class with a default constructor.
template <std::derived_from<Trainable> T>
void register_trainable(study::TrainableInfo info) {
    register_trainable(std::move(info), [] { return std::make_unique<T>(); });
}

/// A registered trainable, class or function.
struct Registration {
    study::TrainableInfo info;
    TrainableFactory factory; ///< empty for functions
    TrainFunction function;   ///< empty for classes
};
/// Throws base::UsageError with the known names and the nearest one.
[[nodiscard]] const Registration& find_trainable(const std::string& name);
/// All trainables that a study file may name, registered and built in, sorted by name.
[[nodiscard]] std::vector<study::TrainableInfo> known_trainables();

} // namespace ranktune::trainables
