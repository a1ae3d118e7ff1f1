// SPDX-License-Identifier: Apache-2.0
// Batches of this rank, from a position on. Usage: loader FILE.h5 (with the group `train`)
#include <cstdio>

#include <ranktune/data/loader.hpp>
#include <ranktune/data/mixture.hpp>
#include <ranktune/data/order.hpp>
#include <ranktune/data/source.hpp>

int main(int argc, char** argv) {
    namespace data = ranktune::data;
    if (argc != 2) return 2;
    const auto source = data::Source::open(argv[1], {.group = "train"});
    std::printf("%llu samples\n", static_cast<unsigned long long>(source->samples()));

    data::LoaderOptions options{.batch = 64, .rank = 1, .ranks = 3, .seed = 5};
    options.map = [](const data::Sample& sample, ranktune::base::RngStream& random) { // on a thread of the loader
        auto* const x = reinterpret_cast<float*>(sample.columns[0].data());
        x[0] += 0.01F * static_cast<float>(random.normal()); // the same noise, whichever rank trains the sample
    };
    data::Loader loader(source, {.epoch = 2, .sample = 128}, options); // as a checkpoint says
    std::size_t samples = 0;
    while (const auto batch = loader.next()) samples += batch->column("y").count; // until the end of the epoch
    std::printf("waited %.3f s\n", loader.waited_seconds());

    // The same samples, as pure functions of the position.
    data::Order order(data::order_shape(source->extent(), options.shuffle, options.shuffle_memory), 5, 0, 2);
    const data::Share share(128, source->samples(), 1, 3);
    const bool same = share.size() == samples && loader.position() == data::Position{3, 0};
    data::Mixture mixture({{{100}, 0.9}, {{20}, 0.1}}, 5, 0);
    return same && order(share[0]) < source->samples() && mixture(1234).source < 2 ? 0 : 1;
}
