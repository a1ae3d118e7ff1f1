// SPDX-License-Identifier: Apache-2.0
// The network on a GPU. All work of a step is issued at once; the host waits for its loss alone, and only when the
// backward pass has been issued, too. The samples of the next batch come over meanwhile, on the stream for copies.

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

/// A matrix as a factor of a product.
struct Factor {
    const float* wide = nullptr;
    const base::BFloat16* narrow = nullptr;
    std::size_t stride = 0;
};
Factor factor_of(const Numbers& numbers, std::size_t begin, std::size_t stride) {
    const base::BFloat16* const narrow = numbers.narrow.data();
    return {numbers.wide.data() + begin, narrow == nullptr ? nullptr : narrow + begin, stride};
}

/// What a step reads of its batch, in one block that is copied at once. There are two: one is filled while a step reads
/// the other.
struct Feed {
    Feed(device::Accelerator& on, std::size_t bytes)
        : here(on, bytes), there(on, bytes), arrived(on.make_event()), used(on.make_event()) {}
    PinnedArray<std::byte> here;
    DeviceArray<std::byte> there;
    std::unique_ptr<device::Event> arrived; ///< `there` has what was `here`
    std::unique_ptr<device::Event> used;    ///< by the work that read it
};

/// The places in a Feed: first rows, [count, features], which products read.
struct FeedPlaces {
    FeedPlaces(const Shape& shape, std::size_t count)
        : answers(count * shape.features * sizeof(float)),
          samples(answers + count * std::max<std::size_t>(shape.outputs, 1) * sizeof(float)),
          dropout(samples + count * sizeof(std::uint32_t)),
          end(dropout + shape.hidden.size() * sizeof(device::Dropout)) {}
    std::size_t answers; ///< classes (as integers) or targets
    std::size_t samples; ///< their numbers
    std::size_t dropout; ///< of the hidden layers; in memory, because it changes with the epoch
    std::size_t end;
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
          feeds_{Feed(on, FeedPlaces(options_.shape, options_.rows).end),
                 Feed(on, FeedPlaces(options_.shape, options_.rows).end)},
          losses_(on, options_.rows),
          loss_(on, 1),
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

    void bring(const Rows& rows, std::span<const DropoutMask> masks) override {
        const std::size_t count = rows.places.size();
        if (count == 0) return;
        std::byte* const block = next_feed();
        gather(rows, masks, block);
        send_feed(FeedPlaces(options_.shape, count).end);
    }

    double compute(const Batch& batch, const Hooks& hooks) override {
        const std::size_t count = batch.rows.places.size();
        if (!batch.brought) bring(batch.rows, batch.masks);
        await([&] { return loss_known_->reached(); }); // then its place is free
        if (count > 0) stream_.wait(*feeds_[feed_].arrived);
        const StepMarks marks{[&] {
                                  if (count > 0) stream_.record(*loss_known_);
                              },
                              [&](std::size_t tensor) {
                                  hooks.ready(tensor);
                                  hooks.poll();
                              }};
        const auto issue = [&](const StepMarks& at) { issue_passes(batch, at); };
        if (options_.graphs && count > 0)
            graphs_.run({count, batch.factor, !batch.masks.empty(), feed_}, issue, marks);
        else
            issue(marks);
        if (count > 0) stream_.record(*feeds_[feed_].used);
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
        std::memcpy(next_feed(), inputs.data(), inputs.size_bytes());
        send_feed(inputs.size_bytes());
        stream_.wait(*feeds_[feed_].arrived);
        forward(count, false);
        stream_.record(*feeds_[feed_].used);
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
        return factor_of(flat_, options_.places[2 * layer], options_.shape.inputs_of(layer));
    }
    /// [count, inputs_of(layer)].
    [[nodiscard]] Factor inputs_of(std::size_t layer) const {
        const std::size_t in = options_.shape.inputs_of(layer);
        return layer == 0 ? Factor{rows_there(), rows_narrow_.data(), in} : factor_of(outputs_[layer - 1], 0, in);
    }
    // In the feed of the step that is issued.
    template <class T>
    [[nodiscard]] const T* fed(std::size_t place) const {
        return reinterpret_cast<const T*>(feeds_[feed_].there.data() + place);
    }
    [[nodiscard]] const float* rows_there() const { return fed<float>(0); }
    [[nodiscard]] float* gradient(std::size_t tensor) const { return gradients_ + options_.places[tensor]; }

    [[nodiscard]] Numbers numbers(std::size_t count) const { return {on_, count, options_.precision}; }

