// SPDX-License-Identifier: Apache-2.0
#include "trainables/predict/predictor.hpp"

#include <algorithm>
#include <deque>
#include <utility>

#include "ranktune/base/error.hpp"

namespace ranktune::trainables {

Predictor::Predictor(PredictPlan plan, const MakeModel& make)
    : plan_(std::move(plan)),
      source_(data::Source::open(plan_.input, {.group = plan_.group, .field = plan_.field})),
      writer_(storage::posix_file_system(), plan_) {
    if (source_->samples() != plan_.samples)
        throw base::UsageError("'" + plan_.input + "' has " + std::to_string(source_->samples()) +
                               " samples, and the study file says " + std::to_string(plan_.samples) +
                               ": give the predictions of the new file another output");
    for (const PredictingTrial& trial : plan_.trials) models_.push_back(make(plan_, trial));
}

data::LoaderOptions Predictor::loader_options(const TrialContext& context) const {
    data::LoaderOptions options{.batch = plan_.batch, .order = {data::Shuffle::none}};
    options.threads = std::max(context.cpus_per_rank() - 1, 1);
    if (!plan_.field.empty()) options.columns = {source_->fields()[source_->field(plan_.field)]};
    return options;
}

Metrics Predictor::predict_range(TrialContext& context) {
    const auto range = static_cast<std::uint64_t>(context.configuration().at(range_parameter).as_int());
    const std::uint64_t first = range * plan_.range;
    const std::uint64_t end = std::min(first + plan_.range, plan_.samples);
    if (first >= end) throw base::UsageError("there is no range " + std::to_string(range));
    data::Loader loader(source_, {0, first}, loader_options(context));
    std::deque<Begun> begun; // (references stay)
    for (std::uint64_t at = first; at < end || !begun.empty();) {
        if (at < end && begun.size() < PredictingModel::most_begun) {
            data::Batch batch = *loader.next();
            const std::size_t wanted = std::min<std::uint64_t>(batch.samples.size(), end - at);
            begun.push_back({std::move(batch), wanted});
            for (const auto& model : models_) model->begin(begun.back().batch, wanted);
            at += wanted;
            continue;
        }
        context.group().barrier(); // a sign of progress (failure.report_timeout)
        const auto& [batch, wanted] = begun.front();
        std::vector<Prediction> members;
        for (const auto& model : models_) members.push_back(model->predict(batch, wanted, context));
        writer_.put(std::move(members), batch.begin, context.trial());
        begun.pop_front();
    }
    const std::uint64_t digest = writer_.finish_range();
    constexpr int half = 32; // a double holds 53 bits
    return {{"samples", static_cast<double>(end - first)},
            {"digest_high", static_cast<double>(digest >> half)},
            {"digest_low", static_cast<double>(digest & 0xFFFFFFFFU)}};
}

} // namespace ranktune::trainables
