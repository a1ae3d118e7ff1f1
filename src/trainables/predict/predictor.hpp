// SPDX-License-Identifier: Apache-2.0
#pragma once
// Predictor: predicts ranges of samples, and puts what models say into the output.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "trainables/predict/model.hpp"
#include "trainables/predict/prediction_writer.hpp"

namespace ranktune::trainables {

/// What a rank needs for all its ranges. Used by one thread.
class Predictor {
  public:
    /// `within`: the trial of the study of predictions during which it is made.
    using MakeModel = std::function<std::unique_ptr<PredictingModel>(
        const PredictPlan& plan, const PredictingTrial& trial, TrialContext& within)>;

    /// `make` is called for each trial of the plan, which lives as long as this object. Models whose checkpoints take
    /// more than half of the rank's memory, or what the plan says, are made one after the other for each range, whose
    /// samples wait for them in memory; other models are made now and live as long as this object. Throws
    /// base::UsageError when the input is not what the plan says; as data::Source::open and `make`.
    Predictor(PredictPlan plan, MakeModel make, TrialContext& within);
    Predictor(const Predictor&) = delete;
    Predictor& operator=(const Predictor&) = delete;

    /// The range that the trial's configuration names. Returns the metrics of the trial: the number of samples, and the
    /// digest of what is written and synced then. Throws base::UsageError when predictions have another form than
    /// before, and what models, input and output throw; models may have begun a batch then, and this object is of no
    /// more use.
    [[nodiscard]] Metrics predict_range(TrialContext& context);

  private:
    using Models = std::vector<std::unique_ptr<PredictingModel>>;
    /// A batch, of which the range has the first `wanted` samples.
    struct Part {
        data::Batch batch;
        std::size_t wanted = 0;
    };
    using Next = std::function<const Part*()>; ///< null: there are no more
    using Done = std::function<void(const Part& part, std::vector<Prediction> members)>;

    [[nodiscard]] data::LoaderOptions loader_options(const TrialContext& context) const;
    /// Parts stay where they are until they are done; the next one has begun then.
    static void predict(std::span<const std::unique_ptr<PredictingModel>> models, const Next& next, const Done& done,
                        TrialContext& context);

    PredictPlan plan_;
    MakeModel make_;
    std::shared_ptr<const data::Source> source_;
    Models models_; ///< of the trials of plan_, unless they are made in turn
    PredictionWriter writer_;
};

} // namespace ranktune::trainables
