// SPDX-License-Identifier: Apache-2.0
#include "searcher_contract.hpp"

#include <limits>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace ranktune::contract {
namespace {

using base::TrialId;
using searchers::Searcher;
using space::Configuration;
using Suggestion = std::optional<Configuration>;

constexpr std::uint32_t trials = 24;

space::Parameter parameter(std::string name, const std::string& call, const std::string& condition = "") {
    space::Parameter result{std::move(name), space::parse_domain(call), std::nullopt};
    if (!condition.empty()) result.condition = space::Condition::parse(condition);
    return result;
}

study::StudySpec study_of(std::vector<space::Parameter> parameters, std::uint64_t seed = 1) {
    study::StudySpec spec;
    spec.name = "contract";
    spec.objective.metric = "loss";
    spec.seed = seed;
    spec.num_trials = trials;
    spec.max_iterations = 9;
    spec.space = space::SearchSpace(std::move(parameters));
    return spec;
}

/// Every kind of domain, nested names, a condition that looks ahead and one that hangs on it.
study::StudySpec rich_study(bool continuous, std::uint64_t seed = 1) {
    std::vector<space::Parameter> parameters = {
        parameter("opt.momentum", "quniform(0.5, 0.9, 0.2)", "opt.kind == 'sgd'"),
        parameter("opt.nesterov", "choice([true, false])", "opt.momentum > 0.6"),
        parameter("opt.kind", "choice(['sgd', 'adam'])"),
        parameter("batch", "qlograndint(16, 64, 16)"),
        parameter("layers", "grid([1, 2])"),
        parameter("width", "choice([[64], [128, 64]])"),
    };
    if (continuous) {
        parameters.push_back(parameter("lr", "loguniform(1e-5, 1)"));
        parameters.push_back(parameter("noise", "randn(0, 1)"));
        parameters.push_back(parameter("seed", "randint(-9223372036854775808, 9223372036854775807)"));
    }
    return study_of(std::move(parameters), seed);
}

/// Whether each parameter is there exactly if its condition holds, with a value of its domain, in file order.
bool lies_in(const space::SearchSpace& space, const Configuration& configuration) {
    std::size_t next = 0;
    for (const space::Parameter& p : space.parameters()) {
        const bool active = !p.condition || p.condition->holds(configuration);
        if (active != configuration.contains(p.name)) return false;
        if (!active) continue;
        if (next == configuration.entries().size() || configuration.entries()[next].name != p.name) return false;
        if (!space::contains(p.domain, configuration.entries()[next].value)) return false;
        ++next;
    }
    return next == configuration.entries().size();
}

void create(Searcher& searcher, std::uint32_t trial) {
    const Suggestion suggestion = searcher.suggest(trial, {});
    if (suggestion) searcher.apply(study::TrialCreated{TrialId(trial), {}, 1, 0, 0, {.index = trial}, *suggestion});
}

void report(Searcher& searcher, std::uint32_t trial, double value) {
    study::Reported record;
    record.trial = TrialId(trial);
    record.attempt = base::Attempt(1);
    record.iteration = 1;
    record.metrics = {{base::MetricId(0), value}};
    searcher.apply(record);
}

void close(Searcher& searcher, std::uint32_t trial, study::TrialPhase phase) {
    searcher.apply(study::TrialClosed{TrialId(trial), {}, phase, study::Reason::exception, 0.0, 0.0, "it threw"});
}

/// Trials as a study would live them: created in order, reports in between, some values not finite, some trials failed.
void live(Searcher& searcher, std::uint32_t from, std::uint32_t to) {
    constexpr double inf = std::numeric_limits<double>::infinity();
    const std::vector<double> values = {0.5, std::numeric_limits<double>::quiet_NaN(), inf, -inf, -0.0, 1e308};
    if (from == 0) {
        searcher.apply(study::IncarnationBegan{base::Incarnation(1), {}, "", {}});
        searcher.apply(study::MetricDefined{base::MetricId(0), "loss"});
    }
    for (std::uint32_t trial = from; trial < to; ++trial) {
        create(searcher, trial);
        report(searcher, trial, values[trial % values.size()]);
        close(searcher, trial, trial % 5 == 4 ? study::TrialPhase::failed : study::TrialPhase::finished);
    }
}

study::Bytes snapshot(const Searcher& searcher) {
    study::Bytes bytes;
    study::Encoder out(bytes);
    searcher.snapshot(out);
    return bytes;
}

/// What the searcher answers for the next trials, creating each.
std::vector<Suggestion> continuation(Searcher& searcher, std::uint32_t from, std::uint32_t to) {
    std::vector<Suggestion> all;
    for (std::uint32_t trial = from; trial < to; ++trial) {
        all.push_back(searcher.suggest(trial, {}));
        create(searcher, trial);
    }
    return all;
}

void check_suggestions(const MakeSearcher& make, SearcherTraits traits) {
    SECTION("suggest changes nothing: asked twice, it answers the same") {
        const study::StudySpec spec = rich_study(traits.continuous);
        const auto searcher = make(spec);
        for (std::uint32_t trial = 0; trial < trials; ++trial) {
            const Suggestion first = searcher->suggest(trial, {});
            REQUIRE(first.has_value());
            CHECK(searcher->suggest(trial, {}) == first);
            CHECK(lies_in(spec.space, *first));
            create(*searcher, trial);
        }
    }
    SECTION("two instances answer the same") {
        const study::StudySpec spec = rich_study(traits.continuous);
        const auto a = make(spec);
        const auto b = make(spec);
        CHECK(continuation(*a, 0, trials) == continuation(*b, 0, trials));
    }
    SECTION("the seed matters, or it does not, as the searcher says") {
        const study::StudySpec one = rich_study(traits.continuous, 1);
        const study::StudySpec two = rich_study(traits.continuous, 2);
        const auto a = make(one);
        const auto b = make(two);
        CHECK((continuation(*a, 0, trials) != continuation(*b, 0, trials)) == traits.depends_on_seed);
    }
    SECTION("exhausted is exhausted for good") {
        const study::StudySpec spec = study_of({parameter("n", "choice([1, 2])")});
        const auto searcher = make(spec);
        bool ended = false;
        for (std::uint32_t trial = 0; trial < 10; ++trial) {
            const bool has = searcher->suggest(trial, {}).has_value();
            CHECK_FALSE((ended && has));
            ended = !has;
            create(*searcher, trial);
        }
    }
    if (traits.learns) return;
    SECTION("what does not learn answers from (seed, trial) alone, in any order and whatever was reported") {
        const study::StudySpec spec = rich_study(traits.continuous);
        const auto a = make(spec);
        const auto b = make(spec);
        live(*b, 0, trials);
        for (std::uint32_t trial = trials; trial-- > 0;) CHECK(a->suggest(trial, {}) == b->suggest(trial, {}));
    }
}

void check_spaces(const MakeSearcher& make, SearcherTraits traits) {
    SECTION("domains of one value") {
        std::vector<space::Parameter> parameters = {
            parameter("a", "choice(['only'])"),  parameter("b", "randint(7, 8)"),
            parameter("c", "qrandint(5, 9, 7)"), parameter("d", "lograndint(1, 2)"),
            parameter("e", "grid([false])"),     parameter("f", "quniform(0.1, 0.3, 0.2)")};
        if (traits.continuous) parameters.push_back(parameter("g", "uniform(0.5, 0.5)"));
        parameters.push_back({"h", space::Constant{"fixed"}, std::nullopt});
        const study::StudySpec spec = study_of(std::move(parameters));
        const auto searcher = make(spec);
        const Suggestion suggestion = searcher->suggest(0, {});
        REQUIRE(suggestion.has_value());
        CHECK(suggestion->text() ==
              std::string("a=only b=7 c=7 d=1 e=false f=0.2") + (traits.continuous ? " g=0.5" : "") + " h=fixed");
    }
    SECTION("a space without parameters") {
        const study::StudySpec spec = study_of({});
        const auto searcher = make(spec);
        const Suggestion suggestion = searcher->suggest(0, {});
        REQUIRE(suggestion.has_value());
        CHECK(suggestion->empty());
    }
    SECTION("conditional parameters are there exactly when their condition holds") {
        const study::StudySpec spec = rich_study(traits.continuous);
        const auto searcher = make(spec);
        int with = 0;
        int without = 0;
        for (std::uint32_t trial = 0; trial < 40; ++trial) {
            const Suggestion suggestion = searcher->suggest(trial, {});
            if (!suggestion) break;
            CHECK(lies_in(spec.space, *suggestion));
            ++(suggestion->contains("opt.momentum") ? with : without);
            create(*searcher, trial);
        }
        CHECK(with > 0);
        CHECK(without > 0);
    }
}

void check_records(const MakeSearcher& make, SearcherTraits traits) {
    SECTION("metrics that are not finite and failed trials do no harm") {
        const study::StudySpec spec = rich_study(traits.continuous);
        const auto searcher = make(spec);
        live(*searcher, 0, trials);
        const Suggestion next = searcher->suggest(trials, {});
        CHECK((!next || lies_in(spec.space, *next)));
        CHECK(searcher->suggest(trials, {}) == next);
    }
    SECTION("a snapshot restores the searcher, read to its last byte") {
        const study::StudySpec spec = rich_study(traits.continuous);
        const auto original = make(spec);
        live(*original, 0, 10);
        const study::Bytes bytes = snapshot(*original);
        const auto restored = make(spec);
        study::Decoder in(bytes);
        restored->restore(in);
        CHECK(in.empty());
        CHECK(snapshot(*restored) == bytes);
        live(*original, 10, 14);
        live(*restored, 10, 14);
        CHECK(continuation(*restored, 14, trials) == continuation(*original, 14, trials));
        CHECK(snapshot(*restored) == snapshot(*original));
    }
    SECTION("replay of the same records gives the same state") {
        const study::StudySpec spec = rich_study(traits.continuous);
        const auto a = make(spec);
        const auto b = make(spec);
        live(*a, 0, trials);
        live(*b, 0, trials);
        CHECK(snapshot(*a) == snapshot(*b));
    }
}

} // namespace

void check_searcher_contract(const MakeSearcher& make, SearcherTraits traits) {
    check_suggestions(make, traits);
    check_spaces(make, traits);
    check_records(make, traits);
}

} // namespace ranktune::contract
