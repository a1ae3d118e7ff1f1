// SPDX-License-Identifier: Apache-2.0
#include "trainables/mlp/trainer.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>
#include <string>
#include <utility>

#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"
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

std::uint64_t dataset_digest(const data::Dataset& dataset) {
    base::Digest digest;
    for (const data::Split* split : {&dataset.train, &dataset.val}) {
        digest.add(std::as_bytes(std::span(split->x)));
        digest.add(std::as_bytes(std::span(split->classes))).add(std::as_bytes(std::span(split->targets)));
    }
    return digest.value();
}

/// Sum over samples and targets of the squared distance from the target's mean.
double squared_deviation(std::span<const float> targets, std::size_t width) {
    const std::size_t samples = targets.size() / width;
    double total = 0.0;
    for (std::size_t column = 0; column < width; ++column) {
        double sum = 0.0;
        for (std::size_t i = column; i < targets.size(); i += width) sum += static_cast<double>(targets[i]);
        const double mean = sum / static_cast<double>(samples);
        for (std::size_t i = column; i < targets.size(); i += width) {
            const double difference = static_cast<double>(targets[i]) - mean;
            total += difference * difference;
        }
    }
    return total;
}

std::size_t shard_limit(std::size_t count, int ranks) {
    const auto size = static_cast<std::size_t>(ranks);
    return (count + size - 1) / size;
}

} // namespace

Trainer::Trainer(std::shared_ptr<const data::Dataset> dataset, TrainerOptions options, ddp::Group& group)
    : dataset_(std::move(dataset)),
      options_(std::move(options)),
      group_(group),
      tensors_(tensors_of(shape())),
      place_(places(tensors_)),
      flat_(std::accumulate(tensors_.begin(), tensors_.end(), std::size_t{0},
                            [](std::size_t sum, const TensorShape& tensor) { return sum + tensor.padded; })),
      parameters_(parts(flat_)),
      network_(shape(), parameters_, work_rows()),
      optimizer_(options_.optimizer, flat_.size()) {
    ddp::check_agreement(group_, dataset_digest(*dataset_), "the datasets");
    for (std::size_t i = 0; i < tensors_.size(); ++i)
        initialise(parameters_[i], shape().inputs_of(i / 2), options_.seed, options_.trial,
                   static_cast<std::uint32_t>(i));
    group_.broadcast(flat_);
    if (options_.dropout > 0.0) masks_.resize(options_.hidden.size());
    const std::size_t mine = shard_limit(std::min(options_.batch, dataset_->train.count), group_.size());
    if (dataset_->classification) {
        batch_classes_.resize(mine);
    } else {
        batch_targets_.resize(mine * dataset_->outputs);
        target_deviation_ = squared_deviation(dataset_->val.targets, dataset_->outputs);
    }
}

Shape Trainer::shape() const { return {dataset_->features, options_.hidden, dataset_->outputs, options_.activation}; }

std::size_t Trainer::work_rows() const {
    constexpr std::size_t evaluated_at_once = 512;
    const std::size_t trained = shard_limit(std::min(options_.batch, dataset_->train.count), group_.size());
    return std::max(trained, std::min(evaluated_at_once, shard_limit(dataset_->val.count, group_.size())));
}

std::vector<std::span<float>> Trainer::parts(std::span<float> flat) const {
    std::vector<std::span<float>> result;
    for (std::size_t i = 0; i < tensors_.size(); ++i) result.push_back(part(flat, i));
    return result;
}

void Trainer::make_reducer() {
    reducer_ = std::make_unique<ddp::GradientReducer>(group_, padded_sizes(tensors_), options_.bucket_floats);
    reducer_->set_timeline(timeline_);
    network_.set_gradients(parts(reducer_->gradients()));
}

void Trainer::start_epoch() {
    if (order_epoch_ == position_.epoch) return;
    data::shuffle_epoch(order_, dataset_->train.count, options_.seed, options_.trial, position_.epoch);
    for (std::size_t layer = 0; layer < masks_.size(); ++layer)
        masks_[layer] = dropout_mask(options_.dropout, options_.seed, options_.trial, static_cast<std::uint32_t>(layer),
                                     position_.epoch);
    order_epoch_ = position_.epoch;
}

