// SPDX-License-Identifier: Apache-2.0
#include "ranktune/libtorch/module_trainable.hpp"

#include <algorithm>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <torch/utils.h>

#include "device/device.hpp"
#include "device/module.hpp"
#include "libtorch/device_memory.hpp"
#include "libtorch/fused_step.hpp"
#include "libtorch/optimizer_state.hpp"
#include "libtorch/precision.hpp"
#include "libtorch/sample_stream.hpp"
#include "libtorch/streams.hpp"
#include "libtorch/tensors.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/rng.hpp"
#include "ranktune/data/sampling.hpp"
#include "ranktune/libtorch/data_parallel.hpp"
#include "ranktune/trainables/data.hpp"
#include "trainables/predict/prediction.hpp"

namespace ranktune::libtorch {

namespace {

using ::torch::Tensor;

void seed_generator(const trainables::TrialContext& context, base::Purpose purpose, std::uint64_t epoch, int rank) {
    base::RngStream stream(context.seed(), purpose, context.trial().value(), static_cast<std::uint32_t>(epoch));
    std::uint64_t seed = stream();
    for (int i = 0; i < rank; ++i) seed = stream();
    ::torch::manual_seed(seed);
}

/// In tests, ranks are threads, which share the generator: one after the other.
Training seeded(trainables::TrialContext& context, const MakeTraining& make) {
    static std::mutex one_at_a_time;
    const std::lock_guard lock(one_at_a_time);
    seed_generator(context, base::Purpose::initialise, 0, 0);
    return make(context);
}

std::size_t count_of(const Samples& samples, const char* name) {
    if (!samples.inputs.defined() && !samples.targets.defined()) return 0;
    if (!samples.inputs.defined() || !samples.targets.defined() || samples.inputs.dim() == 0 ||
        samples.targets.dim() == 0 || samples.inputs.size(0) != samples.targets.size(0))
        throw base::UsageError(std::string("Training::") + name +
                               ": inputs and targets need the same first extent, the number of samples");
    return static_cast<std::size_t>(samples.inputs.size(0));
}

void require_complete(const Training& training) {
    const auto require = [](bool there, const char* what) {
        if (!there) throw base::UsageError(std::string("Training::") + what + " is missing");
    };
    require(training.module != nullptr, "module");
    require(training.optimizer != nullptr, "optimizer");
    require(static_cast<bool>(training.loss), "loss");
    const bool streamed = training.train_from.source != nullptr;
    require(streamed || count_of(training.train, "train") > 0, "train");
    const bool val_streamed = training.val_from.source != nullptr;
    const bool val = count_of(training.val, "val") > 0;
    require((!val && !val_streamed) || training.validate, "validate, for the samples in `val`,");
    if ((streamed && count_of(training.train, "train") > 0) || (val && val_streamed))
        throw base::UsageError("Training has samples in memory and a source of them: leave one of the two out");
    if (!training.val_from.loading.mixture.empty() || training.val_from.per_iteration > 0)
        throw base::UsageError(
            "Training::val_from is validated as it is: without a mixture, and without per_iteration");
    if (!training.train_from.loading.mixture.empty() && training.train_from.per_iteration == 0)
        throw base::UsageError("Training::train_from.per_iteration is missing: a mixture has no end");
    if (training.batch_size < 1) throw base::UsageError("Training::batch_size must be at least 1");
    std::vector<Named> parameters;
    for (const auto& item : training.module->named_parameters()) parameters.push_back({item.key(), item.value()});
    require_known(*training.optimizer, parameters);
}

ParallelOptions parallel_options(const Training& training, trainables::GradientChoice choice) {
    if (choice.clip_norm == 0.0) choice.clip_norm = training.clip_norm;
    return {training.bucket_bytes, choice};
}

} // namespace

struct ModuleTrainable::Impl {
    Impl(Training t, trainables::TrialContext& context, const trainables::GradientChoice& choice, Precision products)
        : training(std::move(t)),
          group(context.group()),
          parallel(group, training.module, where_to_compute(context), parallel_options(training, choice)),
          precision(products),
          parts(static_cast<int>(choice.accumulate)),
          samples(count_of(training.train, "train")),
          validated(count_of(training.val, "val")),
          batch(static_cast<std::size_t>(training.batch_size)) {
        move_samples();
    }

