// SPDX-License-Identifier: Apache-2.0
// Training speed of a trainable, data-parallel over all ranks of the launch: times of epochs, validation included. Rank
// 0 prints one line of JSON. `gpu=N` gives every rank the GPU of that number. Run by torch_vs_ddp.py and
// gpu_vs_torch.py, or by hand:
//   mpirun -n 2 --bind-to core bench_epochs SECONDS builtin=torch library=resnet.so data=digits.h5 width=16 ...

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include "comm/groups/group_factory.hpp"
#include "comm/mpi/environment.hpp"
#include "ddp/collective/mpi_collective.hpp"
#include "ddp/gradients/device_groups.hpp"
#include "ranktune/trainables/trainable.hpp"
#include "support.hpp"
#include "trial_context.hpp"

namespace {

using namespace ranktune;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Epochs, the first two of which do not count, until `limit` seconds have passed on rank 0.
void run(ddp::Group& group, const bench::TrialOptions& options, double limit) {
    bench::TrialContext context(group, options);
    const auto trainable = trainables::find_trainable(options.builtin).factory();
    trainable->setup(context);
    for (int warm = 0; warm < 2; ++warm) static_cast<void>(trainable->step(context));
    group.barrier();
    const double begin = seconds();
    const double cpu_begin = bench::cpu_seconds();
    int epochs = 0;
    double passed = 0.0;
    double loss = 0.0;
    do { // at least one
        loss = trainable->step(context).front().second;
        ++epochs;
        passed = group.reduced(seconds() - begin, ddp::Reduce::max);
    } while (passed < limit);
    const double cpu = group.reduced(bench::cpu_seconds() - cpu_begin);
    if (group.rank() == 0)
        std::printf("{\"ranks\": %d, \"epochs\": %d, \"epoch_s\": %.6f, \"cpu_s\": %.6f, \"train_loss\": %.6f}\n",
                    group.size(), epochs, passed / epochs, cpu / epochs, loss);
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: bench_epochs SECONDS builtin=NAME [gpu=N] OPTION=VALUE...\n");
        return 2;
    }
    const comm::mpi::Environment environment;
    comm::GroupFactory factory(environment);
    std::vector<base::Rank> ranks;
    for (int rank = 0; rank < environment.size(); ++rank) ranks.emplace_back(static_cast<std::uint32_t>(rank));
    const std::atomic<bool> abort{false};
    const char* const host = std::getenv("NCCL_HOSTID"); // ranks may share a GPU when they differ in it
    ddp::DeviceGroups groups({.host = host != nullptr ? host : "here"});
    const auto group = ddp::form_mpi_collective(factory, ranks, 1, abort, &groups, "bench");
    try {
        run(*group, bench::trial_options({argv + 2, argv + argc}), std::atof(argv[1]));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_epochs: %s\n", error.what());
        return 1;
    }
    return 0;
}