void Trainer::gather(const data::Split& split, std::span<const std::uint32_t> samples) {
    const std::size_t features = dataset_->features;
    float* row = network_.inputs().data();
    for (const std::uint32_t sample : samples) {
        std::memcpy(row, split.x.data() + sample * features, features * sizeof(float));
        row += features;
    }
}

LossSums Trainer::loss_of_batch(std::span<float> outputs, const data::Split& split,
                                std::span<const std::uint32_t> samples, float factor) {
    const std::size_t width = dataset_->outputs;
    if (dataset_->classification) {
        for (std::size_t i = 0; i < samples.size(); ++i) batch_classes_[i] = split.classes[samples[i]];
        return cross_entropy(outputs.data(), std::span(batch_classes_).first(samples.size()), width, true, factor);
    }
    for (std::size_t i = 0; i < samples.size(); ++i)
        std::memcpy(batch_targets_.data() + i * width, split.targets.data() + samples[i] * width,
                    width * sizeof(float));
    return squared_error(outputs.data(), batch_targets_.data(), samples.size(), width, true, factor);
}

double Trainer::learning_rate() const {
    if (!options_.cosine) return options_.lr;
    const double done =
        static_cast<double>(position_.epoch) / static_cast<double>(std::max<std::uint64_t>(options_.epochs, 1));
    return options_.lr * 0.5 * (1.0 + std::cos(std::numbers::pi * std::min(done, 1.0)));
}

double Trainer::train_batch(data::Range range) {
    if (!reducer_) make_reducer();
    start_epoch();
    const data::Range mine = data::shard(range, group_.rank(), group_.size());
    const std::span<const std::uint32_t> samples = std::span(order_).subspan(mine.begin, mine.size());
    double loss = 0.0;
    ddp::run_step(*reducer_, [&] {
        begin_phase();
        gather(dataset_->train, samples);
        const std::span<float> outputs = network_.forward(samples.size(), masks_, samples);
        end_phase("forward");
        const float factor = 1.0F / static_cast<float>(range.size());
        loss = loss_of_batch(outputs, dataset_->train, samples, factor).loss;
        if (!std::isfinite(loss))
            throw base::Error(std::string("loss is ") + (std::isnan(loss) ? "NaN" : "infinite") + " at iteration " +
                              std::to_string(position_.epoch + 1));
        network_.backward(samples.size(), masks_,
                          {[&](std::size_t tensor) { reducer_->ready(tensor); }, [&] { reducer_->poll(); }});
        end_phase("backward");
    });
    begin_phase();
    optimizer_.update(flat_, reducer_->gradients(), learning_rate());
    end_phase("update");
    position_.sample = range.end;
    return loss;
}

double Trainer::train_epoch() {
    const data::Batches batches(dataset_->train.count, options_.batch);
    double loss = 0.0;
    for (std::size_t i = 0; i < batches.size(); ++i) loss += train_batch(batches[i]);
    position_ = {position_.epoch + 1, 0};
    return group_.reduced(loss) / static_cast<double>(dataset_->train.count);
}

Validation Trainer::validate() {
    const data::Range mine = data::shard({0, dataset_->val.count}, group_.rank(), group_.size());
    return dataset_->classification ? validate_classes(mine) : validate_targets(mine);
}

Validation Trainer::validate_classes(data::Range mine) {
    const data::Split& val = dataset_->val;
    double sums[2] = {0.0, 0.0};
    for (std::size_t begin = mine.begin; begin < mine.end; begin += network_.rows()) {
        const std::size_t count = std::min(network_.rows(), mine.end - begin);
        std::memcpy(network_.inputs().data(), val.x.data() + begin * dataset_->features,
                    count * dataset_->features * sizeof(float));
        const std::span<float> outputs = network_.forward(count, {}, {});
        const LossSums part =
            cross_entropy(outputs.data(), std::span(val.classes).subspan(begin, count), dataset_->outputs, false, 0.0F);
        sums[0] += part.loss;
        sums[1] += static_cast<double>(part.correct);
    }
    group_.all_reduce(sums);
    const double count = static_cast<double>(val.count);
    return {.loss = sums[0] / count, .accuracy = sums[1] / count};
}

