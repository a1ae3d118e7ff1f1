// SPDX-License-Identifier: Apache-2.0
// The built-in `predict`: a trial is a range of samples for which models of another study predict. Ranks share nothing
// but the output file, in which each range has its place: a range that is computed again gives the same bytes.

#include <optional>

#include "ranktune/base/error.hpp"
#include "study/printed_values.hpp"
#include "trainables/builtin.hpp"
#include "trainables/predict/predictor.hpp"

namespace ranktune::trainables {

namespace {

study::TrainableInfo predict_info() {
    return {.name = study::predict_trainable,
            .description = "predicts with checkpoints of another study; `ranktune predict` writes its study file",
            .options = {{.name = "input",
                         .kind = study::OptionInfo::Kind::path,
                         .required = true,
                         .description = "file with the samples"},
                        {.name = memory_option,
                         .description = "models of an ensemble whose checkpoints have more GiB are in memory one after "
                                        "the other (half of the rank's share)",
                         .low = 0.0,
                         .high = 1e6}},
            .can_checkpoint = false,
            .can_reset = true,
            .any_option = true,
            .metrics = {"samples", "digest_high", "digest_low"}};
}

/// One object for all ranges of a rank.
class Predict final : public Trainable {
  public:
    void setup(TrialContext& context) override {
        if (context.size() != 1) throw base::UsageError("resources.ranks is not 1: a range is predicted by one rank");
        predictor_.emplace(predict_plan_of(context.configuration()), load_model, context);
    }
    [[nodiscard]] bool reset_config(TrialContext&) override { return true; }
    Metrics step(TrialContext& context) override { return predictor_->predict_range(context); }
    void save(study::StateSink&) const override {}
    void load(study::StateSource&) override {}

  private:
    std::optional<Predictor> predictor_;
};

} // namespace

Registration predict_registration() {
    return {predict_info(), [] { return std::make_unique<Predict>(); }, {}};
}

} // namespace ranktune::trainables
