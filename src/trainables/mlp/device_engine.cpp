// SPDX-License-Identifier: Apache-2.0
// The network on a GPU. All work of a step is issued at once; the host waits for its loss alone, and only when the
// backward pass has been issued, too.

#include <algorithm>
#include <cstring>
#include <utility>

#include "ddp/collective.hpp"
#include "ddp/collective/core_wait.hpp"
#include "ddp/gradients/device_sums.hpp"
#include "device/compute.hpp"
#include "device/device.hpp"
#include "trainables/mlp/engine.hpp"
#include "trainables/mlp/step_graphs.hpp"

namespace ranktune::trainables::mlp {

namespace {

/// Floats (or numbers of the same size) in memory of a device.
template <class T>
class DeviceArray {
  public:
    DeviceArray() = default;
    DeviceArray(device::Accelerator& on, std::size_t count)
        : memory_(base::allocate(base::Place(on), count * sizeof(T))) {}
    [[nodiscard]] T* data() const { return static_cast<T*>(memory_.get()); }

  private:
    std::shared_ptr<void> memory_;
};

/// Pinned host memory.
template <class T>
class PinnedArray {
  public:
    PinnedArray(device::Accelerator& on, std::size_t count) : memory_(on.allocate_pinned(count * sizeof(T))) {}
    [[nodiscard]] T* data() const { return static_cast<T*>(memory_.get()); }

  private:
    std::shared_ptr<void> memory_;
};

/// Numbers of a device, and the same in bfloat16 where products want that.
struct Numbers {
    Numbers() = default;
    Numbers(device::Accelerator& on, std::size_t count, device::Precision precision) : wide(on, count) {
        if (precision == device::Precision::bf16) narrow = DeviceArray<base::BFloat16>(on, count);
    }
    DeviceArray<float> wide;
    DeviceArray<base::BFloat16> narrow;
};

/// A matrix within Numbers, as a factor of a product.
struct Factor {
    const Numbers& numbers;
    std::size_t begin = 0;
    std::size_t stride = 0;
};

device::Activation activation_of(const Shape& shape) {
    return shape.activation == Activation::relu ? device::Activation::relu : device::Activation::tanh;
}

class DeviceEngine final : public Engine {
  public:
    DeviceEngine(EngineOptions options, device::Accelerator& on)
        : options_(std::move(options)),
          on_(on),
          stream_(on.compute_stream()),
          compute_(on.make_compute(on.compute_stream())),
          loss_known_(on.make_event()),
          flat_(on, options_.size, options_.precision),
          dropout_(on, std::max<std::size_t>(options_.shape.hidden.size(), 1)),
          samples_(on, options_.rows),
          answers_(on, options_.rows * std::max<std::size_t>(options_.shape.outputs, 1)),
          losses_(on, options_.rows),
          loss_(on, 1),
          dropout_pinned_(on, std::max<std::size_t>(options_.shape.hidden.size(), 1)),
          rows_pinned_(on, options_.rows * options_.shape.features),
          samples_pinned_(on, options_.rows),
          answers_pinned_(on, options_.rows * std::max<std::size_t>(options_.shape.outputs, 1)),
          outputs_pinned_(on, options_.rows * options_.shape.outputs),
          loss_pinned_(on, 1) {
        make_work_memory();
        make_moments();
    }

    [[nodiscard]] base::Buffer parameters() override { return flat(flat_.wide); }
    [[nodiscard]] std::vector<Moment> moments() override {
        std::vector<Moment> all;
        for (const auto& [name, values] : moments_) all.push_back({name, flat(values)});
        return all;
    }
    [[nodiscard]] std::uint64_t steps() const override { return steps_; }
    void set_steps(std::uint64_t steps) override { steps_ = steps; }

    void attach(ddp::GradientReducer& reducer, ddp::Group& group) override {
        gradients_ = static_cast<float*>(reducer.gradients_buffer().address());
        sums_ = &ddp::Collective::of(group).sums_on(on_);
        std::vector<bool> closes(options_.places.size()); // a bucket, of which other ranks have a part
        closes[0] = true;
        for (const ddp::BucketPlan::Bucket& bucket : reducer.plan().buckets)
            if (group.size() > 1) closes[bucket.slots.back().tensor] = true;
        graphs_.reset(std::move(closes));
    }

