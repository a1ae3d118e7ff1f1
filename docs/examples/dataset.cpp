// SPDX-License-Identifier: Apache-2.0
// Samples from an HDF5 file, in a keyed order, shared out over the ranks. Usage: dataset FILE.h5
#include <cstdio>
#include <vector>

#include <ranktune/data/dataset.hpp>
#include <ranktune/data/sampling.hpp>

int main(int argc, char** argv) {
    namespace data = ranktune::data;
    if (argc != 2) return 2;
    const auto dataset = data::shared_dataset(argv[1], data::Scaling::standard); // once per process
    std::printf("%zu training samples of %zu features, %zu outputs\n", dataset->train.count, dataset->features,
                dataset->outputs);

    std::vector<std::uint32_t> order;
    data::shuffle_epoch(order, dataset->train.count, 1, 0, 3); // seed, trial, epoch: the same on every rank
    const data::Batches batches(dataset->train.count, 64);     // global batches
    std::size_t mine = 0;
    std::size_t all = 0;
    for (std::size_t b = 0; b < batches.size(); ++b) {
        all += batches[b].size();
        const data::Range range = data::shard(batches[b], 1, 3); // what rank 1 of 3 trains on: order[range.begin ...]
        mine += range.size();
    }
    return all == dataset->train.count && mine > 0 && mine < all && order.size() == all ? 0 : 1;
}
