// SPDX-License-Identifier: Apache-2.0
#include "ranktune/study/spec.hpp"

#include "ranktune/base/error.hpp"
#include "support/catch.hpp"

namespace spec_test {

using namespace ranktune;
using namespace ranktune::study;

namespace {
StudySpec with_ranks(space::Domain domain) {
    StudySpec spec;
    spec.resources.ranks_parameter = "ranks";
    spec.space = space::SearchSpace({{"ranks", std::move(domain), {}}});
    return spec;
}
} // namespace

TEST_CASE("a fixed number of ranks needs no configuration", "[study]") {
    StudySpec spec;
    spec.resources.ranks = 3;
    CHECK(spec.ranks_for({}) == 3);
    CHECK(spec.max_ranks_per_trial() == 3);
}

TEST_CASE("the number of ranks may be a parameter of the space", "[study]") {
    const StudySpec spec = with_ranks(space::Choice{{1, 4, 2}, false});
    space::Configuration configuration;
    configuration.set("ranks", 2);
    CHECK(spec.ranks_for(configuration) == 2);
    CHECK(spec.max_ranks_per_trial() == 4);
    CHECK(with_ranks(space::IntRange{1, 7, false, 1}).max_ranks_per_trial() == 7);
    CHECK(with_ranks(space::IntRange{1, 10, false, 4}).max_ranks_per_trial() == 8);
    CHECK(with_ranks(space::Grid{{2, 6}}).max_ranks_per_trial() == 6);
    CHECK(with_ranks(space::Constant{5}).max_ranks_per_trial() == 5);
}

TEST_CASE("a configuration without the number of ranks, or with an impossible one, is refused", "[study]") {
    const StudySpec spec = with_ranks(space::Choice{{0, 2}, false});
    CHECK_THROWS_AS(spec.ranks_for({}), base::UsageError);
    space::Configuration configuration;
    configuration.set("ranks", 0);
    CHECK_THROWS_AS(spec.ranks_for(configuration), base::UsageError);
}

} // namespace spec_test
