// SPDX-License-Identifier: Apache-2.0
// A model of jobs/ (the file RANKTUNE_BENCH_MODEL, whose function is RANKTUNE_BENCH_TRAIN) in a plain loop of LibTorch:
// what the trainable `torch` adds to it is the difference to bench_epochs. Data lie on the GPU, nothing waits for it
// but the end of an epoch. Run by gpu_vs_torch.py, with the options of bench_epochs.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include <torch/cuda.h>
#include <torch/nn/module.h> // clip_grad.h of LibTorch 1.13 does not include what it uses
#include <torch/nn/utils/clip_grad.h>

#include RANKTUNE_BENCH_MODEL
#include "libtorch/precision.hpp"
#include "ranktune/ddp/group.hpp"
#include "trial_context.hpp"

namespace {

using namespace ranktune;
using ::torch::Tensor;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Samples on(const Samples& some, ::torch::Device device) { return {some.inputs.to(device), some.targets.to(device)}; }

double epoch(Training& training, ::torch::Device device, libtorch::Precision precision) {
    training.module->train();
    const std::int64_t count = training.train.inputs.size(0);
    const Tensor order = ::torch::randperm(count, ::torch::TensorOptions().dtype(::torch::kInt64).device(device));
    Tensor total = ::torch::zeros({}, device);
    for (std::int64_t begin = 0; begin < count; begin += training.batch_size) {
        const Tensor rows = order.narrow(0, begin, std::min(training.batch_size, count - begin));
        if (training.drop_last && rows.size(0) < training.batch_size) break;
        const Samples batch{training.train.inputs.index_select(0, rows), training.train.targets.index_select(0, rows)};
        training.optimizer->zero_grad();
        Tensor loss;
        {
            const libtorch::Autocast narrow(precision, device.type());
            loss = training.loss(batch);
        }
        loss.backward();
        if (training.clip_norm > 0.0)
            ::torch::nn::utils::clip_grad_norm_(training.module->parameters(), training.clip_norm);
        training.optimizer->step();
        total += loss.detach();
    }
    training.module->eval();
    const ::torch::NoGradGuard no_gradients;
    const libtorch::Autocast narrow(precision, device.type());
    for (std::int64_t begin = 0; begin < training.val.inputs.size(0); begin += training.batch_size) {
        const std::int64_t rows = std::min(training.batch_size, training.val.inputs.size(0) - begin);
        static_cast<void>(training.validate(
            {training.val.inputs.narrow(0, begin, rows), training.val.targets.narrow(0, begin, rows)}));
    }
    return total.item<double>();
}

void run(const bench::TrialOptions& options, double limit) {
    const auto group = ddp::make_self_group();
    bench::TrialContext context(*group, options);
    const libtorch::Precision precision = libtorch::precision_of(context);
    libtorch::set_float32_products(precision);
    const ::torch::Device device(::torch::cuda::is_available() && !options.gpus.empty() ? ::torch::kCUDA
                                                                                        : ::torch::kCPU);
    ::torch::manual_seed(1);
    Training training = RANKTUNE_BENCH_TRAIN(context);
    training.module->to(device);
    training.train = on(training.train, device);
    training.val = on(training.val, device);
    static_cast<void>(epoch(training, device, precision));
    static_cast<void>(epoch(training, device, precision));
    const double begin = seconds();
    int epochs = 0;
    double loss = 0.0;
    for (; seconds() - begin < limit; ++epochs) loss = epoch(training, device, precision);
    std::printf("{\"epochs\": %d, \"epoch_s\": %.6f, \"loss\": %.4f}\n", epochs, (seconds() - begin) / epochs, loss);
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: bench_plain_MODEL SECONDS [gpu=N] OPTION=VALUE...\n");
        return 2;
    }
    try {
        run(bench::trial_options({argv + 2, argv + argc}), std::atof(argv[1]));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_plain: %s\n", error.what());
        return 1;
    }
    return 0;
}