    double compute(const Batch& batch, const Hooks& hooks) override {
        const std::size_t count = batch.rows.places.size();
        gather(batch);
        const StepMarks marks{[&] {
                                  if (count > 0) stream_.record(*loss_known_);
                              },
                              [&](std::size_t tensor) {
                                  hooks.ready(tensor);
                                  hooks.poll();
                              }};
        const auto issue = [&](const StepMarks& at) { issue_passes(batch, at); };
        if (options_.graphs && count > 0)
            graphs_.run({count, batch.factor, !batch.masks.empty()}, issue, marks);
        else
            issue(marks);
        if (count == 0) return hooks.check(0.0), 0.0;
        await([&] { return loss_known_->reached(); });
        hooks.check(*loss_pinned_.data());
        return *loss_pinned_.data();
    }

    void update(double lr) override {
        ++steps_;
        const OptimizerOptions& o = options_.optimizer;
        if (o.kind == OptimizerOptions::Kind::sgd) {
            compute_->sgd(flat_.wide.data(), gradients_, moments_.empty() ? nullptr : moments_[0].second.data(),
                          options_.size,
                          {static_cast<float>(lr), static_cast<float>(o.momentum), static_cast<float>(o.weight_decay),
                           o.nesterov});
            return;
        }
        const AdamConstants c = adam_constants(o, steps_, lr);
        compute_->adam(
            flat_.wide.data(), gradients_, moments_[0].second.data(), moments_[1].second.data(), options_.size,
            {c.beta1, c.beta2, c.step_size, c.root_correction, c.epsilon, c.gradient_decay, c.parameter_factor});
    }

    [[nodiscard]] std::size_t rows() const override { return options_.rows; }

    [[nodiscard]] std::span<float> outputs(std::span<const float> inputs) override {
        const std::size_t count = inputs.size() / options_.shape.features;
        await([&] { return loss_known_->reached(); });
        std::memcpy(rows_pinned_.data(), inputs.data(), inputs.size_bytes());
        stream_.upload(outputs_[0].wide.data(), rows_pinned_.data(), inputs.size_bytes());
        forward(count, false);
        const std::size_t numbers = count * options_.shape.outputs;
        stream_.download(outputs_pinned_.data(), outputs_.back().wide.data(), numbers * sizeof(float));
        settle();
        return {outputs_pinned_.data(), numbers};
    }

    [[nodiscard]] Replays replays() const override { return {graphs_.replays(), graphs_.refusal()}; }

    void settle() override {
        await([&] { return stream_.idle(); });
    }

  private:
    [[nodiscard]] base::Buffer flat(const DeviceArray<float>& values) {
        return {values.data(), options_.size, base::DType::float32, base::Place(on_)};
    }
    [[nodiscard]] const float* bias(std::size_t layer) const {
        return flat_.wide.data() + options_.places[2 * layer + 1];
    }
    [[nodiscard]] Factor weight(std::size_t layer) const {
        return {flat_, options_.places[2 * layer], options_.shape.inputs_of(layer)};
    }
    [[nodiscard]] float* gradient(std::size_t tensor) const { return gradients_ + options_.places[tensor]; }

    [[nodiscard]] Numbers numbers(std::size_t count) const { return {on_, count, options_.precision}; }

    void make_work_memory() {
        const Shape& shape = options_.shape;
        std::size_t widest = 0;
        outputs_.push_back(numbers(options_.rows * shape.features));
        for (std::size_t layer = 0; layer < shape.layers(); ++layer) {
            outputs_.push_back(numbers(options_.rows * shape.outputs_of(layer)));
            if (layer > 0) widest = std::max(widest, shape.inputs_of(layer));
        }
        for (auto& delta : delta_) delta = numbers(options_.rows * widest);
        stream_.fill_zero(flat_.wide.data(), options_.size * sizeof(float)); // the padding stays zero
    }

