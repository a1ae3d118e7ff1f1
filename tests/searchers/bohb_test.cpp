// SPDX-License-Identifier: Apache-2.0
// The searcher of BOHB against the rules of the paper and of HpBandSter, each computed anew here.
#include "searchers/bohb.hpp"

#include <array>
#include <cmath>
#include <map>
#include <set>

#include "models/kernel_density.hpp"
#include "ranktune/base/error.hpp"
#include "searchers/built_in.hpp"
#include "searchers/table.hpp"
#include "support/catch.hpp"

namespace bohb_test {

using namespace ranktune;
using namespace ranktune::searchers;
using namespace ranktune::searchers::testing;

namespace {

constexpr std::uint64_t seed = 11;
constexpr std::uint32_t suggestions = 300;

/// How many of the first suggestions are those of random search.
std::uint32_t random_ones(BohbModel& model, const Table& table) {
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < suggestions; ++i)
        count += model.suggest(i, table.seen, {}).configuration == table.space.sample(seed, TrialId(i)) ? 1 : 0;
    return count;
}

bool has_model(BohbModel& model, const Table& table) { return random_ones(model, table) < suggestions; }

std::vector<double> unit_of(const Table& table, const Suggestion& suggestion) {
    return table.space.encode(suggestion.configuration);
}

/// Only the model suggests.
BohbModel::Options modelled() {
    BohbModel::Options options;
    options.random_fraction = 0.0;
    return options;
}

double squared_distance(const std::vector<double>& a, double b) {
    double sum = 0.0;
    for (const double x : a) sum += (x - b) * (x - b);
    return sum;
}

} // namespace

TEST_CASE("BOHB: the defaults are those of HpBandSter", "[searchers][bohb]") {
    const space::Configuration options = chosen("bohb").options;
    CHECK(options.text() ==
          "min_points_in_model=0 top_n_percent=15 num_samples=64 "
          "random_fraction=0.3333333333333333 bandwidth_factor=3.0 min_bandwidth=0.001 avoid_duplicates=false");
    CHECK(options.at("random_fraction").as_double() == 1.0 / 3.0);
}

TEST_CASE("BOHB: the sizes of good and bad", "[searchers][bohb]") {
    // d = 6: HpBandSter asks for 7 points, but both densities need more than d.
    for (std::size_t n = 0; n < 14; ++n) CHECK_FALSE(split(n, n, 7, 6, 15));
    CHECK(split(14, 14, 7, 6, 15) == GoodAndBad{7, 7});
    CHECK(split(20, 20, 7, 6, 15) == GoodAndBad{7, 13}); // 17 bad ones are wanted, 13 are left
    CHECK(split(48, 48, 7, 6, 15) == GoodAndBad{7, 40});
    CHECK(split(53, 53, 7, 6, 15) == GoodAndBad{7, 45}); // one is neither
    CHECK(split(54, 54, 7, 6, 15) == GoodAndBad{8, 45});
    CHECK(split(100, 100, 7, 6, 15) == GoodAndBad{15, 85});
    CHECK(split(1000, 1000, 7, 6, 15) == GoodAndBad{150, 850});
    // More points for each density.
    CHECK_FALSE(split(26, 26, 20, 6, 15));
    CHECK(split(27, 27, 20, 6, 15) == GoodAndBad{20, 7});
    CHECK(split(100, 100, 20, 6, 15) == GoodAndBad{20, 80});
    // A large share leaves too few bad ones of a small number.
    CHECK_FALSE(split(14, 14, 7, 6, 90));
    CHECK(split(70, 70, 7, 6, 90) == GoodAndBad{63, 7});
    // Points that are not finite are not good.
    CHECK_FALSE(split(14, 6, 7, 6, 15));
    CHECK(split(14, 7, 7, 6, 15) == GoodAndBad{7, 7});
    CHECK(split(100, 9, 7, 6, 15) == GoodAndBad{9, 85});
}

