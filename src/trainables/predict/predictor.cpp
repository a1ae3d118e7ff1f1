// SPDX-License-Identifier: Apache-2.0
#include "trainables/predict/predictor.hpp"

#include <algorithm>
#include <deque>
#include <utility>

#include "ranktune/base/error.hpp"

namespace ranktune::trainables {

namespace {

bool fit_into(std::uint64_t memory, const PredictPlan& plan) {
    std::uint64_t bytes = 0;
    for (const PredictingTrial& trial : plan.trials) bytes += trial.checkpoint.bytes;
    return plan.trials.size() == 1 || bytes <= (plan.memory > 0 ? plan.memory : memory / 2);
}

} // namespace

Predictor::Predictor(PredictPlan plan, MakeModel make, TrialContext& within)
    : plan_(std::move(plan)),
      make_(std::move(make)),
      source_(data::Source::open(plan_.input, {.group = plan_.group, .field = plan_.field})),
      writer_(storage::posix_file_system(), plan_) {
    if (source_->samples() != plan_.samples)
        throw base::UsageError("'" + plan_.input + "' has " + std::to_string(source_->samples()) +
                               " samples, and the study file says " + std::to_string(plan_.samples) +
                               ": give the predictions of the new file another output");
    if (!fit_into(within.memory(), plan_)) return;
    for (const PredictingTrial& trial : plan_.trials) models_.push_back(make_(plan_, trial, within));
}

data::LoaderOptions Predictor::loader_options(const TrialContext& context) const {
    data::LoaderOptions options{.batch = plan_.batch, .order = {data::Shuffle::none}};
    options.threads = std::max(context.cpus_per_rank() - 1, 1);
    if (!plan_.field.empty()) options.columns = {source_->fields()[source_->field(plan_.field)]};
    return options;
}

void Predictor::predict(std::span<const std::unique_ptr<PredictingModel>> models, const Next& next, const Done& done,
                        TrialContext& context) {
    std::deque<const Part*> begun;
    while (true) {
        if (begun.size() < PredictingModel::most_begun) {
            if (const Part* part = next()) {
                for (const auto& model : models) model->begin(part->batch, part->wanted);
                begun.push_back(part);
                continue;
            }
        }
        if (begun.empty()) return;
        context.group().barrier(); // a sign of progress (failure.report_timeout)
        std::vector<Prediction> members;
        for (const auto& model : models)
            members.push_back(model->predict(begun.front()->batch, begun.front()->wanted, context));
        done(*begun.front(), std::move(members));
        begun.pop_front();
    }
}

Metrics Predictor::predict_range(TrialContext& context) {
    const auto range = static_cast<std::uint64_t>(context.configuration().at(range_parameter).as_int());
    const std::uint64_t first = range * plan_.range;
    const std::uint64_t end = std::min(first + plan_.range, plan_.samples);
    if (first >= end) throw base::UsageError("there is no range " + std::to_string(range));
    data::Loader loader(source_, {0, first}, loader_options(context));
    std::deque<Part> parts; // (references stay)
    std::uint64_t at = first;
    const auto read = [&]() -> const Part* {
        if (at == end) return nullptr;
        data::Batch batch = *loader.next();
        const std::size_t wanted = std::min<std::uint64_t>(batch.samples.size(), end - at);
        at += wanted;
        return &parts.emplace_back(Part{std::move(batch), wanted});
    };
    const auto put = [&](const Part& part, std::vector<Prediction> members) {
        writer_.put(std::move(members), part.batch.begin, context.trial());
    };
    if (models_.empty()) { // one after the other
        while (read() != nullptr) {
        }
        std::vector<std::vector<Prediction>> said(parts.size()); // by the models so far
        for (const PredictingTrial& trial : plan_.trials) {
            Models one;
            one.push_back(make_(plan_, trial, context));
            std::size_t next = 0;
            std::size_t done = 0;
            predict(
                one, [&] { return next < parts.size() ? &parts[next++] : nullptr; },
                [&](const Part&, std::vector<Prediction> members) {
                    said[done++].push_back(std::move(members.front()));
                },
                context);
        }
        for (std::size_t i = 0; i < parts.size(); ++i) put(parts[i], std::move(said[i]));
    } else {
        predict(
            models_, read,
            [&](const Part& part, std::vector<Prediction> members) {
                put(part, std::move(members));
                parts.pop_front();
            },
            context);
    }
    const std::uint64_t digest = writer_.finish_range();
    constexpr int half = 32; // a double holds 53 bits
    return {{"samples", static_cast<double>(end - first)},
            {"digest_high", static_cast<double>(digest >> half)},
            {"digest_low", static_cast<double>(digest & 0xFFFFFFFFU)}};
}

} // namespace ranktune::trainables
