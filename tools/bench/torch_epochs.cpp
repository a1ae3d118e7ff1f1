// SPDX-License-Identifier: Apache-2.0
// Training speed of the trainable `torch`, data-parallel over all ranks of the launch: times of epochs, validation
// included. Rank 0 prints one line of JSON. Run by torch_vs_ddp.py, or by hand:
//   mpirun -n 2 --bind-to core bench_torch_epochs SECONDS library=resnet.so data=digits.h5 width=16 ...

#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "comm/groups/group_factory.hpp"
#include "comm/mpi/environment.hpp"
#include "ddp/collective/mpi_collective.hpp"
#include "ranktune/trainables/trainable.hpp"
#include "support.hpp"

namespace {

using namespace ranktune;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

space::Value value_of(const std::string& text) {
    const char* const end = text.data() + text.size();
    std::int64_t whole = 0;
    if (std::from_chars(text.data(), end, whole).ptr == end) return space::Value(whole);
    double number = 0.0;
    if (std::from_chars(text.data(), end, number).ptr == end) return space::Value(number);
    return space::Value(text);
}

/// A trial outside of a study.
class Context final : public trainables::TrialContext {
  public:
    Context(ddp::Group& group, space::Configuration configuration)
        : group_(group), configuration_(std::move(configuration)) {}
    [[nodiscard]] const space::Configuration& configuration() const override { return configuration_; }
    [[nodiscard]] base::TrialId trial() const override { return base::TrialId(0); }
    [[nodiscard]] std::uint64_t seed() const override { return 1; }
    [[nodiscard]] base::Iteration iteration() const override { return 0; }
    [[nodiscard]] base::Iteration max_iterations() const override { return 1000; }
    [[nodiscard]] ddp::Group& group() const override { return group_; }
    [[nodiscard]] int cpus_per_rank() const override { return 1; }
    [[nodiscard]] std::vector<std::string> devices() const override { return {}; }
    void log(std::string_view line) override {
        std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
    }

  private:
    ddp::Group& group_;
    space::Configuration configuration_;
};

/// Epochs, the first of which does not count, until `limit` seconds have passed on rank 0.
void run(ddp::Group& group, space::Configuration configuration, double limit) {
    Context context(group, std::move(configuration));
    const auto trainable = trainables::find_trainable("torch").factory();
    trainable->setup(context);
    static_cast<void>(trainable->step(context));
    group.barrier();
    const double begin = seconds();
    const double cpu_begin = bench::cpu_seconds();
    int epochs = 0;
    double passed = 0.0;
    double loss = 0.0;
    while (passed < limit) {
        loss = trainable->step(context).front().second;
        ++epochs;
        passed = group.reduced(seconds() - begin, ddp::Reduce::max);
    }
    const double cpu = group.reduced(bench::cpu_seconds() - cpu_begin);
    if (group.rank() == 0)
        std::printf("{\"ranks\": %d, \"epochs\": %d, \"epoch_s\": %.6f, \"cpu_s\": %.6f, \"train_loss\": %.4f}\n",
                    group.size(), epochs, passed / epochs, cpu / epochs, loss);
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: bench_torch_epochs SECONDS library=FILE OPTION=VALUE...\n");
        return 2;
    }
    space::Configuration configuration;
    for (int i = 2; i < argc; ++i) {
        const std::string argument = argv[i];
        const std::size_t sign = argument.find('=');
        configuration.set(argument.substr(0, sign), value_of(argument.substr(sign + 1)));
    }
    const comm::mpi::Environment environment;
    comm::GroupFactory factory(environment);
    std::vector<base::Rank> ranks;
    for (int rank = 0; rank < environment.size(); ++rank) ranks.emplace_back(static_cast<std::uint32_t>(rank));
    const std::atomic<bool> abort{false};
    const auto group = ddp::form_mpi_collective(factory, ranks, 1, abort);
    run(*group, std::move(configuration), std::atof(argv[1]));
    return 0;
}
