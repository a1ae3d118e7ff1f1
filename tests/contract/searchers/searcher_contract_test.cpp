// SPDX-License-Identifier: Apache-2.0
#include "searcher_contract.hpp"
#include "searchers/grid.hpp"
#include "searchers/random.hpp"
#include "searchers/sobol.hpp"
#include "support/catch.hpp"

using namespace ranktune;
using contract::check_searcher_contract;
using study::StudySpec;

TEST_CASE("the random searcher keeps the contract of searchers", "[searchers][contract]") {
    const auto make = [](const StudySpec& spec) {
        return std::make_unique<searchers::RandomSearcher>(spec.space, spec.seed);
    };
    check_searcher_contract(make, {});
}

TEST_CASE("the grid searcher keeps the contract of searchers", "[searchers][contract]") {
    const auto make = [](const StudySpec& spec) { return std::make_unique<searchers::GridSearcher>(spec.space); };
    check_searcher_contract(make, {.depends_on_seed = false, .continuous = false});
}

TEST_CASE("the scrambled Sobol searcher keeps the contract of searchers", "[searchers][contract]") {
    const auto make = [](const StudySpec& spec) {
        return std::make_unique<searchers::SobolSearcher>(spec.space, spec.seed, true);
    };
    check_searcher_contract(make, {});
}

TEST_CASE("the plain Sobol searcher keeps the contract of searchers", "[searchers][contract]") {
    const auto make = [](const StudySpec& spec) {
        return std::make_unique<searchers::SobolSearcher>(spec.space, spec.seed, false);
    };
    check_searcher_contract(make, {.depends_on_seed = false});
}
