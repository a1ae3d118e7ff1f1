// SPDX-License-Identifier: Apache-2.0
#include "ranktune/libtorch/module_trainable.hpp"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include <torch/utils.h>

#include "device/device.hpp"
#include "device/module.hpp"
#include "libtorch/device_memory.hpp"
#include "libtorch/fused_step.hpp"
#include "libtorch/optimizer_state.hpp"
#include "libtorch/precision.hpp"
#include "libtorch/streams.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/rng.hpp"
#include "ranktune/data/sampling.hpp"
#include "ranktune/libtorch/data_parallel.hpp"

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
    require(count_of(training.train, "train") > 0, "train");
    require(count_of(training.val, "val") == 0 || training.validate, "validate, for the samples in `val`,");
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
        const auto of = [&](const Tensor& all) {
            const Tensor some = all.index_select(0, rows);
            // Page-locked memory is copied while the GPU works.
            return some.device() == parallel.where().device ? some
                                                            : some.pin_memory().to(parallel.where().device, true);
        };
        return {of(training.train.inputs), of(training.train.targets)};
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
        training.train = to_device(training.train);
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
    /// Returns this rank's sum of the losses of its samples.
    double train_batch(data::Range range) {
        const data::Range mine = data::shard(range, group.rank(), group.size());
        double losses = 0.0;
        for (int part = 0; part < parts; ++part) {
            const data::Range some = data::shard(mine, part, parts);
            const double share = static_cast<double>(some.size()) / static_cast<double>(range.size());
            std::function<Tensor()> loss;
            if (some.size() > 0) loss = [&] { return loss_of(chosen(some)); };
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
        shuffle(context);
        seed_generator(context, base::Purpose::dropout, epoch, group.rank());
        const data::Batches batches(samples, batch);
        double loss = 0.0;
        std::size_t trained = 0;
        for (std::size_t i = 0; i < batches.size(); ++i) {
            if (training.drop_last && i > 0 && batches[i].size() < batch) break;
            loss += train_batch(batches[i]);
            trained += batches[i].size();
        }
        ++epoch;
        parallel.share_buffers();
        return group.reduced(loss) / static_cast<double>(trained);
    }

    /// The means over `val`, of every rank's share. Ranks may have no samples, and then know no names: rank 0 always
    /// has some.
    trainables::Metrics validate() {
        if (validated == 0) return {};
        const ::torch::NoGradGuard no_gradients;
        const Autocast narrow(precision, parallel.where().device.type());
        training.module->eval();
        const data::Range mine = data::shard({0, validated}, group.rank(), group.size());
        const std::size_t at_once = std::max<std::size_t>(batch / static_cast<std::size_t>(group.size()), 1);
        trainables::Metrics sums;
        for (std::size_t begin = mine.begin; begin < mine.end; begin += at_once) {
            const std::size_t count = std::min(at_once, mine.end - begin);
            const auto from = static_cast<std::int64_t>(begin);
            const auto rows = static_cast<std::int64_t>(count);
            const trainables::Metrics means = training.validate(
                to_device({training.val.inputs.narrow(0, from, rows), training.val.targets.narrow(0, from, rows)}));
            if (sums.empty())
                for (const auto& metric : means) sums.emplace_back(metric.first, 0.0);
            if (means.size() != sums.size())
                throw base::UsageError("Training::validate must return the same metrics for every batch");
            for (std::size_t i = 0; i < means.size(); ++i)
                sums[i].second += means[i].second * static_cast<double>(count);
        }
        const auto names = group.reduced(static_cast<std::uint64_t>(sums.size()), ddp::Reduce::max);
        std::vector<double> values(names, 0.0);
        for (std::size_t i = 0; i < sums.size(); ++i) values[i] = sums[i].second;
        group.all_reduce(values);
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i].second = values[i] / static_cast<double>(validated);
        return sums;
    }

    Training training;
    ddp::Group& group;
    DataParallel parallel;
    Precision precision;
    int parts; ///< of a rank's share of a batch
    std::size_t samples;
    std::size_t validated;
    std::size_t batch;
    Tensor order;            ///< of the samples in this epoch: int64
    std::uint64_t epoch = 0; ///< complete ones
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
    if (!context.devices().empty() && impl_->parallel.where().place.is_host())
        context.log("this LibTorch has no CUDA: the trial computes on the cores, and leaves its GPU idle");
}

trainables::Metrics ModuleTrainable::step(trainables::TrialContext& context) {
    const auto scope = stream_scope(impl_->parallel.where()); // of the optimizer and the user's functions, too
    return telling_of_memory([&] {
        trainables::Metrics metrics{{"train_loss", impl_->train_epoch(context)}};
        for (auto& metric : impl_->validate()) metrics.push_back(std::move(metric));
        for (auto& metric : impl_->parallel.take_comm_metrics()) metrics.push_back(std::move(metric));
        return metrics;
    });
}

void ModuleTrainable::save(study::StateSink& sink) const {
    impl_->parallel.save(sink, *impl_->training.optimizer);
    const std::uint64_t counters[] = {impl_->epoch, impl_->steps};
    sink.put<std::uint64_t>("trainer.counters", counters);
}

void ModuleTrainable::load(study::StateSource& source) {
    telling_of_memory([&] { impl_->parallel.load(source, *impl_->training.optimizer); });
    std::uint64_t counters[2] = {};
    source.get<std::uint64_t>("trainer.counters", counters);
    impl_->epoch = counters[0];
    impl_->steps = counters[1];
}

} // namespace ranktune::libtorch
