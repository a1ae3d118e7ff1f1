// SPDX-License-Identifier: Apache-2.0
#include "trainables/predict/predictor.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

#include "ranktune/base/error.hpp"

namespace ranktune::trainables {

namespace {

/// A list as an attribute: "17 4 9".
template <class Of>
std::string words_of(const PredictPlan& plan, Of&& of) {
    std::string text;
    for (const PredictingTrial& trial : plan.trials) text += (text.empty() ? "" : " ") + of(trial);
    return text;
}

storage::OutputForm form_of(const PredictPlan& plan, const Prediction& prediction) {
    storage::OutputForm form{
        .rows = plan.samples, .columns = {{"y", prediction.type, prediction.row}}, .attributes = {}};
    if (prediction.classifies) form.columns.push_back({"class", base::DType::int32, prediction.class_row});
    form.attributes = {
        {"study", plan.study},
        {"trial", words_of(plan, [](const auto& each) { return std::to_string(each.trial.value()); })},
        {"iteration", words_of(plan, [](const auto& each) { return std::to_string(each.checkpoint.iteration); })},
        {"checkpoint_digest", words_of(plan, [](const auto& each) { return digest_text(each.checkpoint.digest); })},
        {"combine", plan.combine},
        {"input_content", plan.input_content},
        {"version", plan.version}};
    return form;
}

/// The numbers of y in the type that the file has.
std::vector<std::byte> bytes_of_y(const Prediction& prediction) {
    std::vector<std::byte> bytes(prediction.y.size() * base::size_of(prediction.type));
    if (prediction.type == base::DType::float64) {
        std::memcpy(bytes.data(), prediction.y.data(), bytes.size());
        return bytes;
    }
    const std::vector<float> values(prediction.y.begin(), prediction.y.end());
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

} // namespace

Predictor::Predictor(PredictPlan plan, const MakeModel& make)
    : plan_(std::move(plan)),
      combine_(combine_of(plan_.combine)),
      source_(data::Source::open(plan_.input, {.group = plan_.group, .field = plan_.field})) {
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

Prediction Predictor::predict(const Begun& begun, TrialContext& context) {
    std::vector<Prediction> members;
    for (const auto& model : models_) members.push_back(model->predict(begun.batch, begun.wanted, context));
    return combined(members, combine_);
}

void Predictor::write(const Prediction& prediction, std::uint64_t first, base::TrialId trial) {
    const std::string form = prediction.form();
    if (!output_) {
        form_ = form;
        output_.emplace(storage::posix_file_system(), plan_.output, trial.value(), form_of(plan_, prediction));
    }
    if (form != form_)
        throw base::UsageError("from sample " + std::to_string(first) + " on predictions are " + form +
                               ", others are " + form_ + ": a model has to predict one form");
    const std::vector<std::byte> y = bytes_of_y(prediction);
    const auto classes = std::as_bytes(std::span(prediction.classes));
    output_->write(0, first, y);
    if (prediction.classifies) output_->write(1, first, classes);
    of_y_.add(y);
    of_classes_.add(classes);
}

Metrics Predictor::predict_range(TrialContext& context) {
    const auto range = static_cast<std::uint64_t>(context.configuration().at(range_parameter).as_int());
    const std::uint64_t first = range * plan_.range;
    const std::uint64_t end = std::min(first + plan_.range, plan_.samples);
    if (first >= end) throw base::UsageError("there is no range " + std::to_string(range));
    data::Loader loader(source_, {0, first}, loader_options(context));
    of_y_ = of_classes_ = base::Digest();
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
        write(predict(begun.front(), context), begun.front().batch.begin, context.trial());
        begun.pop_front();
    }
    output_->sync();
    const std::uint64_t digest = digest_of_range(of_y_, of_classes_);
    constexpr int half = 32; // a double holds 53 bits
    return {{"samples", static_cast<double>(end - first)},
            {"digest_high", static_cast<double>(digest >> half)},
            {"digest_low", static_cast<double>(digest & 0xFFFFFFFFU)}};
}

} // namespace ranktune::trainables
