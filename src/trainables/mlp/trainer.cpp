// SPDX-License-Identifier: Apache-2.0
#include "trainables/mlp/trainer.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <string>
#include <utility>

#include "ranktune/base/error.hpp"
#include "ranktune/base/huge_pages.hpp"
#include "ranktune/ddp/parameters.hpp"

namespace ranktune::trainables::mlp {

namespace {

std::vector<std::size_t> padded_sizes(const std::vector<TensorShape>& tensors) {
    std::vector<std::size_t> sizes;
    for (const TensorShape& tensor : tensors) sizes.push_back(tensor.padded);
    return sizes;
}

/// Offset of each tensor when they are laid out in the order of a bucket plan: the last one first.
std::vector<std::size_t> places(const std::vector<TensorShape>& tensors) {
    std::vector<std::size_t> result(tensors.size());
    std::size_t begin = 0;
    for (std::size_t i = tensors.size(); i-- > 0; begin += tensors[i].padded) result[i] = begin;
    return result;
}

/// In place: from outputs of the network to probabilities.
void softmax(std::span<float> row) {
    const float largest = *std::ranges::max_element(row);
    float sum = 0.0F;
    for (float& value : row) sum += value = std::exp(value - largest);
    for (float& value : row) value /= sum;
}

/// Until a state is loaded.
data::Scale unknown_scale(std::size_t width) {
    return {std::vector<float>(width, 0.0F), std::vector<float>(width, 1.0F)};
}

std::size_t shard_limit(std::size_t count, int ranks) {
    const auto size = static_cast<std::size_t>(ranks);
    return (count + size - 1) / size;
}

} // namespace

Trainer::Trainer(std::shared_ptr<const data::Dataset> dataset, TrainerOptions options, ddp::Group& group)
    : Trainer(in_memory(std::move(dataset), options.seed, options.trial, group), options, group) {}

Trainer::Trainer(std::unique_ptr<TrainingData> data, TrainerOptions options, ddp::Group& group)
    : data_(std::move(data)),
      options_(std::move(options)),
      group_(group),
      tensors_(tensors_of(shape())),
      place_(places(tensors_)),
      input_scale_(unknown_scale(data_->shape().features)),
      output_scale_(unknown_scale(data_->shape().classification ? 0 : data_->shape().outputs)) {
    ddp::check_agreement(group_, data_->digest(), "the datasets");
    EngineOptions engine{shape(), options_.optimizer, 0, place_, work_rows(), options_.precision, options_.graphs};
    for (const TensorShape& tensor : tensors_) engine.size += tensor.padded;
    engine_ = options_.device != nullptr ? make_device_engine(std::move(engine), *options_.device)
                                         : make_host_engine(std::move(engine));
    initialise_parameters();
    if (options_.dropout > 0.0) masks_.resize(options_.hidden.size());
}

/// Made on the host, wherever the network is computed: all forms begin with the same numbers.
void Trainer::initialise_parameters() {
    base::LargeVector<float> flat(engine_->parameters().count());
    for (std::size_t i = 0; i < tensors_.size(); ++i)
        initialise(std::span(flat).subspan(place_[i], tensors_[i].size), shape().inputs_of(i / 2), options_.seed,
                   options_.trial, static_cast<std::uint32_t>(i));
    base::copy(flat, engine_->parameters());
    const base::Buffer parameters = engine_->parameters();
    ddp::share_parameters(group_, std::span(&parameters, 1));
}

Shape Trainer::shape() const {
    return {data_->shape().features, options_.hidden, data_->shape().outputs, options_.activation};
}

std::size_t Trainer::work_rows() const {
    constexpr std::size_t evaluated_at_once = 512;
    const std::size_t share = shard_limit(std::min(options_.batch, data_->shape().train), group_.size());
    const std::size_t trained = (share + options_.gradients.accumulate - 1) / options_.gradients.accumulate;
    return std::max(trained, std::min(evaluated_at_once, shard_limit(data_->shape().val, group_.size())));
}

void Trainer::make_reducer() {
    ddp::ReducerSettings settings{options_.bucket_floats,
                                  base::DType::float32,
                                  engine_->parameters().place(),
                                  options_.gradients.compression,
                                  {},
                                  options_.first_bucket_floats};
    for (const TensorShape& tensor : tensors_)
        settings.matrices.push_back(tensor.shape.size() == 2 ? ddp::Matrix{tensor.shape[0], tensor.shape[1]}
                                                             : ddp::Matrix{});
    reducer_ = std::make_unique<ddp::GradientReducer>(group_, padded_sizes(tensors_), std::move(settings));
    reducer_->load(feedback_);
    feedback_ = {};
    if (options_.gradients.metrics) meter_.watch(*reducer_);
    engine_->attach(*reducer_, group_);
}

void Trainer::start_epoch() {
    if (masks_epoch_ == position_.epoch) return;
    for (std::size_t layer = 0; layer < masks_.size(); ++layer)
        masks_[layer] = dropout_mask(options_.dropout, options_.seed, options_.trial, static_cast<std::uint32_t>(layer),
                                     position_.epoch);
    masks_epoch_ = position_.epoch;
}

double Trainer::learning_rate() const {
    if (!options_.cosine) return options_.lr;
    const double done =
        static_cast<double>(position_.epoch) / static_cast<double>(std::max<std::uint64_t>(options_.epochs, 1));
    return options_.lr * 0.5 * (1.0 + std::cos(std::numbers::pi * std::min(done, 1.0)));
}

double Trainer::compute_part(data::Range range, std::size_t part) {
    const std::optional<Ahead> ahead = std::exchange(ahead_, std::nullopt);
    const bool brought = ahead && ahead->range == range && ahead->part == part;
    if (brought && ahead->error) std::rethrow_exception(ahead->error);
    if (part == 0 && !brought) share_ = data_->share(position_.epoch, range);
    const Engine::Hooks hooks{[&](std::size_t tensor) { reducer_->ready(tensor); }, [&] { reducer_->poll(); },
                              [&](double loss) {
                                  if (!std::isfinite(loss))
                                      throw base::Error(std::string("loss is ") +
                                                        (std::isnan(loss) ? "NaN" : "infinite") + " at iteration " +
                                                        std::to_string(position_.epoch + 1));
                              }};
    const double loss =
        engine_->compute({rows_of(part), masks_, 1.0F / static_cast<float>(range.size()), brought}, hooks);
    bring_next(range, part);
    return loss;
}

Rows Trainer::rows_of(std::size_t part) const {
    const data::Range mine =
        data::shard({0, share_.places.size()}, static_cast<int>(part), static_cast<int>(options_.gradients.accumulate));
    return {share_.from, share_.places.subspan(mine.begin, mine.size()),
            share_.numbers.subspan(mine.begin, mine.size())};
}

/// Gives the engine the samples that follow, while it works on those of `part`. The next epoch has other masks.
void Trainer::bring_next(data::Range range, std::size_t part) {
    Ahead next{range, part + 1};
    const bool same_batch = next.part < options_.gradients.accumulate;
    if (!same_batch) next = {{range.end, std::min(range.end + options_.batch, data_->shape().train)}, 0};
    if (options_.device == nullptr || next.range.size() == 0) return;
    try {
        if (!same_batch) share_ = data_->share(position_.epoch, next.range);
        engine_->bring(rows_of(next.part), masks_);
    } catch (...) {
        next.error = std::current_exception();
    }
    ahead_ = std::move(next);
}

double Trainer::train_batch(data::Range range) {
    data_->prepare(group_);
    if (!reducer_) make_reducer();
    start_epoch();
    double loss = 0.0;
    const std::size_t last = options_.gradients.accumulate - 1;
    for (std::size_t part = 0; part < last; ++part)
        ddp::run_micro_step(*reducer_, [&] { loss += compute_part(range, part); });
    ddp::run_step(*reducer_, [&] { loss += compute_part(range, last); });
    if (options_.gradients.metrics) meter_.after_step(*reducer_);
    if (options_.gradients.clip_norm > 0.0) reducer_->clip_norm(options_.gradients.clip_norm);
    engine_->update(learning_rate());
    position_.sample = range.end;
    return loss;
}

double Trainer::train_epoch() {
    const data::Batches batches(data_->shape().train, options_.batch);
    double loss = 0.0;
    for (std::size_t i = 0; i < batches.size(); ++i) loss += train_batch(batches[i]);
    position_ = {position_.epoch + 1, 0};
    reducer_->settle(); // a checkpoint may follow
    return group_.reduced(loss) / static_cast<double>(data_->shape().train);
}

Validation Trainer::validate() {
    ahead_.reset();
    data_->prepare(group_);
    const data::Range mine = data::shard({0, data_->shape().val}, group_.rank(), group_.size());
    return data_->shape().classification ? validate_classes(mine) : validate_targets(mine);
}

Validation Trainer::validate_classes(data::Range mine) {
    double sums[2] = {0.0, 0.0};
    data_->validate(mine, engine_->rows(), [&](const Samples& some) {
        const std::span<float> outputs = engine_->outputs(some.x);
        const LossSums part = cross_entropy(outputs.data(), some.classes, data_->shape().outputs, false, 0.0F);
        sums[0] += part.loss;
        sums[1] += static_cast<double>(part.correct);
    });
    group_.all_reduce(sums);
    const double count = static_cast<double>(data_->shape().val);
    return {.loss = sums[0] / count, .accuracy = sums[1] / count};
}

Validation Trainer::validate_targets(data::Range mine) {
    const std::size_t width = data_->shape().outputs;
    std::vector<double> squares(width, 0.0); // per target
    data_->validate(mine, engine_->rows(), [&](const Samples& some) {
        const std::span<float> outputs = engine_->outputs(some.x);
        for (std::size_t i = 0; i < some.targets.size(); ++i) {
            const double difference = static_cast<double>(outputs[i]) - static_cast<double>(some.targets[i]);
            squares[i % width] += difference * difference;
        }
    });
    group_.all_reduce(squares);
    const double values = static_cast<double>(data_->shape().val * width);
    double in_file_units = 0.0;
    for (std::size_t column = 0; column < width; ++column) {
        const double factor = static_cast<double>(data_->y_scale().factor[column]);
        in_file_units += squares[column] / (factor * factor);
    }
    const double total = std::accumulate(squares.begin(), squares.end(), 0.0);
    return {
        .loss = total / values, .rmse = std::sqrt(in_file_units / values), .r2 = 1.0 - total / data_->val_deviation()};
}

void Trainer::predict(std::span<const float> inputs, std::span<float> outputs) {
    ahead_.reset();
    const std::size_t features = data_->shape().features;
    const std::size_t width = data_->shape().outputs;
    const std::size_t rows = inputs.size() / features;
    std::vector<float> scaled(inputs.begin(), inputs.end());
    for (std::size_t i = 0; i < scaled.size(); ++i)
        scaled[i] = (scaled[i] - input_scale_.shift[i % features]) * input_scale_.factor[i % features];
    for (std::size_t begin = 0; begin < rows; begin += engine_->rows()) {
        const std::size_t count = std::min(engine_->rows(), rows - begin);
        std::ranges::copy(engine_->outputs(std::span(scaled).subspan(begin * features, count * features)),
                          outputs.subspan(begin * width).begin());
    }
    if (data_->shape().classification) {
        for (std::size_t row = 0; row < rows; ++row) softmax(outputs.subspan(row * width, width));
        return;
    }
    for (std::size_t i = 0; i < outputs.size(); ++i)
        outputs[i] = outputs[i] / output_scale_.factor[i % width] + output_scale_.shift[i % width];
}

void Trainer::save(study::StateSink& sink) const {
    engine_->settle();
    for (std::size_t i = 0; i < tensors_.size(); ++i)
        sink.put(tensors_[i].name, part(engine_->parameters(), i), tensors_[i].shape);
    for (const Engine::Moment& moment : engine_->moments())
        for (std::size_t i = 0; i < tensors_.size(); ++i)
            sink.put("optimizer." + moment.name + "." + tensors_[i].name, part(moment.values, i), tensors_[i].shape);
    const auto put_scale = [&](const std::string& name, const data::Scale& own, const data::Scale& loaded) {
        const data::Scale& scale = own.shift.empty() ? loaded : own; // none of its own: no step since `load`
        sink.put<float>(name + ".shift", scale.shift);
        sink.put<float>(name + ".factor", scale.factor);
    };
    put_scale("input", data_->x_scale(), input_scale_);
    if (!data_->shape().classification) put_scale("output", data_->y_scale(), output_scale_);
    const std::uint64_t counters[] = {engine_->steps(), position_.epoch, position_.sample, options_.bucket_floats,
                                      options_.first_bucket_floats};
    sink.put<std::uint64_t>("trainer.counters", counters);
    if (reducer_) return reducer_->save(sink);
    for (const study::MemoryState::Tensor& tensor : feedback_.stored_tensors())
        sink.tensor(tensor.info, tensor.values());
}

void Trainer::load(study::StateSource& source) {
    for (std::size_t i = 0; i < tensors_.size(); ++i)
        source.get(tensors_[i].name, part(engine_->parameters(), i), tensors_[i].shape);
    const std::vector<study::TensorInfo> saved = source.tensors();
    for (const Engine::Moment& moment : engine_->moments())
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
            const std::string name = "optimizer." + moment.name + "." + tensors_[i].name;
            // A momentum of zero, which may have been another one's, keeps nothing: it begins at zero.
            if (std::ranges::find(saved, name, &study::TensorInfo::name) == saved.end()) continue;
            source.get(name, part(moment.values, i), tensors_[i].shape);
        }
    load_counters(source, saved);
    const auto load_scale = [&](const std::string& name, data::Scale& scale) {
        source.get<float>(name + ".shift", scale.shift);
        source.get<float>(name + ".factor", scale.factor);
    };
    load_scale("input", input_scale_);
    if (!data_->shape().classification) load_scale("output", output_scale_);
    ahead_.reset();
    reducer_.reset();
    feedback_ = {};
    for (const study::TensorInfo& info : saved)
        if (options_.gradients.compression.feeds_back() && info.name.starts_with("gradients."))
            source.tensor(info, base::Buffer::of_bytes(feedback_.add(info), info.type));
}

void Trainer::load_counters(study::StateSource& source, const std::vector<study::TensorInfo>& saved) {
    const auto found = std::ranges::find(saved, "trainer.counters", &study::TensorInfo::name);
    const bool older = found != saved.end() && found->shape == std::vector<std::uint64_t>{4};
    std::vector<std::uint64_t> counters(older ? 4 : 5);
    source.get<std::uint64_t>("trainer.counters", counters);
    counters.resize(5);
    if (counters[3] == 0) throw base::FormatError("the checkpoint's gradient buckets have no size");
    engine_->set_steps(counters[0]);
    position_ = {counters[1], counters[2]};
    // The plan affects rounding: keep that of the checkpoint, unless the study says another one.
    if (options_.gradients.bucket_bytes > 0) return;
    options_.bucket_floats = counters[3];
    options_.first_bucket_floats = counters[4];
}

std::vector<std::pair<std::string, double>> Trainer::take_comm_metrics() {
    if (!options_.gradients.metrics || !reducer_) return {};
    return meter_.take(*reducer_);
}

} // namespace ranktune::trainables::mlp