    void make_work_memory() {
        const Shape& shape = options_.shape;
        std::size_t widest = 0;
        if (options_.precision == device::Precision::bf16)
            rows_narrow_ = DeviceArray<base::BFloat16>(on_, options_.rows * shape.features);
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

    /// The block that the next batch goes to, on the host: the other one than the last.
    [[nodiscard]] std::byte* next_feed() {
        feed_ = 1 - feed_;
        await([&] { return feeds_[feed_].arrived->reached(); }); // its last copy has read it
        return feeds_[feed_].here.data();
    }
    void send_feed(std::size_t bytes) {
        device::Stream& copies = on_.copy_stream();
        const Feed& feed = feeds_[feed_];
        copies.wait(*feed.used);
        copies.upload(feed.there.data(), feed.here.data(), bytes);
        copies.record(*feed.arrived);
    }

    /// Puts the rows, their classes or targets, their samples' numbers, and the masks into a block.
    void gather(const Rows& rows, std::span<const DropoutMask> masks, std::byte* block) const {
        const std::size_t row = options_.shape.features * sizeof(float);
        const std::size_t width = options_.shape.outputs;
        const auto& [from, places, samples] = rows;
        const FeedPlaces at(options_.shape, places.size());
        for (std::size_t i = 0; i < places.size(); ++i) {
            const std::size_t place = places[i];
            std::memcpy(block + i * row, from.x.data() + place * options_.shape.features, row);
            if (!from.classes.empty())
                std::memcpy(block + at.answers + i * sizeof(std::int32_t), &from.classes[place], sizeof(std::int32_t));
            else
                std::memcpy(block + at.answers + i * width * sizeof(float), from.targets.data() + place * width,
                            width * sizeof(float));
        }
        std::memcpy(block + at.samples, samples.data(), places.size() * sizeof(std::uint32_t));
        for (std::size_t layer = 0; layer < masks.size(); ++layer) {
            const DropoutMask& mask = masks[layer];
            const device::Dropout dropout{mask.key[0], mask.key[1], mask.threshold, mask.scale()};
            std::memcpy(block + at.dropout + layer * sizeof dropout, &dropout, sizeof dropout);
        }
    }

    /// Both passes over what is in the feed; nothing else.
    void issue_passes(const Batch& batch, const StepMarks& at) {
        const std::size_t count = batch.rows.places.size();
        if (count > 0) {
            forward(count, !batch.masks.empty());
            issue_loss(batch);
        }
        at.loss();
        backward(count, batch.masks, at);
    }

    void multiply(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k, const Factor& a,
                  const Factor& b, device::Block<float> c) {
        if (options_.precision == device::Precision::bf16)
            compute_->multiply(transpose_a, transpose_b, m, n, k, {a.narrow, a.stride}, {b.narrow, b.stride}, c);
        else
            compute_->multiply(transpose_a, transpose_b, m, n, k, {a.wide, a.stride}, {b.wide, b.stride}, c,
                               options_.precision);
    }
    void narrow(const Numbers& numbers, std::size_t count) {
        if (numbers.narrow.data() != nullptr)
            stream_.narrow(numbers.narrow.data(), base::DType::bfloat16, numbers.wide.data(), count);
    }

    void forward(std::size_t count, bool dropout) {
        const Shape& shape = options_.shape;
        const std::size_t last = shape.layers() - 1;
        narrow(flat_, options_.size);
        if (rows_narrow_.data() != nullptr)
            stream_.narrow(rows_narrow_.data(), base::DType::bfloat16, rows_there(), count * shape.features);
        const FeedPlaces at(shape, count);
        for (std::size_t layer = 0; layer <= last; ++layer) {
            const std::size_t in = shape.inputs_of(layer);
            const std::size_t out = shape.outputs_of(layer);
            const Numbers& result = outputs_[layer];
            multiply(false, true, count, out, in, inputs_of(layer), weight(layer), {result.wide.data(), out});
            const bool hidden = layer < last;
            compute_->activate(hidden ? activation_of(shape) : device::Activation::none, result.wide.data(),
                               bias(layer), count, out,
                               dropout && hidden ? fed<device::Dropout>(at.dropout) + layer : nullptr,
                               fed<std::uint32_t>(at.samples), hidden ? result.narrow.data() : nullptr);
        }
    }

    void issue_loss(const Batch& batch) {
        const std::size_t count = batch.rows.places.size();
        const std::size_t width = options_.shape.outputs;
        const std::size_t answers = FeedPlaces(options_.shape, count).answers;
        if (!batch.rows.from.classes.empty())
            compute_->cross_entropy(outputs_.back().wide.data(), fed<std::int32_t>(answers), count, width, batch.factor,
                                    losses_.data());
        else
            compute_->squared_error(outputs_.back().wide.data(), fed<float>(answers), count, width, batch.factor,
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
            multiply(true, false, out, in, count, factor_of(delta, 0, out), inputs_of(layer),
                     {gradient(2 * layer), in});
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
            multiply(false, false, count, in, out, factor_of(*delta, 0, out), weight(layer), {below.wide.data(), in});
            compute_->activate_backward(activation_of(shape), below.wide.data(), outputs_[layer - 1].wide.data(),
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
    std::unique_ptr<device::Event> loss_known_; ///< the loss is in pinned memory
    Numbers flat_;                              ///< in bfloat16 as of the last forward pass
    std::vector<std::pair<std::string, DeviceArray<float>>> moments_;
    std::vector<Numbers> outputs_; ///< of the layers
    Numbers delta_[2];
    Feed feeds_[2];
    std::size_t feed_ = 0; ///< of the last batch
    DeviceArray<base::BFloat16> rows_narrow_;
    DeviceArray<double> losses_; ///< of the rows
    DeviceArray<double> loss_;
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
