// SPDX-License-Identifier: Apache-2.0
// Whole studies with BOHB in virtual time.
#include <string>

#include "setups.hpp"
#include "support/catch.hpp"

namespace bohb_test {

using namespace ranktune;
using namespace ranktune::simulate;
using simulate::testing::spec;

namespace {

/// A study with six hyper-parameters.
Figures with_hyperband(const std::string& searcher, std::uint64_t seed) {
    study::StudySpec study = spec("num_trials = 490\nmax_iterations = 27", // ten rounds of 27 + 12 + 6 + 4 trials
                                  "lr = \"loguniform(1e-5, 1)\"\nwidth = \"randint(16, 257)\"\n"
                                  "decay = \"uniform(0, 1)\"\ndrop = \"uniform(0, 1)\"\n[searcher]\ntype = \"" +
                                      searcher + "\"\n[scheduler]\ntype = \"hyperband\"\n");
    study.seed = seed;
    return simulate::simulate({study, Model{}, 4}, "uuid", "test", nullptr);
}

} // namespace

TEST_CASE("with HyperBand, BOHB finds better values than random search", "[simulate][bohb]") {
    constexpr std::uint64_t seeds = 60;
    std::uint64_t better = 0;
    std::uint64_t worse = 0;
    double random_regret = 0.0;
    double bohb_regret = 0.0;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const Figures random = with_hyperband("random", seed);
        const Figures bohb = with_hyperband("bohb", seed);
        CHECK(bohb.trials == random.trials);
        CHECK(bohb.best_reachable == random.best_reachable); // the same curves
        better += bohb.best > random.best ? 1 : 0;
        worse += bohb.best < random.best ? 1 : 0;
        random_regret += (random.best_reachable - random.best) / seeds;
        bohb_regret += (bohb.best_reachable - bohb.best) / seeds;
    }
    INFO("better " << better << ", worse " << worse << ", regret " << bohb_regret << " instead of " << random_regret);
    CHECK(better > worse);
    CHECK(bohb_regret < 0.8 * random_regret);
}

} // namespace bohb_test
