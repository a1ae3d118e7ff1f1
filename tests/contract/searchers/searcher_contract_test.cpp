// SPDX-License-Identifier: Apache-2.0
// The contract, for every searcher of the library.
#include "ranktune/testing/contract.hpp"
#include "searchers/built_in.hpp"
#include "support/catch.hpp"

using namespace ranktune;

TEST_CASE("every searcher keeps the contract", "[searchers][contract]") {
    for (const auto& searcher : searchers::built_in()) {
        INFO(searcher->name);
        CHECK(ranktune::testing::check_searcher(*searcher) == std::vector<std::string>{});
    }
}
