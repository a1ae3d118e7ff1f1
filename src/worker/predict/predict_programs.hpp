// SPDX-License-Identifier: Apache-2.0
#pragma once
// PredictPrograms: the programs in which models predict ranges of samples, one process for each model.

#include <memory>
#include <optional>
#include <vector>

#include "ranktune/study/vocabulary.hpp"
#include "trainables/predict/predictor.hpp"
#include "worker/trial/runner.hpp"

namespace ranktune::worker {

struct AttemptSetting;
class AttemptPort;

/// A range is given up: what the head wants its attempt to end with.
struct RangeGivenUp {
    study::Verb verb = study::Verb::stop;
};

/// On the trial thread. The processes wait between ranges; they are told to stop when this object is destroyed.
class PredictPrograms {
  public:
    /// `setting` outlives this object. Throws as trainables::Predictor.
    PredictPrograms(trainables::PredictPlan plan, const AttemptSetting& setting, trainables::TrialContext& within);
    ~PredictPrograms();
    PredictPrograms(const PredictPrograms&) = delete;
    PredictPrograms& operator=(const PredictPrograms&) = delete;

    /// As Predictor::predict_range. Starts the processes that do not wait. Throws RangeGivenUp, and when a program
    /// fails or is too slow what outcome_of knows; this object is of no more use then.
    [[nodiscard]] trainables::Metrics predict_range(trainables::TrialContext& context, const Assignment& assignment,
                                                    AttemptPort& port);

  private:
    class Program;
    /// The range that is predicted.
    struct Now {
        const Assignment& assignment;
        AttemptPort& port;
    };
    std::optional<Now> now_;
    std::vector<Program*> programs_; ///< of the models that `predictor_` keeps
    trainables::Predictor predictor_;
};

} // namespace ranktune::worker