TEST_CASE("BOHB: with d = 6 the first model is made of 14 points", "[searchers][bohb]") {
    const auto space = cube(6);
    Table table(space);
    BohbModel model(space, seed, {});
    const auto score = [](const std::vector<double>& unit) { return -squared_distance(unit, 0.5); };
    table.add_random(13, score);
    CHECK(random_ones(model, table) == suggestions);
    table.add_random(1, score);
    const std::uint32_t random = random_ones(model, table);
    CHECK(random > suggestions / 3 - 35); // four standard deviations
    CHECK(random < suggestions / 3 + 35);
}

TEST_CASE("BOHB: a suggestion says whether it is random, and why", "[searchers][bohb]") {
    const auto space = cube(6);
    Table table(space);
    BohbModel model(space, seed, {});
    const auto score = [](const std::vector<double>& unit) { return -squared_distance(unit, 0.5); };
    for (const bool enough : {false, true}) {
        table.add_random(enough ? 1 : 13, score);
        std::uint32_t modelled = 0;
        for (std::uint32_t i = 0; i < suggestions; ++i) {
            const auto [suggested, basis] = model.suggest(i, table.seen, {});
            const bool random = suggested == table.space.sample(seed, TrialId(i));
            REQUIRE(basis.model == (random ? "random" : "bohb"));
            REQUIRE(basis.results == (random ? 0 : 14));
            REQUIRE(basis.gain.has_value() == !random);
            if (!random) ++modelled;
            if (!enough && basis.note == "too few results at any iteration for a model") ++modelled;
        }
        CHECK(modelled > suggestions / 2);
        CHECK(modelled < suggestions);
    }
}

TEST_CASE("BOHB: min_points_in_model puts the model off", "[searchers][bohb]") {
    const auto space = cube(2);
    Table table(space);
    BohbModel::Options options;
    options.min_points_in_model = 10;
    BohbModel model(space, seed, options);
    table.add_random(12, [](const auto& unit) { return unit[0]; });
    CHECK_FALSE(has_model(model, table));
    table.add_random(1, [](const auto& unit) { return unit[0]; });
    CHECK(has_model(model, table));
}

TEST_CASE("BOHB: a suggestion is the best of 64 points by the quotient of the densities", "[searchers][bohb]") {
    const auto space = cube(3);
    Table table(space);
    table.add_random(40, [](const auto& unit) { return -squared_distance(unit, 0.3); });
    BohbModel model(space, seed, modelled());
    // Without absent values, the stream is used for the first draw and the points.
    LargestBudget budget([](std::size_t, std::size_t) { return true; }, LargestBudget::Violators::ordered);
    budget.read(table.seen);
    const auto points = budget.points();
    std::vector<double> best;
    std::vector<double> others;
    for (std::size_t i = 0; i < 40; ++i) { // 15 % of 40 are 6, 85 % are 34
        const auto unit = table.seen.point(points[i].number);
        auto& into = i < 6 ? best : others;
        into.insert(into.end(), unit.begin(), unit.end());
    }
    const models::KernelDensity good(best, {0, 0, 0}, 1e-3);
    const models::KernelDensity bad(others, {0, 0, 0}, 1e-3);
    for (std::uint32_t index = 0; index < 20; ++index) {
        base::RngStream random(seed, base::Purpose::suggest, index);
        (void)random.uniform();
        std::vector<double> expected;
        double least = infinite;
        for (int i = 0; i < 64; ++i) {
            const std::vector<double> point = good.draw_near(random, 3.0);
            const double quotient =
                std::max(1e-32, std::exp(bad.log_density(point))) / std::max(1e-32, std::exp(good.log_density(point)));
            if (quotient >= least) continue;
            least = quotient;
            expected = point;
        }
        CHECK(model.suggest(index, table.seen, {}).configuration == space.decode(expected));
    }
}