    [[nodiscard]] Samples to_device(const Samples& some) const {
        return {some.inputs.to(parallel.where().device), some.targets.to(parallel.where().device)};
    }
    /// Samples of this epoch's order, where the rank computes.
    [[nodiscard]] Samples chosen(data::Range range) const {
        const Tensor rows =
            order.narrow(0, static_cast<std::int64_t>(range.begin), static_cast<std::int64_t>(range.size()));
        return {moved(training.train.inputs.index_select(0, rows)),
                moved(training.train.targets.index_select(0, rows))};
    }
    /// To where the rank computes.
    [[nodiscard]] Tensor moved(const Tensor& some) const { return moved_to(parallel.where().device, some); }
    [[nodiscard]] Samples moved(const Samples& some, data::Range range) const {
        const auto begin = static_cast<std::int64_t>(range.begin);
        const auto count = static_cast<std::int64_t>(range.size());
        return {moved(some.inputs.narrow(0, begin, count)), moved(some.targets.narrow(0, begin, count))};
    }

    /// A small data set moves to the GPU as a whole, once.
    void move_samples() {
        if (!parallel.where().device.is_cuda()) return;
        std::size_t bytes = 0;
        for (const Samples* some : {&training.train, &training.val})
            for (const Tensor* tensor : {&some->inputs, &some->targets})
                if (tensor->defined()) bytes += tensor->nbytes();
        constexpr double share_of_memory = 0.1;
        const auto memory =
            static_cast<double>(device::memory_limit(device::accelerator_of(parallel.where().place)->facts()));
        if (static_cast<double>(bytes) > share_of_memory * memory) return;
        const auto scope = stream_scope(parallel.where());
        if (samples > 0) training.train = to_device(training.train);
        if (validated > 0) training.val = to_device(training.val);
    }

    /// The order of this epoch, where the samples are.
    void shuffle(const trainables::TrialContext& context) {
        std::vector<std::uint32_t> numbers;
        data::shuffle_epoch(numbers, samples, context.seed(), context.trial().value(), epoch);
        order = ::torch::empty({static_cast<std::int64_t>(samples)}, ::torch::kInt64);
        std::ranges::copy(numbers, order.data_ptr<std::int64_t>());
        order = order.to(training.train.inputs.device());
    }

    [[nodiscard]] Tensor loss_of(const Samples& some) const {
        const Autocast narrow(precision, parallel.where().device.type());
        const Tensor loss = training.loss(some);
        return loss.scalar_type() == ::torch::kBFloat16 ? loss.to(::torch::kFloat32) : loss;
    }
    /// A step on samples `mine` of this rank, of `whole` of all ranks. Returns the sum of the losses of its samples.
    template <class Chosen>
    double train_batch(data::Range mine, std::uint64_t whole, const Chosen& samples_in) {
        double losses = 0.0;
        for (int part = 0; part < parts; ++part) {
            const data::Range some = data::shard(mine, part, parts);
            const double share = static_cast<double>(some.size()) / static_cast<double>(whole);
            std::function<Tensor()> loss;
            if (some.size() > 0) loss = [&] { return loss_of(samples_in(some)); };
            const bool last = part + 1 == parts;
            const double mean = last ? parallel.step(loss, share) : parallel.accumulate(loss, share);
            losses += mean * static_cast<double>(some.size());
        }
        if (training.learning_rate)
            for (auto& parameters : training.optimizer->param_groups())
                parameters.options().set_lr(training.learning_rate(steps));
        if (!parallel.where().device.is_cuda() || !fused_step(*training.optimizer)) training.optimizer->step();
        ++steps;
        return losses;
    }

    double train_epoch(const trainables::TrialContext& context) {
        training.module->train();
        seed_generator(context, base::Purpose::dropout, epoch, group.rank());
        const Losses losses = training.train_from.source ? train_from_source(context) : train_from_memory(context);
        ++epoch;
        parallel.share_buffers();
        return group.reduced(losses.sum) / static_cast<double>(losses.trained);
    }

