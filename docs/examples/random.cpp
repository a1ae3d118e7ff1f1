// SPDX-License-Identifier: Apache-2.0
// Chance that is the same on any number of ranks, in any order of events, and after a restart.
#include <algorithm>
#include <numeric>
#include <vector>

#include <ranktune/base/ids.hpp>
#include <ranktune/base/rng.hpp>

namespace {

constexpr auto noise = ranktune::base::user_purpose(0); // one number for each use
constexpr auto order = ranktune::base::user_purpose(1);

/// Of a trial at an iteration: no state that would have to be saved.
double noise_at(std::uint64_t seed, ranktune::base::TrialId trial, ranktune::base::Iteration iteration) {
    ranktune::base::RngStream stream(seed, noise, trial.value(), static_cast<std::uint32_t>(iteration));
    return stream.normal();
}

} // namespace

int main() {
    const ranktune::base::TrialId trial{7};
    std::vector<int> samples(100);
    std::iota(samples.begin(), samples.end(), 0);
    ranktune::base::RngStream stream(1, order, trial.value(), 3); // epoch 3
    std::shuffle(samples.begin(), samples.end(), stream);         // a UniformRandomBitGenerator

    const bool same = noise_at(1, trial, 5) == noise_at(1, trial, 5);
    const bool others = noise_at(1, trial, 5) != noise_at(1, trial.next(), 5);
    return same && others && stream.uniform() < 1.0 && stream.below(6) < 6 ? 0 : 1;
}
