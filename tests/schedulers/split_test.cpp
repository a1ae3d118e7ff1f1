// SPDX-License-Identifier: Apache-2.0
#include "schedulers/rungs/ranked_split.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ranktune/base/error.hpp"
#include "ranktune/base/rng.hpp"
#include "schedulers/rungs/levels.hpp"
#include "support/catch.hpp"

namespace split_test {

using namespace ranktune;
using namespace ranktune::schedulers;
using study::Ranked;

namespace {

using Rule = BestCount::Rule;

bool worse_last(const Ranked& a, const Ranked& b) { return study::better(a, b); }

} // namespace

TEST_CASE("the number of the best follows its rule", "[schedulers]") {
    const auto counts = [](Rule rule, double eta) {
        std::vector<std::size_t> all;
        for (std::size_t n = 0; n <= 9; ++n) all.push_back(BestCount(rule, eta)(n));
        return all;
    };
    CHECK(counts(Rule::floor, 3) == std::vector<std::size_t>{0, 0, 0, 1, 1, 1, 2, 2, 2, 3});
    CHECK(counts(Rule::at_least_one, 3) == std::vector<std::size_t>{0, 1, 1, 1, 1, 1, 2, 2, 2, 3});
    CHECK(counts(Rule::quantile, 3) == std::vector<std::size_t>{0, 1, 1, 1, 2, 2, 2, 3, 3, 3});
    CHECK(counts(Rule::quantile, 2.5) == std::vector<std::size_t>{0, 1, 1, 1, 2, 2, 3, 3, 3, 4});
}

TEST_CASE("a split agrees with sorting, after every insertion", "[schedulers]") {
    base::RngStream random(11, base::Purpose::fault);
    for (const auto rule : {Rule::floor, Rule::at_least_one, Rule::quantile}) {
        for (const double eta : {2.0, 3.0, 7.0}) {
            const BestCount count(rule, eta);
            RankedSplit split(count);
            std::vector<Ranked> all;
            for (std::uint32_t i = 0; i < 200; ++i) {
                const double minus_infinity = -std::numeric_limits<double>::infinity();
                const Ranked entry{random.below(9) == 0 ? minus_infinity : static_cast<double>(random.below(30)),
                                   base::TrialId(199 - i)};
                const bool would = split.would_be_in_best(entry);
                const std::size_t announced = split.next_best_count();
                split.insert(entry);
                all.push_back(entry);
                std::sort(all.begin(), all.end(), worse_last);
                const std::size_t best = count(all.size());
                REQUIRE(split.valid());
                REQUIRE(split.size() == all.size());
                REQUIRE(announced == best);
                const auto place = std::find(all.begin(), all.end(), entry) - all.begin();
                REQUIRE(would == (static_cast<std::size_t>(place) < best));
                REQUIRE(split.in_best(entry) == would);
                const auto last = all.begin() + static_cast<std::ptrdiff_t>(best);
                const auto in_best = [&split](const Ranked& each) { return split.in_best(each); };
                REQUIRE(std::all_of(all.begin(), last, in_best));
                REQUIRE(std::none_of(last, all.end(), in_best));
            }
        }
    }
}

TEST_CASE("the quantile is that of linear interpolation, exact at its ends", "[schedulers]") {
    RankedSplit split(BestCount(Rule::quantile, 4));
    auto add = [&split, next = 0U](double score) mutable { split.insert({score, base::TrialId(next++)}); };
    add(1);
    CHECK(split.quantile() == 1);
    add(2);
    CHECK(split.quantile() == Approx(1.75)); // numpy.percentile([1, 2], 75)
    add(4);
    CHECK(split.quantile() == Approx(3));
    add(8);
    CHECK(split.quantile() == Approx(5));
    add(16);
    CHECK(split.quantile() == 8); // on an element
    add(-std::numeric_limits<double>::infinity());
    CHECK(split.quantile() == Approx(7)); // {-inf 1 2 4 8 16}: 3.75 -> between 4 and 8
    RankedSplit low(BestCount(Rule::quantile, 2));
    low.insert({5, base::TrialId(0)});
    low.insert({-std::numeric_limits<double>::infinity(), base::TrialId(1)});
    CHECK(low.quantile() == -std::numeric_limits<double>::infinity()); // not NaN
}

TEST_CASE("a damaged snapshot of a split is refused", "[schedulers]") {
    RankedSplit split(BestCount(Rule::floor, 3));
    for (std::uint32_t i = 0; i < 20; ++i) split.insert({static_cast<double>(i * 7 % 20), base::TrialId(i)});
    study::Bytes bytes;
    study::Encoder out(bytes);
    split.snapshot(out);
    const auto read = [](const study::Bytes& from, double eta) {
        RankedSplit other(BestCount(Rule::floor, eta));
        study::Decoder in(from);
        other.restore(in);
        return other.size();
    };
    CHECK(read(bytes, 3) == 20);
    CHECK_THROWS_AS(read(bytes, 2), base::FormatError); // another number of best ones
    auto swapped = bytes;
    std::swap_ranges(swapped.begin() + 1, swapped.begin() + 9, swapped.end() - 9);
    CHECK_THROWS_AS(read(swapped, 3), base::FormatError);
}

TEST_CASE("rungs are counted in integers", "[schedulers]") {
    using Levels = std::vector<base::Iteration>;
    CHECK(integer_levels(1, 3, 27, 0) == Levels{1, 3, 9, 27});
    CHECK(integer_levels(1, 3, 28, 0) == Levels{1, 3, 9, 27, 28});
    CHECK(integer_levels(2, 3, 20, 1) == Levels{6, 18, 20});
    CHECK(integer_levels(1, 3, 9, 5) == Levels{9});
    CHECK(integer_levels(1, 3, 1, 0) == Levels{1});
    // Where floating-point logarithms lose or win one.
    CHECK(integer_levels(1, 3, 243, 0).size() == 6);
    CHECK(integer_levels(1, 3, 59049, 0).size() == 11);
    CHECK(integer_levels(1, 3, 129140163, 0).size() == 18);
    CHECK(integer_levels(1, 10, 1000, 0) == Levels{1, 10, 100, 1000});
    const auto most = std::numeric_limits<base::Iteration>::max();
    CHECK(integer_levels(1, 2, most, 0).size() == 65); // 2^0 .. 2^63, and the ceiling
    CHECK(integer_levels(most - 1, 3, most, 0) == Levels{most - 1, most});

    CHECK(ray_levels(1, 4, 100, 0, 64) == Levels{1, 4, 16, 64});
    CHECK(ray_levels(1, 10, 1000, 0, 64) == Levels{1, 10, 100, 1000});
    CHECK(ray_levels(1, 3, 243, 2, 64) == Levels{9, 27, 81, 243});
    CHECK(ray_levels(2.5, 3, 100, 0, 64) == Levels{3, 8, 23, 68});
    CHECK(ray_levels(1, 4, 10, 9, 64).empty());
    CHECK(ray_levels(1, 1.0001, 100, 0, 64).size() == 65);
}

TEST_CASE("brackets are drawn with weight e^rungs, from seed and trial alone", "[schedulers]") {
    const BracketDraw draw(42, {4, 3, 1, 0});
    const BracketDraw again(42, {4, 3, 1, 0});
    const BracketDraw other(43, {4, 3, 1, 0});
    std::vector<double> share(4, 0.0);
    std::size_t differ = 0;
    constexpr std::uint32_t trials = 40000;
    for (std::uint32_t i = trials; i-- > 0;) {
        const std::uint32_t bracket = draw(base::TrialId(i));
        REQUIRE(bracket == again(base::TrialId(i)));
        if (bracket != other(base::TrialId(i))) ++differ;
        share.at(bracket) += 1.0 / trials;
    }
    const double sum = std::exp(4) + std::exp(3) + std::exp(1) + 1;
    CHECK(share[0] == Approx(std::exp(4) / sum).margin(0.01));
    CHECK(share[1] == Approx(std::exp(3) / sum).margin(0.01));
    CHECK(share[2] == Approx(std::exp(1) / sum).margin(0.005));
    CHECK(share[3] == Approx(1 / sum).margin(0.003));
    CHECK(differ > trials / 4);
}

} // namespace split_test
