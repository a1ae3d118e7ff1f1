// SPDX-License-Identifier: Apache-2.0
#pragma once
// PredictingModel: the trained model of one trial of another study.

#include <cstddef>
#include <memory>

#include "ranktune/data/loader.hpp"
#include "ranktune/trainables/trainable.hpp"
#include "trainables/predict/plan.hpp"
#include "trainables/predict/prediction.hpp"

namespace ranktune::trainables {

class PredictingModel {
  public:
    /// Sets the model up in a group of its own, and loads its checkpoint. Both arguments must outlive this object;
    /// `within`: a trial of the study of predictions, used during this call alone. Throws base::UsageError for a
    /// trainable that is a function or unknown; what the trainable throws; storage::DamageError, base::IoError.
    PredictingModel(const PredictPlan& plan, const PredictingTrial& trial, TrialContext& within);
    ~PredictingModel();
    PredictingModel(const PredictingModel&) = delete;
    PredictingModel& operator=(const PredictingModel&) = delete;

    /// For the first `wanted` samples of the batch. Throws as Trainable::predict and prediction_of.
    [[nodiscard]] Prediction predict(const data::Batch& batch, std::size_t wanted, TrialContext& within);

  private:
    class Context;
    std::string who_; ///< for messages
    std::unique_ptr<Context> context_;
    std::unique_ptr<Trainable> trainable_; ///< uses the context
    study::MemoryState put_;               ///< keeps its memory from batch to batch
};

} // namespace ranktune::trainables
