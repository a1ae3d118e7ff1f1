// SPDX-License-Identifier: Apache-2.0
#include "worker/predict/predict_body.hpp"

#include <utility>

#include "ranktune/base/error.hpp"
#include "trainables/predict/plan.hpp"

namespace ranktune::worker {

void PredictBody::start(const study::CheckpointRef* /*checkpoint*/) {
    programs_ = std::exchange(spare_.predict, nullptr);
    if (programs_) return;
    if (context_.size() != 1) throw base::UsageError("resources.ranks is not 1: a range is predicted by one rank");
    programs_ =
        std::make_unique<PredictPrograms>(trainables::predict_plan_of(parts_.configuration), parts_.setting, context_);
}

study::Verb PredictBody::train(const Report& report) {
    trainables::Metrics metrics;
    try {
        metrics = programs_->predict_range(context_, parts_.assignment, parts_.port);
    } catch (const RangeGivenUp& given_up) {
        return given_up.verb;
    }
    done_ = true;
    const study::Verb told = report(metrics);
    spare_.predict = std::move(programs_);
    return told;
}

} // namespace ranktune::worker