    /// As the host's optimizer has them.
    void make_moments() {
        const Optimizer of_host(options_.optimizer, 0);
        for (const Optimizer::Moment& moment : of_host.moments()) {
            moments_.emplace_back(moment.name, DeviceArray<float>(on_, options_.size));
            stream_.fill_zero(moments_.back().second.data(), options_.size * sizeof(float));
        }
    }

    /// Waits for the device, and looks after the group meanwhile.
    template <class Done>
    void await(Done&& done) {
        wait_.until(done, [&] {
            if (sums_ != nullptr) sums_->look();
        });
    }

    /// Puts the rows, their samples' numbers, classes or targets, and the masks where the device reads them.
    void gather(const Batch& batch) {
        const std::size_t features = options_.shape.features;
        const std::size_t width = options_.shape.outputs;
        await([&] { return loss_known_->reached(); }); // the last copies have read the pinned memory
        const auto& [from, places, samples] = batch.rows;
        for (std::size_t i = 0; i < places.size(); ++i) {
            const std::size_t place = places[i];
            samples_pinned_.data()[i] = samples[i];
            std::memcpy(rows_pinned_.data() + i * features, from.x.data() + place * features, features * sizeof(float));
            if (!from.classes.empty())
                std::memcpy(answers_pinned_.data() + i, &from.classes[place], sizeof(std::int32_t));
            else
                std::memcpy(answers_pinned_.data() + i * width, from.targets.data() + place * width,
                            width * sizeof(float));
        }
        for (std::size_t layer = 0; layer < batch.masks.size(); ++layer) {
            const DropoutMask& mask = batch.masks[layer];
            dropout_pinned_.data()[layer] = {mask.key[0], mask.key[1], mask.threshold, mask.scale()};
        }
    }

    /// Both passes over what was gathered; nothing else.
    void issue_passes(const Batch& batch, const StepMarks& at) {
        const std::size_t count = batch.rows.places.size();
        if (count > 0) {
            const std::size_t answers = batch.rows.from.classes.empty() ? options_.shape.outputs : 1;
            stream_.upload(outputs_[0].wide.data(), rows_pinned_.data(),
                           count * options_.shape.features * sizeof(float));
            stream_.upload(samples_.data(), samples_pinned_.data(), count * sizeof(std::uint32_t));
            stream_.upload(answers_.data(), answers_pinned_.data(), count * answers * sizeof(float));
            stream_.upload(dropout_.data(), dropout_pinned_.data(), batch.masks.size() * sizeof(device::Dropout));
            forward(count, !batch.masks.empty());
            issue_loss(batch);
        }
        at.loss();
        backward(count, batch.masks, at);
    }

    void multiply(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k, const Factor& a,
                  const Factor& b, device::Block<float> c) {
        if (options_.precision == device::Precision::bf16)
            compute_->multiply(transpose_a, transpose_b, m, n, k, {a.numbers.narrow.data() + a.begin, a.stride},
                               {b.numbers.narrow.data() + b.begin, b.stride}, c);
        else
            compute_->multiply(transpose_a, transpose_b, m, n, k, {a.numbers.wide.data() + a.begin, a.stride},
                               {b.numbers.wide.data() + b.begin, b.stride}, c, options_.precision);
    }
    void narrow(const Numbers& numbers, std::size_t count) {
        if (numbers.narrow.data() != nullptr)
            stream_.narrow(numbers.narrow.data(), base::DType::bfloat16, numbers.wide.data(), count);
    }

    void forward(std::size_t count, bool dropout) {
        const Shape& shape = options_.shape;
        const std::size_t last = shape.layers() - 1;
        narrow(flat_, options_.size);
        narrow(outputs_[0], count * shape.features);
        for (std::size_t layer = 0; layer <= last; ++layer) {
            const std::size_t in = shape.inputs_of(layer);
            const std::size_t out = shape.outputs_of(layer);
            const Numbers& result = outputs_[layer + 1];
            multiply(false, true, count, out, in, {outputs_[layer], 0, in}, weight(layer), {result.wide.data(), out});
            const bool hidden = layer < last;
            compute_->activate(hidden ? activation_of(shape) : device::Activation::none, result.wide.data(),
                               bias(layer), count, out, dropout && hidden ? dropout_.data() + layer : nullptr,
                               samples_.data(), hidden ? result.narrow.data() : nullptr);
        }
    }

