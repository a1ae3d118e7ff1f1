// SPDX-License-Identifier: Apache-2.0
// Training speed of the built-in mlp, data-parallel over all ranks of the launch, on synthetic data in memory. Rank 0
// prints one line of JSON: samples per second, the rate of the bare matrix products of the same model, and the share of
// the communication that was hidden. Run by ddp_vs_torch.py, or by hand:
//   mpirun -n 2 --bind-to core bench_ddp_mlp --layers 64,256,256,10 --batch 256

#include <CLI/CLI.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/groups/group_factory.hpp"
#include "comm/mpi/environment.hpp"
#include "ddp/collective/mpi_collective.hpp"
#include "ranktune/base/rng.hpp"
#include "trainables/blas.hpp"
#include "trainables/mlp/trainer.hpp"

namespace {

using namespace ranktune;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

struct Arguments {
    std::vector<std::size_t> layers{64, 256, 256, 10};
    std::size_t batch = 256;
    std::size_t bucket_kib = 1024;
    double dropout = 0.0;
    double seconds = 1.0; ///< of each repetition
    int repetitions = 5;
    int threads = 1;
};

std::shared_ptr<const data::Dataset> made_up(const Arguments& arguments) {
    data::Dataset dataset;
    dataset.features = arguments.layers.front();
    dataset.outputs = arguments.layers.back();
    base::RngStream random(1, base::Purpose::initialise);
    for (data::Split* split : {&dataset.train, &dataset.val}) {
        split->count = split == &dataset.train ? 16 * arguments.batch : 1;
        for (std::size_t i = 0; i < split->count * dataset.features; ++i)
            split->x.push_back(static_cast<float>(random.normal()));
        for (std::size_t i = 0; i < split->count; ++i)
            split->classes.push_back(static_cast<std::int32_t>(random.below(dataset.outputs)));
    }
    dataset.x_scale = {std::vector<float>(dataset.features, 0.0F), std::vector<float>(dataset.features, 1.0F)};
    return std::make_shared<const data::Dataset>(std::move(dataset));
}

trainables::mlp::TrainerOptions options_of(const Arguments& arguments) {
    trainables::mlp::TrainerOptions options;
    options.hidden.assign(arguments.layers.begin() + 1, arguments.layers.end() - 1);
    options.dropout = arguments.dropout;
    options.batch = arguments.batch;
    options.lr = 1e-3;
    options.seed = 1;
    options.bucket_floats = arguments.bucket_kib * 256;
    options.gradients.metrics = true;
    return options;
}

/// Samples per second of one repetition. All ranks agree beforehand on the number of epochs that fit into the time.
double measure(trainables::mlp::Trainer& trainer, ddp::Group& group, std::size_t epochs, std::size_t samples) {
    group.barrier();
    const double begin = seconds();
    for (std::size_t epoch = 0; epoch < epochs; ++epoch) static_cast<void>(trainer.train_epoch());
    group.barrier();
    return static_cast<double>(epochs * samples) / (seconds() - begin);
}

/// Rate of only the matrix products of one training step with `rows` samples, in floating-point operations per second.
double bare_products(const std::vector<std::size_t>& layers, std::size_t rows) {
    using trainables::blas::multiply;
    using trainables::blas::Transpose;
    const std::size_t widest = *std::max_element(layers.begin(), layers.end());
    const std::vector<float> x(rows * widest, 0.5F);
    const std::vector<float> w(widest * widest, 0.5F);
    std::vector<float> y(std::max(rows, widest) * widest);
    double operations = 0.0;
    const double begin = seconds();
    while (seconds() - begin < 0.5) {
        for (std::size_t i = 0; i + 1 < layers.size(); ++i) {
            const std::size_t in = layers[i];
            const std::size_t out = layers[i + 1];
            multiply(Transpose::no, Transpose::yes, rows, out, in, x.data(), w.data(), 0.0F, y.data());
            multiply(Transpose::yes, Transpose::no, out, in, rows, x.data(), x.data(), 0.0F, y.data());
            if (i > 0) multiply(Transpose::no, Transpose::no, rows, in, out, x.data(), w.data(), 0.0F, y.data());
            operations += 2.0 * static_cast<double>(rows * in * out) * (i > 0 ? 3.0 : 2.0);
        }
    }
    return operations / (seconds() - begin);
}

/// What a rank's gradients cost per step, in seconds.
struct Cost {
    double in_flight = 0.0;
    double waited = 0.0;
};
Cost take_cost(trainables::mlp::Trainer& trainer, std::size_t steps) {
    std::map<std::string, double> metrics;
    for (const auto& [name, value] : trainer.take_comm_metrics()) metrics[name] = value;
    const double speed = 1e9 * metrics["comm/GBps"];
    return {speed > 0.0 ? 1e6 * metrics["comm/MB"] / speed / static_cast<double>(steps) : 0.0,
            1e-3 * metrics["comm/exposed_ms"]};
}

void run(const Arguments& arguments, ddp::Group& group) {
    trainables::blas::use_threads(arguments.threads);
    const auto dataset = made_up(arguments);
    trainables::mlp::Trainer trainer(dataset, options_of(arguments), group);
    const std::size_t samples = dataset->train.count;
    static_cast<void>(measure(trainer, group, 1, samples)); // warm up
    double rate = measure(trainer, group, 2, samples);
    group.broadcast(std::span(&rate, 1));
    const auto epochs =
        static_cast<std::size_t>(std::max(1.0, arguments.seconds * rate / static_cast<double>(samples)));
    static_cast<void>(trainer.take_comm_metrics());
    std::vector<double> rates;
    for (int i = 0; i < arguments.repetitions; ++i) rates.push_back(measure(trainer, group, epochs, samples));

    const Cost cost = take_cost(trainer, rates.size() * epochs * samples / arguments.batch);

    group.barrier();
    const double products =
        group.reduced(bare_products(arguments.layers, arguments.batch / static_cast<std::size_t>(group.size())));
    if (group.rank() != 0) return;
    std::printf(R"({"ranks":%d,"samples_per_s":%.0f,"slowest":%.0f,"fastest":%.0f,"gemm_gflops":%.1f,)"
                R"("in_flight_us_per_step":%.1f,"waited_us_per_step":%.1f,"hidden":%.3f,"blas":"%s"})"
                "\n",
                group.size(), median(rates), *std::min_element(rates.begin(), rates.end()),
                *std::max_element(rates.begin(), rates.end()), products * 1e-9, 1e6 * cost.in_flight, 1e6 * cost.waited,
                cost.in_flight > 0.0 ? 1.0 - cost.waited / cost.in_flight : 1.0, trainables::blas::library().c_str());
}

} // namespace

int main(int argc, char** argv) {
    Arguments arguments;
    CLI::App app("Training speed of the built-in mlp");
    app.add_option("--layers", arguments.layers, "inputs, hidden layers, outputs")->delimiter(',');
    app.add_option("--batch", arguments.batch, "global batch");
    app.add_option("--bucket-kib", arguments.bucket_kib, "limit of a gradient bucket");
    app.add_option("--dropout", arguments.dropout, "probability");
    app.add_option("--seconds", arguments.seconds, "of each repetition");
    app.add_option("--repetitions", arguments.repetitions, "whose median counts");
    app.add_option("--threads", arguments.threads, "of BLAS per rank");
    CLI11_PARSE(app, argc, argv);

    const comm::mpi::Environment environment;
    comm::GroupFactory factory(environment);
    std::vector<base::Rank> ranks;
    for (int rank = 0; rank < environment.size(); ++rank) ranks.emplace_back(static_cast<std::uint32_t>(rank));
    const std::atomic<bool> abort{false};
    const auto group = ddp::form_mpi_collective(factory, ranks, 1, abort);
    run(arguments, *group);
    return 0;
}
