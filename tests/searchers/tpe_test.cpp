// SPDX-License-Identifier: Apache-2.0
// The searcher `tpe`: what it learns from, and that a suggestion is a function of ticket and table.
#include "searchers/tpe.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "searchers/built_in.hpp"
#include "searchers/table.hpp"
#include "support/catch.hpp"

namespace tpe_test {

using namespace ranktune;
using namespace ranktune::searchers;
using namespace ranktune::searchers::testing;

namespace {

constexpr std::uint64_t seed = 3;

space::Configuration prepared(const Table& table, std::uint64_t ticket, const TpeOptions& options = {}) {
    return TpeSearcher(table.space, seed, options).prepare(ticket, table.seen.first(table.seen.size()))().configuration;
}

/// Means of the coordinates of suggestions.
std::vector<double> mean_of(const Table& table, const TpeOptions& options = {}, int suggestions = 100) {
    std::vector<double> mean(table.space.dimensions(), 0.0);
    const TpeSearcher searcher(table.space, seed, options);
    for (int ticket = 0; ticket < suggestions; ++ticket) {
        const auto unit =
            table.space.encode(searcher.prepare(static_cast<std::uint64_t>(ticket), table.seen)().configuration);
        for (std::size_t j = 0; j < unit.size(); ++j) mean[j] += unit[j] / suggestions;
    }
    return mean;
}

/// The larger, the nearer to `best` in each coordinate.
auto near(double best) {
    return [best](const std::vector<double>& unit) {
        double sum = 0.0;
        for (const double x : unit) sum -= (x - best) * (x - best);
        return sum;
    };
}

space::Parameter parameter(std::string name, const std::string& call, const std::string& condition = "") {
    space::Parameter result{std::move(name), space::parse_domain(call), std::nullopt};
    if (!condition.empty()) result.condition = space::Condition::parse(condition);
    return result;
}

/// Numbers of all kinds, a category, conditions in two levels, a domain of one value, a grid.
space::SearchSpace rich() {
    return space::SearchSpace(
        {parameter("kind", "choice(['a', 'b', 'c'])"), parameter("lr", "loguniform(1e-5, 1)"),
         parameter("width", "lograndint(1, 1000)", "kind == 'a'"), parameter("layers", "randint(1, 5)", "kind == 'b'"),
         parameter("rate", "quniform(0, 1, 0.1)", "layers > 2"), parameter("noise", "randn(0, 1)", "kind != 'c'"),
         parameter("size", "choice([8, 16, 32], ordered=true)"), parameter("only", "randint(3, 4)", "kind == 'c'"),
         parameter("turn", "grid([1, 2])")});
}

/// Everything that can happen to trials: reports of several iterations, not finite values, failures, early ends, other
/// configurations. Grows from call to call.
struct History {
    explicit History(const space::SearchSpace& space) : table(space), random(9, base::user_purpose(0)) {}

    void step() {
        const auto what = random.below(8);
        if (open.empty() || what < 2) {
            open.push_back(table.ask(space_sample()));
            return;
        }
        const std::size_t which = random.below(open.size());
        const TrialId trial = open[which];
        const base::Iteration next = ++iteration[trial];
        if (what == 2) {
            --iteration[trial];
            table.seen.asked(trial, iteration[trial], table.space, space_sample()); // exploits
        } else if (what == 3) {
            table.seen.over(trial, next - 1,
                            random.below(2) == 0 ? study::TrialPhase::failed : study::TrialPhase::stopped);
            open.erase(open.begin() + static_cast<std::ptrdiff_t>(which));
        } else {
            const double value = random.below(6) == 0 ? -infinite : static_cast<double>(random.below(20));
            table.seen.reported(trial, next, value);
        }
    }
    space::Configuration space_sample() {
        return table.space.sample(4, TrialId(static_cast<std::uint32_t>(random.below(60))));
    }

