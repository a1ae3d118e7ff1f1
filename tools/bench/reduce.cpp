// SPDX-License-Identifier: Apache-2.0
// What summing gradients costs beside bare MPI: steps of a GradientReducer that compute nothing, and MPI_Iallreduce of
// the same buckets, in turns. Prints a line per size; the ratio is the median of pairs. Run it with ranks that have a
// core each:
//   mpirun -n 2 --bind-to core bench_reduce [PAIRS]

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "comm/groups/group_factory.hpp"
#include "comm/mpi/environment.hpp"
#include "ddp/collective/mpi_collective.hpp"
#include "ranktune/ddp/gradient_reducer.hpp"

namespace {

using namespace ranktune;

constexpr std::size_t bucket = std::size_t{1} << 18U; // floats: 1 MiB, as mlp has them

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

/// Seconds of one of `steps` calls.
template <class Step>
double time_of(ddp::Group& group, int steps, Step&& step) {
    group.barrier();
    const double begin = seconds();
    for (int i = 0; i < steps; ++i) step();
    return (seconds() - begin) / steps;
}

void compare(ddp::Group& group, std::size_t floats, int pairs) {
    std::vector<std::size_t> sizes;
    for (std::size_t left = floats; left > 0; left -= sizes.back()) sizes.push_back(std::min(left, bucket));
    ddp::GradientReducer reducer(group, sizes, bucket);
    std::ranges::fill(reducer.gradients(), 0.0F); // sums stay small
    std::vector<float> bare(floats);
    std::vector<MPI_Request> requests(sizes.size());
    const auto ours = [&] {
        ddp::run_step(reducer, [&] {
            for (std::size_t i = sizes.size(); i-- > 0;) reducer.ready(i);
        });
    };
    const auto theirs = [&] {
        std::size_t begin = 0;
        for (std::size_t i = 0; i < sizes.size(); begin += sizes[i++])
            MPI_Iallreduce(MPI_IN_PLACE, bare.data() + begin, static_cast<int>(sizes[i]), MPI_FLOAT, MPI_SUM,
                           MPI_COMM_WORLD, &requests[i]);
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    };
    const double once = group.reduced(time_of(group, 5, theirs), ddp::Reduce::max);
    const int steps = std::clamp(static_cast<int>(0.1 / once), 3, 2000);
    time_of(group, steps, ours);
    std::vector<double> mine;
    std::vector<double> other;
    std::vector<double> ratios;
    for (int pair = 0; pair < pairs; ++pair) {
        const bool first = pair % 2 == 0;
        if (first) mine.push_back(time_of(group, steps, ours));
        other.push_back(time_of(group, steps, theirs));
        if (!first) mine.push_back(time_of(group, steps, ours));
        ratios.push_back(mine.back() / other.back());
    }
    if (group.rank() != 0) return;
    std::printf("%8.2f MiB in %2zu buckets: reducer %9.1f us, MPI_Iallreduce %9.1f us, ratio %.2f (%.2f to %.2f)\n",
                static_cast<double>(floats) * 4.0 / 1048576.0, sizes.size(), 1e6 * median(mine), 1e6 * median(other),
                median(ratios), *std::ranges::min_element(ratios), *std::ranges::max_element(ratios));
    std::fflush(stdout);
}

} // namespace

int main(int argc, char** argv) {
    const int pairs = argc > 1 ? std::max(std::atoi(argv[1]), 1) : 15;
    const comm::mpi::Environment environment;
    comm::GroupFactory factory(environment);
    std::vector<base::Rank> ranks;
    for (int rank = 0; rank < environment.size(); ++rank) ranks.emplace_back(static_cast<std::uint32_t>(rank));
    const std::atomic<bool> abort{false};
    const auto group = ddp::form_mpi_collective(factory, ranks, 1, abort);
    for (const std::size_t floats : {bucket / 16, bucket, 4 * bucket, 16 * bucket}) compare(*group, floats, pairs);
    return 0;
}