    struct Losses {
        double sum = 0.0;          ///< over this rank's samples
        std::uint64_t trained = 0; ///< samples of all ranks
    };
    Losses train_from_memory(const trainables::TrialContext& context) {
        shuffle(context);
        const data::Batches batches(samples, batch);
        Losses losses;
        for (std::size_t i = 0; i < batches.size(); ++i) {
            if (training.drop_last && i > 0 && batches[i].size() < batch) break;
            const data::Range mine = data::shard(batches[i], group.rank(), group.size());
            losses.sum += train_batch(mine, batches[i].size(), [this](data::Range some) { return chosen(some); });
            losses.trained += batches[i].size();
        }
        return losses;
    }
    Losses train_from_source(const trainables::TrialContext& context) {
        const Streamed& from = training.train_from;
        if (!stream)
            stream.emplace(from,
                           loading_for(context, from.loading, batch, training.drop_last || from.loading.drop_last),
                           position, parallel.where());
        Losses losses;
        while (from.per_iteration == 0 || losses.trained < from.per_iteration) {
            const auto share = stream->next(); // (each epoch has a batch at least)
            if (!share && from.per_iteration == 0) break;
            if (!share) continue;
            losses.trained += share->whole;
            if (from.per_iteration == 0 || losses.trained < from.per_iteration) stream->look_ahead();
            losses.sum += train_batch({0, share->count}, share->whole,
                                      [&](data::Range some) { return moved(share->samples, some); });
        }
        position = stream->position();
        waited = trainables::wait_metrics(group, stream->take_waited(), from.loading);
        return losses;
    }

    /// The means over `val`, of every rank's share. Ranks may have no samples, and then know no names: rank 0 always
    /// has some.
    trainables::Metrics validate(const trainables::TrialContext& context) {
        const std::uint64_t all = training.val_from.source ? training.val_from.source->samples() : validated;
        if (all == 0) return {};
        const ::torch::NoGradGuard no_gradients;
        const Autocast narrow(precision, parallel.where().device.type());
        training.module->eval();
        trainables::Metrics sums;
        if (training.val_from.source)
            validate_source(context, sums);
        else
            validate_memory(sums);
        const auto names = group.reduced(static_cast<std::uint64_t>(sums.size()), ddp::Reduce::max);
        std::vector<double> values(names, 0.0);
        for (std::size_t i = 0; i < sums.size(); ++i) values[i] = sums[i].second;
        group.all_reduce(values);
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i].second = values[i] / static_cast<double>(all);
        return sums;
    }
    void validate_memory(trainables::Metrics& sums) const {
        const data::Range mine = data::shard({0, validated}, group.rank(), group.size());
        const std::size_t at_once = std::max<std::size_t>(batch / static_cast<std::size_t>(group.size()), 1);
        for (std::size_t begin = mine.begin; begin < mine.end; begin += at_once) {
            const data::Range some{begin, std::min(begin + at_once, mine.end)};
            add_validation(moved(training.val, some), some.size(), sums);
        }
    }
    void validate_source(const trainables::TrialContext& context, trainables::Metrics& sums) const {
        data::LoaderOptions loading = loading_for(context, training.val_from.loading, batch, false);
        loading.order.shuffle = data::Shuffle::none;
        SampleStream all(training.val_from, std::move(loading), {}, parallel.where());
        while (const auto share = all.next()) {
            all.look_ahead();
            if (share->count > 0) add_validation(moved(share->samples, {0, share->count}), share->count, sums);
        }
    }
    void add_validation(const Samples& some, std::size_t count, trainables::Metrics& sums) const {
        const trainables::Metrics means = training.validate(some);
        if (sums.empty())
            for (const auto& metric : means) sums.emplace_back(metric.first, 0.0);
        if (means.size() != sums.size())
            throw base::UsageError("Training::validate must return the same metrics for every batch");
        for (std::size_t i = 0; i < means.size(); ++i) sums[i].second += means[i].second * static_cast<double>(count);
    }

    /// What `predict` of the training says of the samples, on the host: float32, or float64.
    [[nodiscard]] Tensor predicted(const data::Batch& batch) const {
        if (!training.predict)
            throw base::UsageError("it cannot predict: set Training::predict, a function of the inputs");
        const ::torch::NoGradGuard no_gradients;
        const Autocast narrow(precision, parallel.where().device.type());
        training.module->eval();
        const data::Column& x = batch.columns.size() == 1 ? batch.columns.front() : batch.column("x");
        const Tensor y = training.predict(moved(tensor_of(x)));
        return on_host(y.scalar_type() == ::torch::kFloat64 ? y : y.to(::torch::kFloat32));
    }

