// SPDX-License-Identifier: Apache-2.0
#pragma once
// Predictor: predicts ranges of samples, and puts what models say into the output.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainables/predict/model.hpp"
#include "trainables/predict/prediction_writer.hpp"

namespace ranktune::trainables {

/// What a rank needs for all its ranges. Used by one thread.
class Predictor {
  public:
    using MakeModel =
        std::function<std::unique_ptr<PredictingModel>(const PredictPlan& plan, const PredictingTrial& trial)>;

    /// `make` is called for each trial of the plan, which lives as long as this object. Throws base::UsageError when
    /// the input is not what the plan says; as data::Source::open and `make`.
    Predictor(PredictPlan plan, const MakeModel& make);
    Predictor(const Predictor&) = delete;
    Predictor& operator=(const Predictor&) = delete;

    /// The range that the trial's configuration names. Returns the metrics of the trial: the number of samples, and the
    /// digest of what is written and synced then. Throws base::UsageError when predictions have another form than
    /// before, and what models, input and output throw; models may have begun a batch then, and this object is of no
    /// more use.
    [[nodiscard]] Metrics predict_range(TrialContext& context);

  private:
    struct Begun {
        data::Batch batch;
        std::size_t wanted = 0; ///< samples of it in the range
    };
    [[nodiscard]] data::LoaderOptions loader_options(const TrialContext& context) const;

    PredictPlan plan_;
    std::shared_ptr<const data::Source> source_;
    std::vector<std::unique_ptr<PredictingModel>> models_; ///< of the trials of plan_
    PredictionWriter writer_;
};

} // namespace ranktune::trainables