TEST_CASE("BOHB: suggestions gather where the good points are", "[searchers][bohb]") {
    const auto space = space_of({{"lr", "loguniform(1e-6, 1)"}, {"n", "randint(0, 100)"}, {"x", "uniform(-5, 5)"}});
    Table table(space);
    table.add_random(100, [](const auto& unit) { return -squared_distance(unit, 0.75); });
    BohbModel model(space, seed, modelled());
    double distance = 0.0;
    for (std::uint32_t i = 0; i < 100; ++i)
        distance += squared_distance(unit_of(table, model.suggest(i, table.seen, {})), 0.75) / 100.0;
    CHECK(distance < 0.1); // of random points: 3 (1/12 + 1/16) = 0.44
}

TEST_CASE("BOHB: the largest budget with a model counts, smaller ones are forgotten", "[searchers][bohb]") {
    const auto space = cube(2);
    Table table(space);
    BohbModel model(space, seed, modelled());
    const auto mean = [&] {
        double sum = 0.0;
        for (std::uint32_t i = 0; i < 100; ++i) sum += unit_of(table, model.suggest(i, table.seen, {}))[0] / 100.0;
        return sum;
    };
    table.add_random(
        60, [](const auto& unit) { return -unit[0]; }, 3);
    CHECK(mean() < 0.3);
    table.add_random(
        5, [](const auto& unit) { return unit[0]; }, 9);
    CHECK(mean() < 0.3); // 2 (d + 1) = 6 are needed
    table.add_random(
        25, [](const auto& unit) { return unit[0]; }, 9);
    CHECK(mean() > 0.7);
    table.add_random(
        200, [](const auto& unit) { return -unit[0]; }, 3);
    CHECK(mean() > 0.7);
}

TEST_CASE("BOHB: failed trials and values that are not finite are bad, minus infinity as a loss, too",
          "[searchers][bohb]") {
    const auto space = cube(2);
    BohbModel model(space, seed, modelled());
    const auto failing = [&](auto fail) {
        Table table(space);
        for (std::uint32_t i = 0; i < 60; ++i) {
            const std::vector<double> unit = space.encode(space.sample(99, TrialId(i)));
            if (unit[0] < 0.5)
                fail(table, unit);
            else
                table.add(unit, unit[1]);
        }
        std::uint32_t left = 0;
        for (std::uint32_t i = 0; i < 200; ++i)
            left += unit_of(table, model.suggest(i, table.seen, {}))[0] < 0.5 ? 1 : 0;
        return left;
    };
    const std::uint32_t failed = failing([](Table& table, const auto& unit) { table.add_failed(unit); });
    CHECK(failed < 20);
    for (const double loss : {-infinite, infinite, std::numeric_limits<double>::quiet_NaN()})
        CHECK(failing([&](Table& table, const auto& unit) { table.add(unit, study::score(loss, study::Mode::min)); }) ==
              failed);
}

TEST_CASE("BOHB: a study of failures goes on at random", "[searchers][bohb]") {
    const auto space = cube(1);
    Table table(space);
    for (int i = 0; i < 50; ++i) table.add_failed({0.5});
    table.add({0.5}, 1.0);
    BohbModel model(space, seed, {});
    CHECK_FALSE(has_model(model, table));
}

TEST_CASE("BOHB: three trials of NaN and infinities for 10 steps, then complete [*NanInf]", "[searchers][bohb]") {
    const auto space = cube(1);
    Table table(space);
    BohbModel model(space, seed, {});
    const std::array values{std::numeric_limits<double>::quiet_NaN(), infinite, -infinite};
    for (std::uint32_t i = 0; i < 3; ++i) table.ask(model.suggest(i, table.seen, {}).configuration);
    for (base::Iteration step = 1; step <= 10; ++step)
        for (std::uint32_t i = 0; i < 3; ++i)
            table.seen.reported(TrialId(i), step, study::score(values[i], study::Mode::max));
    for (std::uint32_t i = 0; i < 3; ++i) table.seen.over(TrialId(i), 10, study::TrialPhase::finished);
    CHECK(random_ones(model, table) == suggestions);
}