    Table table;
    base::RngStream random;
    std::vector<TrialId> open;
    std::map<TrialId, base::Iteration> iteration;
};

} // namespace

TEST_CASE("TPE: defaults", "[searchers][tpe]") {
    CHECK(chosen("tpe").options.text() ==
          "n_startup_trials=10 n_ei_candidates=24 gamma=0.1 prior_weight=1.0 "
          "multivariate=true constant_liar=true branch_fraction=0.5");
    CHECK(good_results(0, 0.1) == 0);
    CHECK(good_results(1, 0.1) == 1);
    CHECK(good_results(10, 0.1) == 1);
    CHECK(good_results(11, 0.1) == 2);
    CHECK(good_results(240, 0.1) == 24);
    CHECK(good_results(9999, 0.1) == 25);
    CHECK(good_results(4, 1.0) == 4);
    CHECK(good_results(5, 0.001) == 1);
    CHECK(good_share(0.1, 0) == 0.1);
    CHECK(good_share(0.1, 1) == 0.1);
    CHECK(good_share(0.1, 16) == 0.05);
}

TEST_CASE("TPE: the first suggestions cover the space, and stopgaps are others", "[searchers][tpe]") {
    const space::SearchSpace space = cube(2);
    Table table(space);
    const TpeSearcher searcher(space, seed, {});
    std::set<int> cells;
    std::set<int> stopgap_cells;
    for (std::uint64_t i = 0; i < 16; ++i) { // a net: one point in each cell of 4 x 4
        const auto cell = [&](const space::Configuration& configuration) {
            const auto unit = space.encode(configuration);
            return static_cast<int>(unit[0] * 4) * 4 + static_cast<int>(unit[1] * 4);
        };
        cells.insert(cell(searcher.prepare(i, table.seen)().configuration));
        stopgap_cells.insert(cell(*searcher.suggest(i, table.seen)));
        CHECK(searcher.prepare(i, table.seen)().configuration != *searcher.suggest(i, table.seen));
    }
    CHECK(cells.size() == 16);
    CHECK(stopgap_cells.size() == 16);
    // Nine finite results, however many others there are, are too few.
    table.add_random(9, near(0.3));
    for (int i = 0; i < 20; ++i) table.add_failed({0.5, 0.5});
    for (int i = 0; i < 20; ++i) table.add({0.5, 0.5}, -infinite);
    CHECK(searcher.prepare(3, table.seen)().configuration == searcher.prepare(3, Observations(2))().configuration);
    table.add({0.3, 0.3}, 0.0);
    CHECK(searcher.prepare(3, table.seen)().configuration != searcher.prepare(3, Observations(2))().configuration);
}

TEST_CASE("TPE: suggestions lie near good results, in numbers of all kinds and categories", "[searchers][tpe]") {
    for (const char* domain :
         {"uniform(0, 1)", "loguniform(1e-4, 1)", "randint(0, 40)", "randint(0, 4000)", "qlograndint(1, 1000, 1)",
          "quniform(0, 1, 0.05)", "randn(0, 1)", "choice([1, 2, 3, 4, 5, 6], ordered=true)"}) {
        const space::SearchSpace space = space_of({{"other", "uniform(0, 1)"}, {"x", domain}});
        for (const bool multivariate : {true, false}) {
            for (const double best : {0.2, 0.75}) {
                INFO(domain << (multivariate ? " joint " : " independent ") << best);
                Table table(space);
                table.add_random(100, [&](const std::vector<double>& unit) { return -std::abs(unit[1] - best); });
                TpeOptions options;
                options.multivariate = multivariate;
                CHECK(mean_of(table, options)[1] == Approx(best).margin(0.1));
            }
        }
    }
    const space::SearchSpace space = space_of({{"other", "uniform(0, 1)"}, {"x", "choice(['a', 'b', 'c', 'd'])"}});
    for (const bool multivariate : {true, false}) {
        Table table(space);
        table.add_random(100, [](const std::vector<double>& unit) { return unit[1] == 0.375 ? 1.0 : 0.0; });
        TpeOptions options;
        options.multivariate = multivariate;
        int chosen_b = 0;
        for (std::uint64_t ticket = 0; ticket < 50; ++ticket)
            chosen_b += prepared(table, ticket, options).at("x").as_string() == "b" ? 1 : 0;
        CHECK(chosen_b >= 45);
    }
}

TEST_CASE("TPE: the joint density sees that parameters go together, independent ones do not", "[searchers][tpe]") {
    const space::SearchSpace space = cube(2);
    Table table(space);
    table.add_random(400, [](const std::vector<double>& unit) { return -std::abs(unit[0] - unit[1]); });
    const auto distance = [&](bool multivariate) {
        TpeOptions options;
        options.multivariate = multivariate;
        double sum = 0.0;
        for (std::uint64_t ticket = 0; ticket < 100; ++ticket) {
            const auto unit = space.encode(prepared(table, ticket, options));
            sum += std::abs(unit[0] - unit[1]) / 100;
        }
        return sum;
    };
    CHECK(distance(true) < 0.1);
    CHECK(distance(false) > 2 * distance(true));
}

TEST_CASE("TPE: a suggestion is a function of seed, ticket and table, however the table was read", "[searchers][tpe]") {
    const space::SearchSpace space = rich();
    for (const bool multivariate : {true, false}) {
        for (const bool liar : {true, false}) {
            TpeOptions options;
            options.multivariate = multivariate;
            options.constant_liar = liar;
            options.n_startup_trials = 3;
            const TpeSearcher following(space, seed, options);
            History history(space);
            for (std::uint64_t ticket = 0; ticket < 60; ++ticket) {
                for (int step = 0; step < 12; ++step) history.step();
                const Observations view = history.table.seen.first(history.table.seen.size());
                const space::Configuration expected = prepared(history.table, ticket, options);
                REQUIRE(following.prepare(ticket, view)().configuration == expected);
                REQUIRE(following.prepare(ticket, view)().configuration == expected);
                if (ticket % 20 == 19) { // an earlier view, then the newest again
                    const Observations earlier = view.first(view.size() / 2);
                    CHECK(following.prepare(ticket, earlier)().configuration ==
                          TpeSearcher(space, seed, options).prepare(ticket, earlier)().configuration);
                    CHECK(following.prepare(ticket, view)().configuration == expected);
                }
            }
        }
    }
}

TEST_CASE("TPE: trials that run count as bad", "[searchers][tpe]") {
    const space::SearchSpace space = cube(1);
    Table table(space);
    table.add_random(60, near(0.5));
    Table busy = table;
    for (int i = 0; i < 12; ++i) static_cast<void>(busy.ask(space.decode(std::vector<double>{0.5})));
    const auto spread = [&](const Table& of, bool liar) {
        TpeOptions options;
        options.constant_liar = liar;
        double sum = 0.0;
        for (std::uint64_t ticket = 0; ticket < 100; ++ticket)
            sum += std::abs(space.encode(prepared(of, ticket, options))[0] - 0.5) / 100;
        return sum;
    };
    CHECK(spread(busy, true) > 2 * spread(table, true));
    CHECK(spread(busy, false) == spread(table, false));
}

TEST_CASE("TPE: failed trials and values that are not finite count as bad", "[searchers][tpe]") {
    const space::SearchSpace space = cube(1);
    for (const bool failed : {true, false}) {
        Table table(space);
        // Good at both ends; what is tried above 0.5 comes to nothing.
        table.add_random(
            80, [](const std::vector<double>& unit) { return unit[0] > 0.5 ? -infinite : std::abs(unit[0] - 0.5); });
        for (int i = 0; failed && i < 40; ++i) table.add_failed({0.5 + i / 80.0});
        CHECK(mean_of(table)[0] < 0.2);
    }
}

TEST_CASE("TPE: equal results do no harm", "[searchers][tpe]") {
    const space::SearchSpace space = rich();
    Table table(space);
    table.add_random(100, [](const std::vector<double>&) { return 1.0; });
    std::set<std::string> different;
    for (std::uint64_t ticket = 0; ticket < 50; ++ticket) different.insert(prepared(table, ticket).text());
    CHECK(different.size() > 40);
}

TEST_CASE("TPE: the largest iteration with enough results counts", "[searchers][tpe]") {
    const space::SearchSpace space = cube(1);
    Table table(space);
    table.add_random(60, near(0.2), 1);
    table.add_random(9, near(0.75), 9);
    TpeOptions options;
    options.constant_liar = false; // trials that were not trained so far do not count
    CHECK(mean_of(table, options)[0] == Approx(0.2).margin(0.1));
    table.add_random(30, near(0.75), 9);
    CHECK(mean_of(table, options)[0] == Approx(0.75).margin(0.1));
}

TEST_CASE("TPE: a branch that looks worse is searched on", "[searchers][tpe]") {
    // Branch b is better only where y is near 0.8 and z near 0.2; a is good everywhere.
    const space::SearchSpace space(
        {parameter("kind", "choice(['a', 'b'])"), parameter("x", "uniform(0, 1)", "kind == 'a'"),
         parameter("y", "uniform(0, 1)", "kind == 'b'"), parameter("z", "uniform(0, 1)", "kind == 'b'")});
    const auto score = [](const space::Configuration& c) {
        if (c.at("kind").as_string() == "a") return -0.1 - 0.01 * c.at("x").as_double();
        const double y = c.at("y").as_double() - 0.8;
        const double z = c.at("z").as_double() - 0.2;
        return -0.05 - 4 * (y * y + z * z);
    };
    const auto found = [&](double branch_fraction, bool multivariate, std::uint64_t of_seed) {
        TpeOptions options;
        options.branch_fraction = branch_fraction;
        options.multivariate = multivariate;
        const TpeSearcher searcher(space, of_seed, options);
        Table table(space);
        int in_b = 0;
        double best = -infinite;
        for (std::uint64_t ticket = 0; ticket < 200; ++ticket) {
            const space::Configuration configuration = searcher.prepare(ticket, table.seen)().configuration;
            in_b += ticket >= 100 && configuration.at("kind").as_string() == "b" ? 1 : 0;
            best = std::max(best, score(configuration));
            table.seen.reported(table.ask(configuration), 1, score(configuration));
        }
        CHECK((branch_fraction == 0.0 || in_b >= 5));
        return best > -0.1 ? 1 : 0;
    };
    int with = 0;
    int without = 0;
    for (std::uint64_t of_seed = 0; of_seed < 8; ++of_seed) {
        for (const bool multivariate : {true, false}) {
            with += found(0.25, multivariate, of_seed);
            without += found(0.0, multivariate, of_seed);
        }
    }
    CHECK(with >= 12); // of 16
    CHECK(without < with);
}

TEST_CASE("TPE: a configuration of a finite space comes once, until all have been there", "[searchers][tpe]") {
    const space::SearchSpace space({parameter("kind", "choice(['a', 'b'])"), parameter("n", "randint(0, 6)"),
                                    parameter("m", "quniform(0, 1, 0.25)", "kind == 'b'"),
                                    parameter("only", "choice([7])")});
    constexpr std::size_t size = 6 + 30;
    for (const bool multivariate : {true, false}) {
        TpeOptions options;
        options.multivariate = multivariate;
        const TpeSearcher searcher(space, seed, options);
        Table table(space);
        std::set<std::string> different;
        for (std::uint64_t ticket = 0; ticket < size + 5; ++ticket) {
            const space::Configuration configuration = searcher.prepare(ticket, table.seen)().configuration;
            different.insert(configuration.text());
            table.seen.reported(table.ask(configuration), 1, static_cast<double>(ticket % 7));
            CHECK(different.size() == std::min<std::size_t>(ticket + 1, size));
        }
    }
}

TEST_CASE("TPE: without enough directions for a Sobol sequence, random points come first", "[searchers][tpe]") {
    const space::SearchSpace space = cube(3700);
    const Table table(space);
    const TpeSearcher searcher(space, seed, {});
    CHECK(searcher.prepare(0, table.seen)().configuration != searcher.prepare(1, table.seen)().configuration);
    CHECK(searcher.suggest(4, table.seen) == space.sample(seed, TrialId(4)));
}

} // namespace tpe_test
