// SPDX-License-Identifier: Apache-2.0
// What the ranks of a trial do together: reductions, copies, messages. docs/reference/group.md shows these functions.
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include <ranktune/base/buffer.hpp>
#include <ranktune/base/dtype.hpp>
#include <ranktune/base/half.hpp>
#include <ranktune/ddp/group.hpp>
#include <ranktune/ranktune.hpp>
#include <ranktune/testing/run_trial.hpp>

// ---- examples ----

double mean_loss(ranktune::Group& group, double my_sum, std::int64_t my_samples) {
    return group.reduced(my_sum) / static_cast<double>(group.reduced(my_samples));
}

/// The largest magnitude of each feature over the samples of all ranks.
void largest(ranktune::Group& group, std::vector<float>& magnitudes) {
    group.all_reduce(magnitudes, ranktune::Reduce::max);
}

/// Sums in bfloat16: added in float, rounded once.
void sum_of_halves(ranktune::Group& group, std::vector<ranktune::BFloat16>& values) { group.all_reduce(values); }

/// Rank 0 has read the table; afterwards all ranks have it.
void share_table(ranktune::Group& group, std::vector<double>& table) {
    std::uint64_t size = table.size();
    group.broadcast(std::span(&size, 1)); // the others do not know it yet
    table.resize(size);
    group.broadcast(table);
}

/// How long each rank took, on all of them.
std::vector<double> times_of_all(ranktune::Group& group, double my_seconds) {
    std::vector<double> all(static_cast<std::size_t>(group.size()));
    group.all_gather(std::span(&my_seconds, 1), all);
    return all;
}

/// A ring of domains: the first and last cell are copies of the neighbours' inner cells.
void exchange_edges(ranktune::Group& group, std::vector<float>& cells) {
    const int left = (group.rank() + group.size() - 1) % group.size();
    const int right = (group.rank() + 1) % group.size();
    const ranktune::Buffer all(cells);
    const std::size_t last = cells.size() - 1;
    group.send(all.part(1, 1), left); // returns at once: send first, then receive
    group.send(all.part(last - 1, 1), right);
    group.receive(all.part(last, 1), right);
    group.receive(all.part(0, 1), left);
}

/// Rank 0 prepares a file that all open.
template <class Prepare>
void prepare_once(ranktune::Group& group, const Prepare& prepare) {
    if (group.rank() == 0) prepare();
    group.barrier();
}

// ---- end of the examples ----

static void require(bool holds, const char* what) {
    if (!holds) throw ranktune::Error(what);
}

static void run_examples(ranktune::FunctionContext& context) {
    ranktune::Group& group = context.group();
    const int n = group.size();
    require(mean_loss(group, 3.0 * (group.rank() + 1), group.rank() + 1) == 3.0, "mean_loss");
    std::vector<float> magnitudes{static_cast<float>(group.rank()), static_cast<float>(-group.rank())};
    largest(group, magnitudes);
    require(magnitudes == std::vector<float>{static_cast<float>(n - 1), 0.0F}, "largest");
    std::vector<ranktune::BFloat16> halves(2, ranktune::BFloat16(0.5F));
    sum_of_halves(group, halves);
    require(static_cast<float>(halves[1]) == 0.5F * static_cast<float>(n), "sum_of_halves");
    std::vector<double> table;
    if (group.rank() == 0) table = {1.0, 2.0, 3.0};
    share_table(group, table);
    require(table == std::vector<double>{1.0, 2.0, 3.0}, "share_table");
    const auto times = times_of_all(group, group.rank() + 0.5);
    require(times.back() == n - 0.5 && times.front() == 0.5, "times_of_all");
    const auto own = static_cast<float>(group.rank());
    std::vector<float> cells{-1.0F, own, own + 0.5F, -1.0F};
    exchange_edges(group, cells);
    require(cells.front() == static_cast<float>((group.rank() + n - 1) % n) + 0.5F, "the left edge");
    require(cells.back() == static_cast<float>((group.rank() + 1) % n), "the right edge");
    int prepared = 0;
    prepare_once(group, [&] { ++prepared; });
    require(prepared == (group.rank() == 0 ? 1 : 0), "prepare_once");
}

int main() {
    using namespace ranktune::testing;
    static_assert(ranktune::base::dtype_of<ranktune::BFloat16>() == ranktune::DType::bfloat16);
    for (const int ranks : {1, 2, 3}) {
        const TrialRun run = run_trial(function(run_examples), {.ranks = ranks});
        std::printf("%d ranks: %s\n", ranks, run.failure.empty() ? "all well" : run.failure.c_str());
        if (!run.failure.empty()) return 1;
    }
    return 0;
}