TEST_CASE("BOHB: an absent value comes from a row that has one, with all else that is absent", "[searchers][bohb]") {
    const double none = std::numeric_limits<double>::quiet_NaN();
    const std::vector<std::uint32_t> levels{0, 3, 0, 0};
    std::set<double> firsts;
    std::set<double> lasts;
    for (std::uint32_t draw = 0; draw < 50; ++draw) {
        // The first coordinate of the last row is absent, too: HpBandSter leaves that as it is.
        std::vector<double> rows{0.1, 1, 0.3, none, 0.5, none, none, none, none, 2, 0.8, none};
        base::RngStream random(draw, base::Purpose::suggest);
        impute(rows, levels, random);
        CHECK((rows[0] == 0.1 && rows[1] == 1.0 && rows[2] == 0.3 && rows[4] == 0.5 && rows[9] == 2.0));
        // Level and value of the second row are those of one other row.
        CHECK(((rows[5] == 1.0 && rows[6] == 0.3) || (rows[5] == 2.0 && rows[6] == 0.8)));
        CHECK((rows[8] == 0.1 || rows[8] == 0.5));
        firsts.insert(rows[5]);
        // No row has the last one.
        for (const std::size_t at : {3U, 7U, 11U}) {
            CHECK(rows[at] >= 0.0);
            CHECK(rows[at] < 1.0);
            lasts.insert(rows[at]);
        }
    }
    CHECK(firsts.size() == 2);
    CHECK(lasts.size() == 150);

    std::vector<double> categories{none, none};
    base::RngStream random(1, base::Purpose::suggest);
    impute(categories, std::vector<std::uint32_t>{4}, random);
    for (const double level : categories) CHECK((level == std::floor(level) && level >= 0 && level < 4));
}

TEST_CASE("BOHB: in a conditional space it finds the branch and its optimum", "[searchers][bohb]") {
    const auto when = [](const std::string& name, const std::string& call, const std::string& condition) {
        return space::Parameter{name, space::parse_domain(call), space::Condition::parse(condition)};
    };
    const space::SearchSpace space({{"kind", space::parse_domain("choice(['a', 'b', 'c'])"), std::nullopt},
                                    when("a.x", "uniform(0, 1)", "kind == 'a'"),
                                    when("b.x", "uniform(0, 1)", "kind == 'b'")});
    Table table(space);
    BohbModel model(space, seed, {});
    std::map<std::string, int> count;
    double distance = 0.0;
    for (std::uint32_t i = 0; i < 150; ++i) {
        const auto suggestion = model.suggest(i, table.seen, {}).configuration;
        const std::string kind = suggestion.at("kind").as_string();
        CHECK(suggestion.contains("a.x") == (kind == "a"));
        CHECK(suggestion.contains("b.x") == (kind == "b"));
        const double off = kind == "b" ? std::abs(suggestion.at("b.x").as_double() - 0.8) : 2.0;
        if (i >= 50) {
            ++count[kind];
            if (kind == "b") distance += off;
        }
        table.seen.reported(table.ask(suggestion), 1, -off);
    }
    CHECK(count["b"] > 60); // at random: 33
    CHECK(distance / count["b"] < 0.2);
    CHECK(count.size() == 3); // and it still looks elsewhere
}

TEST_CASE("BOHB: ordered choices and integers are numbers; grids are cycled through, not learned",
          "[searchers][bohb]") {
    const auto space = space_of({{"size", "choice([1, 2, 3, 4, 5, 6, 7, 8], ordered=true)"},
                                 {"g", "grid(['p', 'q'])"},
                                 {"n", "randint(0, 8)"}});
    Table table(space);
    // Points of a grid have no coordinate; d = 2.
    table.add_random(30, [](const auto& unit) { return -std::abs(unit[0] - 0.9) - std::abs(unit[1] - 0.1); });
    BohbModel model(space, seed, modelled());
    double size = 0.0;
    double n = 0.0;
    for (std::uint32_t i = 0; i < 100; ++i) {
        const auto suggestion = model.suggest(i, table.seen, {}).configuration;
        CHECK(suggestion.at("g") == space::Value(i % 2 == 0 ? "p" : "q"));
        size += suggestion.at("size").as_double() / 100.0;
        n += suggestion.at("n").as_double() / 100.0;
    }
    CHECK(size > 6.0);
    CHECK(n < 2.0);
}