    Training training;
    ddp::Group& group;
    DataParallel parallel;
    Precision precision;
    int parts; ///< of a rank's share of a batch
    std::size_t samples;
    std::size_t validated;
    std::size_t batch;
    Tensor order;                       ///< of the samples in this epoch: int64
    std::optional<SampleStream> stream; ///< of train_from
    data::Position position;            ///< in train_from, where the next iteration begins
    trainables::Metrics waited;         ///< for train_from, in the last iteration
    std::uint64_t epoch = 0;            ///< complete iterations
    std::uint64_t steps = 0;
};

ModuleTrainable::ModuleTrainable(MakeTraining make) : make_(std::move(make)) {}
ModuleTrainable::~ModuleTrainable() = default;

void ModuleTrainable::setup(trainables::TrialContext& context) {
    ::torch::set_num_threads(context.cpus_per_rank());
    const Precision precision = precision_of(context);
    set_float32_products(precision);
    telling_of_memory([&] {
        Training training = seeded(context, make_);
        require_complete(training);
        impl_ = std::make_unique<Impl>(std::move(training), context,
                                       trainables::gradient_choice(context.configuration(), "torch"), precision);
    });
    const Streamed& from = impl_->training.train_from;
    if (from.source && !context.only_predicts()) trainables::log_order(context, *from.source, from.loading);
    if (!context.devices().empty() && impl_->parallel.where().place.is_host())
        context.log("this LibTorch has no CUDA: the trial computes on the cores, and leaves its GPU idle");
}

trainables::Metrics ModuleTrainable::step(trainables::TrialContext& context) {
    const auto scope = stream_scope(impl_->parallel.where()); // of the optimizer and the user's functions, too
    return telling_of_memory([&] {
        trainables::Metrics metrics{{"train_loss", impl_->train_epoch(context)}};
        for (auto& metric : impl_->waited) metrics.push_back(std::move(metric));
        impl_->waited.clear();
        for (auto& metric : impl_->validate(context)) metrics.push_back(std::move(metric));
        for (auto& metric : impl_->parallel.take_comm_metrics()) metrics.push_back(std::move(metric));
        return metrics;
    });
}

void ModuleTrainable::predict(trainables::TrialContext& /*context*/, const data::Batch& batch, study::StateSink& out) {
    const auto scope = stream_scope(impl_->parallel.where());
    const Tensor y = telling_of_memory([&] { return impl_->predicted(batch); });
    put(out, {"y", y});
    if (!impl_->training.predicts_classes) return;
    if (y.dim() != 2)
        throw base::UsageError(
            "Training::predicts_classes: predict has to return [samples, classes], and its result has " +
            std::to_string(y.dim()) + " dimensions");
    // Of equal numbers the first: argmax of LibTorch promises nothing.
    const Tensor values = y.to(::torch::kFloat64);
    const std::span<const double> numbers(values.data_ptr<double>(), static_cast<std::size_t>(values.numel()));
    out.put<std::int32_t>("class", trainables::largest_of_rows(numbers, static_cast<std::size_t>(y.size(1))));
}

void ModuleTrainable::save(study::StateSink& sink) const {
    impl_->parallel.save(sink, *impl_->training.optimizer);
    const std::uint64_t counters[] = {impl_->epoch, impl_->steps};
    sink.put<std::uint64_t>("trainer.counters", counters);
    const std::uint64_t position[] = {impl_->position.epoch, impl_->position.sample};
    if (impl_->training.train_from.source) sink.put<std::uint64_t>("trainer.position", position);
}

void ModuleTrainable::load(study::StateSource& source) {
    telling_of_memory([&] { impl_->parallel.load(source, *impl_->training.optimizer); });
    std::uint64_t counters[2] = {};
    source.get<std::uint64_t>("trainer.counters", counters);
    impl_->epoch = counters[0];
    impl_->steps = counters[1];
    if (!impl_->training.train_from.source) return;
    std::uint64_t position[2] = {};
    source.get<std::uint64_t>("trainer.position", position);
    impl_->position = {position[0], position[1]};
    impl_->stream.reset();
}

} // namespace ranktune::libtorch
