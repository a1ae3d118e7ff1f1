// SPDX-License-Identifier: Apache-2.0
// Batches of this rank, from a position on. Usage: loader FILE.h5 (with the group `train`)
#include <cstdio>

#include <ranktune/data/loader.hpp>
#include <ranktune/data/mixture.hpp>
#include <ranktune/data/order.hpp>
#include <ranktune/data/source.hpp>
#include <ranktune/ranktune.hpp>
#include <ranktune/testing/run_trial.hpp>
#include <ranktune/trainables/data.hpp>

namespace data = ranktune::data;

/// One epoch, from the position that a checkpoint would say.
void train(ranktune::FunctionContext& context) {
    auto [source, options] = ranktune::trainables::open_data(context, "train"); // with the order that [data] asks for
    options.batch = 64;                                                         // over all ranks
    options.map = [](const data::Sample& sample, ranktune::base::RngStream& random) { // on a thread of the loader
        auto* const x = reinterpret_cast<float*>(sample.columns[0].data());
        x[0] += 0.01F * static_cast<float>(random.normal()); // the same noise, whichever rank trains the sample
    };
    data::Loader loader(source, {.epoch = 2, .sample = 128}, options);
    std::size_t samples = 0;
    while (const auto batch = loader.next()) samples += batch->column("y").count; // until the end of the epoch

    // The same samples, as pure functions of the position.
    const std::uint64_t seed = context.seed();
    data::Order order(data::order_shape(source->extent(), options.order), seed, context.trial().value(), 2);
    const data::Share share(128, source->samples(), context.rank(), context.size());
    data::Mixture mixture({{{100}, 0.9}, {{20}, 0.1}}, seed, 0);
    const bool same = share.size() == samples && loader.position() == data::Position{3, 0} &&
                      order(share[0]) < source->samples() && mixture(1234).source < 2;
    static_cast<void>(context.report({{"same", same ? 1.0 : 0.0}, {"waited", loader.take_waited().all()}}));
}

int main(int argc, char** argv) {
    using namespace ranktune::testing;
    if (argc != 2) return 2;
    const TrialRun run =
        run_trial(function(train), {.data = {{.name = "train", .path = argv[1], .group = "train"}}, .ranks = 3});
    std::printf("waited %.3f s %s\n", run.last("waited"), run.failure.c_str());
    return run.last("same") == 1.0 ? 0 : 1;
}