TEST_CASE("BOHB: a suggestion is a function of the table, the seed and its number", "[searchers][bohb]") {
    const auto space = cube(2);
    Table table(space);
    BohbModel model(space, seed, {});
    std::vector<std::size_t> lines;
    std::vector<space::Configuration> answers;
    for (std::uint32_t i = 0; i < 60; ++i) {
        lines.push_back(table.seen.size());
        answers.push_back(model.suggest(i, table.seen, {}).configuration);
        table.seen.reported(table.ask(answers.back()), 1 + i % 3, -squared_distance(space.encode(answers.back()), 0.4));
    }
    // Asked again in another order, by another searcher, of views and of a table that was restored.
    study::Bytes bytes;
    study::Encoder out(bytes);
    table.seen.snapshot(out);
    Observations restored(space.dimensions());
    study::Decoder in(bytes);
    restored.restore(in);
    BohbModel other(space, seed, {});
    BohbModel another_seed(space, seed + 1, {});
    std::uint32_t same = 0;
    for (std::uint32_t i = 60; i-- > 0;) {
        CHECK(model.suggest(i, table.seen.first(lines[i]), {}).configuration == answers[i]);
        CHECK(other.suggest(i, restored.first(lines[i]), {}).configuration == answers[i]);
        same += another_seed.suggest(i, table.seen.first(lines[i]), {}).configuration == answers[i] ? 1 : 0;
    }
    CHECK(same == 0);
}

TEST_CASE("BOHB: suggestions are those of random search until there is a model, which prepares a few ahead",
          "[searchers][bohb]") {
    const auto space = cube(2);
    Table table(space);
    const BohbSearcher searcher(space, seed, {});
    for (const bool enough : {false, true}) {
        table.add_random(enough ? 1 : 5, [](const auto& unit) { return unit[0]; });
        CHECK(searcher.prepares_ahead(16, table.seen) == (enough ? 2 : 0));
        CHECK(searcher.prepares_ahead(4000, table.seen) == (enough ? 16 : 0));
        CHECK(searcher.basis(0, table.seen).note.empty() == enough);
        for (std::uint32_t i = 0; i < 20; ++i)
            CHECK(searcher.suggest(i, table.seen) == table.space.sample(seed, TrialId(i)));
    }
    // What the model draws at random is not what trials without a ticket take.
    for (std::uint64_t ticket = 0; ticket < 20; ++ticket) {
        const Suggestion prepared = searcher.prepare(ticket, table.seen)();
        CHECK(prepared.configuration != *searcher.suggest(ticket, table.seen));
        CHECK(prepared == searcher.prepare(ticket, table.seen)());
    }
}

TEST_CASE("BOHB: too few points for a density are a mistake in a study file", "[searchers][bohb]") {
    const auto complaint = [](int points, bool reads_file) {
        const study::SearcherSpec searcher = chosen("bohb", {{"min_points_in_model", points}});
        std::string said;
        searcher.algorithm->check(
            {.options = searcher.options,
             .max_iterations = 9,
             .coordinates = 6,
             .is_right = [](std::string_view) { return true; },
             .reads_file = reads_file,
             .complain = [&](std::string_view option,
                             const std::string& message) { said = std::string(option) + ": " + message; }});
        return said;
    };
    CHECK(complaint(3, true) ==
          "min_points_in_model: 3 points are too few for a density over 6 parameters; use 0, or "
          "at least 7");
    CHECK(complaint(3, false).empty());
    CHECK(complaint(0, true).empty());
    CHECK(complaint(7, true).empty());
}

} // namespace bohb_test
