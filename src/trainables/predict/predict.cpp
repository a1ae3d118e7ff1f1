// SPDX-License-Identifier: Apache-2.0
// The built-in `predict`: a trial is a range of samples for which models of another study predict. Ranks share nothing
// but the output file, in which each range has its place: a range that is computed again gives the same bytes.

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "ranktune/base/error.hpp"
#include "storage/output_file.hpp"
#include "study/printed_values.hpp"
#include "trainables/builtin.hpp"
#include "trainables/predict/model.hpp"

namespace ranktune::trainables {

namespace {

study::TrainableInfo predict_info() {
    return {.name = study::predict_trainable,
            .description = "predicts with checkpoints of another study; `ranktune predict` writes its study file",
            .options = {{.name = "input",
                         .kind = study::OptionInfo::Kind::path,
                         .required = true,
                         .description = "file with the samples"}},
            .can_checkpoint = false,
            .can_reset = true,
            .any_option = true,
            .metrics = {"samples", "digest_high", "digest_low"}};
}

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

/// What a rank needs for all its ranges.
class Predictor {
  public:
    Predictor(PredictPlan plan, TrialContext& context);
    /// Returns the metrics of the range.
    [[nodiscard]] Metrics predict_range(std::uint64_t range, TrialContext& context);

  private:
    [[nodiscard]] data::LoaderOptions loader_options(const TrialContext& context) const;
    [[nodiscard]] Prediction predict_batch(const data::Batch& batch, std::size_t wanted, TrialContext& context);
    void open_output(const Prediction& first, base::TrialId trial);

    PredictPlan plan_;
    Combine combine_;
    std::shared_ptr<const data::Source> source_;
    std::vector<std::unique_ptr<PredictingModel>> models_; ///< of the trials of plan_
    std::string form_;                                     ///< of the first batch; later ones have the same
    std::optional<storage::OutputFile> output_;            ///< made with the shape of the first prediction
};

Predictor::Predictor(PredictPlan plan, TrialContext& context)
    : plan_(std::move(plan)),
      combine_(combine_of(plan_.combine)),
      source_(data::Source::open(plan_.input, {.group = plan_.group, .field = plan_.field})) {
    if (source_->samples() != plan_.samples)
        throw base::UsageError("'" + plan_.input + "' has " + std::to_string(source_->samples()) +
                               " samples, and the study file says " + std::to_string(plan_.samples) +
                               ": give the predictions of the new file another output");
    for (const PredictingTrial& trial : plan_.trials)
        models_.push_back(std::make_unique<PredictingModel>(plan_, trial, context));
}

data::LoaderOptions Predictor::loader_options(const TrialContext& context) const {
    data::LoaderOptions options{.batch = plan_.batch, .order = {data::Shuffle::none}};
    options.threads = std::max(context.cpus_per_rank() - 1, 1);
    if (!plan_.field.empty()) options.columns = {source_->fields()[source_->field(plan_.field)]};
    return options;
}

Prediction Predictor::predict_batch(const data::Batch& batch, std::size_t wanted, TrialContext& context) {
    std::vector<Prediction> members;
    for (const auto& model : models_) members.push_back(model->predict(batch, wanted, context));
    return combined(members, combine_);
}

void Predictor::open_output(const Prediction& first, base::TrialId trial) {
    form_ = first.form();
    output_.emplace(storage::posix_file_system(), plan_.output, trial.value(), form_of(plan_, first));
}

Metrics Predictor::predict_range(std::uint64_t range, TrialContext& context) {
    const std::uint64_t begin = range * plan_.range;
    const std::uint64_t end = std::min(begin + plan_.range, plan_.samples);
    if (begin >= end) throw base::UsageError("there is no range " + std::to_string(range));
    data::Loader loader(source_, {0, begin}, loader_options(context));
    base::Digest of_y;
    base::Digest of_classes;
    for (std::uint64_t at = begin; at < end;) {
        context.group().barrier(); // a sign of progress (failure.report_timeout)
        const data::Batch batch = *loader.next();
        const std::size_t count = std::min<std::uint64_t>(batch.samples.size(), end - at);
        const Prediction prediction = predict_batch(batch, count, context);
        if (!output_) open_output(prediction, context.trial());
        if (const std::string form = prediction.form(); form != form_)
            throw base::UsageError("from sample " + std::to_string(at) + " on predictions are " + form +
                                   ", others are " + form_ + ": predict() has to put one form");
        const std::vector<std::byte> y = bytes_of_y(prediction);
        const auto classes = std::as_bytes(std::span(prediction.classes));
        output_->write(0, at, y);
        if (prediction.classifies) output_->write(1, at, classes);
        of_y.add(y);
        of_classes.add(classes);
        at += count;
    }
    output_->sync();
    const std::uint64_t digest = digest_of_range(of_y, of_classes);
    constexpr int half = 32; // a double holds 53 bits
    return {{"samples", static_cast<double>(end - begin)},
            {"digest_high", static_cast<double>(digest >> half)},
            {"digest_low", static_cast<double>(digest & 0xFFFFFFFFU)}};
}

/// One object for all ranges of a rank.
class Predict final : public Trainable {
  public:
    void setup(TrialContext& context) override {
        if (context.size() != 1) throw base::UsageError("resources.ranks is not 1: a range is predicted by one rank");
        predictor_.emplace(predict_plan_of(context.configuration()), context);
    }
    [[nodiscard]] bool reset_config(TrialContext&) override { return true; }
    Metrics step(TrialContext& context) override {
        const std::int64_t range = context.configuration().at(range_parameter).as_int();
        return predictor_->predict_range(static_cast<std::uint64_t>(range), context);
    }
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