Validation Trainer::validate_targets(data::Range mine) {
    const data::Split& val = dataset_->val;
    const std::size_t width = dataset_->outputs;
    std::vector<double> squares(width, 0.0); // per target
    for (std::size_t begin = mine.begin; begin < mine.end; begin += network_.rows()) {
        const std::size_t count = std::min(network_.rows(), mine.end - begin);
        std::memcpy(network_.inputs().data(), val.x.data() + begin * dataset_->features,
                    count * dataset_->features * sizeof(float));
        const std::span<float> outputs = network_.forward(count, {}, {});
        for (std::size_t i = 0; i < count * width; ++i) {
            const double difference =
                static_cast<double>(outputs[i]) - static_cast<double>(val.targets[begin * width + i]);
            squares[i % width] += difference * difference;
        }
    }
    group_.all_reduce(squares);
    const double values = static_cast<double>(val.count * width);
    double in_file_units = 0.0;
    for (std::size_t column = 0; column < width; ++column) {
        const double factor = static_cast<double>(dataset_->y_scale.factor[column]);
        in_file_units += squares[column] / (factor * factor);
    }
    const double total = std::accumulate(squares.begin(), squares.end(), 0.0);
    return {.loss = total / values, .rmse = std::sqrt(in_file_units / values), .r2 = 1.0 - total / target_deviation_};
}

void Trainer::save(study::StateSink& sink) const {
    for (std::size_t i = 0; i < tensors_.size(); ++i)
        sink.put<float>(tensors_[i].name, parameters_[i], tensors_[i].shape);
    for (const Optimizer::Moment& moment : optimizer_.moments())
        for (std::size_t i = 0; i < tensors_.size(); ++i)
            sink.put<float>("optimizer." + moment.name + "." + tensors_[i].name, part(std::span(moment.values), i),
                            tensors_[i].shape);
    sink.put<float>("input.shift", dataset_->x_scale.shift);
    sink.put<float>("input.factor", dataset_->x_scale.factor);
    if (!dataset_->classification) {
        sink.put<float>("output.shift", dataset_->y_scale.shift);
        sink.put<float>("output.factor", dataset_->y_scale.factor);
    }
    const std::uint64_t counters[] = {optimizer_.steps(), position_.epoch, position_.sample, options_.bucket_floats};
    sink.put<std::uint64_t>("trainer.counters", counters);
}

void Trainer::load(study::StateSource& source) {
    for (std::size_t i = 0; i < tensors_.size(); ++i)
        source.get<float>(tensors_[i].name, parameters_[i], tensors_[i].shape);
    const std::vector<study::TensorInfo> saved = source.tensors();
    for (Optimizer::Moment& moment : optimizer_.moments())
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
            const std::string name = "optimizer." + moment.name + "." + tensors_[i].name;
            // A momentum of zero, which may have been another one's, keeps nothing: it begins at zero.
            if (std::ranges::find(saved, name, &study::TensorInfo::name) == saved.end()) continue;
            source.get<float>(name, part(std::span(moment.values), i), tensors_[i].shape);
        }
    std::uint64_t counters[4] = {};
    source.get<std::uint64_t>("trainer.counters", counters);
    if (counters[3] == 0) throw base::FormatError("the checkpoint's gradient buckets have no size");
    options_.bucket_floats = counters[3]; // the plan affects rounding: keep that of the checkpoint
    reducer_.reset();
    optimizer_.set_steps(counters[0]);
    position_ = {counters[1], counters[2]};
}

void Trainer::set_timeline(ddp::Timeline* timeline) {
    timeline_ = timeline;
    if (reducer_) reducer_->set_timeline(timeline);
}

void Trainer::begin_phase() {
    if (timeline_ != nullptr) phase_begin_ = timeline_->now();
}

void Trainer::end_phase(const char* name) {
    if (timeline_ == nullptr) return;
    const double now = timeline_->now();
    timeline_->computed(name, phase_begin_, now);
    phase_begin_ = now;
}

} // namespace ranktune::trainables::mlp
