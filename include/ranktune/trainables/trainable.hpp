// SPDX-License-Identifier: Apache-2.0
#pragma once
// Trainable: what a user of the library writes. One object per rank and trial.

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

namespace ranktune::trainables {

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
    /// and a new one is set up. Nothing of the old context or its group may be touched. Collective.
    [[nodiscard]] virtual bool reset_config(TrialContext& /*context*/) { return false; }
};

using TrainableFactory = std::function<std::unique_ptr<Trainable>()>;
/// The function form: trains all iterations, calling context.report after each.
using TrainFunction = std::function<void(FunctionContext&)>;

/// Makes a trainable known to this process under info.name. Call before run_program; the name may not be taken. Throws
/// base::UsageError.
void register_trainable(study::TrainableInfo info, TrainableFactory factory);
void register_function(study::TrainableInfo info, TrainFunction function);
/// A class that is made without arguments.
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
/// Throws base::UsageError naming the known ones and the nearest.
[[nodiscard]] const Registration& find_trainable(const std::string& name);
/// Everything that can be named in a study file: what was registered and the built-ins, by name.
[[nodiscard]] std::vector<study::TrainableInfo> known_trainables();

} // namespace ranktune::trainables