    void issue_loss(const Batch& batch) {
        const std::size_t count = batch.rows.places.size();
        const std::size_t width = options_.shape.outputs;
        if (!batch.rows.from.classes.empty())
            compute_->cross_entropy(outputs_.back().wide.data(), reinterpret_cast<const std::int32_t*>(answers_.data()),
                                    count, width, batch.factor, losses_.data());
        else
            compute_->squared_error(outputs_.back().wide.data(), answers_.data(), count, width, batch.factor,
                                    losses_.data());
        compute_->total(losses_.data(), count, loss_.data());
        stream_.download(loss_pinned_.data(), loss_.data(), sizeof(double));
    }

    void weight_gradient(std::size_t layer, std::size_t count, const Numbers& delta) {
        const std::size_t in = options_.shape.inputs_of(layer);
        const std::size_t out = options_.shape.outputs_of(layer);
        if (count == 0)
            stream_.fill_zero(gradient(2 * layer), in * out * sizeof(float));
        else
            multiply(true, false, out, in, count, {delta, 0, out}, {outputs_[layer], 0, in}, {gradient(2 * layer), in});
    }

    void backward(std::size_t count, std::span<const DropoutMask> masks, const StepMarks& at) {
        const Shape& shape = options_.shape;
        const std::size_t last = shape.layers() - 1;
        const Numbers* delta = &outputs_.back();
        compute_->activate_backward(device::Activation::none, delta->wide.data(), nullptr, 1.0F, gradient(2 * last + 1),
                                    count, shape.outputs, delta->narrow.data());
        at.gradient(2 * last + 1);
        for (std::size_t layer = last + 1; layer-- > 0;) {
            weight_gradient(layer, count, *delta);
            at.gradient(2 * layer);
            if (layer == 0) break;
            const std::size_t in = shape.inputs_of(layer);
            const std::size_t out = shape.outputs_of(layer);
            const Numbers& below = delta_[layer % 2];
            multiply(false, false, count, in, out, {*delta, 0, out}, weight(layer), {below.wide.data(), in});
            compute_->activate_backward(activation_of(shape), below.wide.data(), outputs_[layer].wide.data(),
                                        masks.empty() ? 1.0F : masks[layer - 1].scale(), gradient(2 * layer - 1), count,
                                        in, below.narrow.data());
            at.gradient(2 * layer - 1);
            delta = &below;
        }
    }

    EngineOptions options_;
    device::Accelerator& on_;
    device::Stream& stream_;
    std::unique_ptr<device::Compute> compute_;
    std::unique_ptr<device::Event> loss_known_; ///< the loss is in pinned memory, and the inputs there have been read
    Numbers flat_;                              ///< in bfloat16 as of the last forward pass
    std::vector<std::pair<std::string, DeviceArray<float>>> moments_;
    std::vector<Numbers> outputs_; ///< [0] inputs, [i + 1] outputs of layer i
    Numbers delta_[2];
    DeviceArray<device::Dropout>
        dropout_; ///< of the hidden layers; in device memory, because it changes with the epoch
    DeviceArray<std::uint32_t> samples_;
    DeviceArray<float> answers_; ///< classes (as integers) or targets
    DeviceArray<double> losses_; ///< of the rows
    DeviceArray<double> loss_;
    PinnedArray<device::Dropout> dropout_pinned_;
    PinnedArray<float> rows_pinned_;
    PinnedArray<std::uint32_t> samples_pinned_;
    PinnedArray<float> answers_pinned_;
    PinnedArray<float> outputs_pinned_;
    PinnedArray<double> loss_pinned_;
    float* gradients_ = nullptr; ///< of the reducer
    ddp::DeviceSums* sums_ = nullptr;
    ddp::CoreWait wait_;
    std::uint64_t steps_ = 0;
    StepGraphs graphs_{stream_};
};

} // namespace

std::unique_ptr<Engine> make_device_engine(EngineOptions options, device::Accelerator& on) {
    return std::make_unique<DeviceEngine>(std::move(options), on);
}

} // namespace ranktune::trainables::mlp
