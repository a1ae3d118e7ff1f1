// SPDX-License-Identifier: Apache-2.0
#include "models/ped_anova.hpp"

#include "support/catch.hpp"

using ranktune::models::pearson_divergence;
using ranktune::models::Scale;
using ranktune::models::top_share;
using Counts = std::vector<std::uint32_t>;

TEST_CASE("PED-ANOVA of numbers gives the values of Optuna 5.0", "[models]") {
    const auto divergence = [](const Counts& top, const Counts& all) {
        return pearson_divergence(top, all, Scale::numbers);
    };
    CHECK(divergence({0, 0, 0, 1, 2, 3, 1, 0, 0, 0}, {5, 5, 6, 5, 4, 5, 6, 5, 4, 5}) ==
          Approx(1.00699938032226).epsilon(1e-9));
    CHECK(divergence({0, 1, 0, 1, 0}, {4, 6, 5, 3, 2}) == Approx(0.0553497402274363).epsilon(1e-9));
    CHECK(divergence({0, 0, 7}, {10, 20, 30}) == Approx(0.602045580065653).epsilon(1e-9));
    Counts top(50, 0);
    Counts all;
    for (std::uint32_t cell = 0; cell < 50; ++cell) all.push_back(cell * 7 % 5 + 1);
    top[31] = 2;
    top[33] = 5;
    top[34] = top[40] = 1;
    CHECK(divergence(top, all) == Approx(5.41698152071348).epsilon(1e-9));
}

TEST_CASE("PED-ANOVA of categories gives the values of Optuna 5.0", "[models]") {
    const Counts all{20, 22, 18};
    CHECK(pearson_divergence(Counts{6, 1, 0}, all, Scale::categories) == Approx(0.238490690318009).epsilon(1e-9));
    CHECK(pearson_divergence(Counts{2, 2, 3}, all, Scale::categories) == Approx(0.0208372609743217).epsilon(1e-9));
}

TEST_CASE("PED-ANOVA: what does not separate the best has no importance", "[models]") {
    const Counts all{20, 22, 18};
    for (const Scale scale : {Scale::numbers, Scale::categories}) {
        CHECK(pearson_divergence(all, all, scale) == Approx(0.0).margin(1e-12));
        CHECK(pearson_divergence(Counts{0, 0, 0}, all, scale) == 0.0);
        CHECK(pearson_divergence(Counts{3}, Counts{30}, scale) == Approx(0.0).margin(1e-12));
    }
}

TEST_CASE("the best share of trials includes ties with its last one", "[models]") {
    using Share = std::vector<bool>;
    CHECK(top_share(std::vector<double>{0.4, 0.1, 0.3, 0.2}, 0.5) == Share{false, true, false, true});
    CHECK(top_share(std::vector<double>{0.4, 0.1, 0.3, 0.2}, 0.1) == Share{false, true, false, false});
    CHECK(top_share(std::vector<double>{0.1, 0.1, 0.3, 0.1}, 0.5) == Share{true, true, false, true});
    CHECK(top_share(std::vector<double>{}, 0.5).empty());
}
