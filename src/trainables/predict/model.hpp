// SPDX-License-Identifier: Apache-2.0
#pragma once
// PredictingModel: the trained model of one trial of another study.

#include <cstddef>
#include <functional>
#include <memory>

#include "ranktune/data/loader.hpp"
#include "ranktune/trainables/trainable.hpp"
#include "trainables/predict/plan.hpp"
#include "trainables/predict/prediction.hpp"

namespace ranktune::trainables {

class PredictingModel {
  public:
    virtual ~PredictingModel() = default;
    /// A model that lives elsewhere may begin with the batch. At most `most_begun` batches have begun and are not
    /// predicted; they stay where they are until then.
    virtual void begin(const data::Batch& /*batch*/, std::size_t /*wanted*/) {}
    static constexpr std::size_t most_begun = 2;
    /// For the first `wanted` samples of the batch. Batches come in the order of `begin`. `within`: a trial of the
    /// study of predictions. Throws as prediction_of, and what the model throws.
    [[nodiscard]] virtual Prediction predict(const data::Batch& batch, std::size_t wanted, TrialContext& within) = 0;
};

/// The trained trial of a plan, for messages.
[[nodiscard]] std::string name_of(const PredictPlan& plan, const PredictingTrial& trial);

/// A model that is a trainable of this process, in a group of its own, with its checkpoint loaded. Plan and trial must
/// outlive it; `within` is used during this call alone. Throws base::UsageError for a trainable that is a function or
/// unknown; what the trainable throws; storage::DamageError, base::IoError.
[[nodiscard]] std::unique_ptr<PredictingModel> load_model(const PredictPlan& plan, const PredictingTrial& trial,
                                                          TrialContext& within);

} // namespace ranktune::trainables
