// SPDX-License-Identifier: Apache-2.0
// Searchers that learn, in the head's loop or prepared ahead, in simulated jobs whose processes are killed.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lives.hpp"
#include "schedulers/built_in.hpp"
#include "searchers/built_in.hpp"
#include "support/catch.hpp"
#include "support/known.hpp"

namespace learning_test {

using namespace ranktune;
using namespace ranktune::simulate;
using namespace std::chrono_literals;

namespace {

/// `cmaes` needs an order of the kinds.
study::StudySpec study_of(const std::string& searcher, const std::string& scheduler, bool deterministic) {
    study::StudySpec spec;
    spec.name = "learning";
    spec.objective = {"score", study::Mode::max};
    spec.seed = 5;
    spec.num_trials = 40;
    spec.max_iterations = 9;
    spec.space = space::SearchSpace({{"lr", space::FloatRange{0.01, 1.0, true, 0.0}, {}},
                                     {"width", space::IntRange{1, 64, false, 1}, {}},
                                     {"kind", space::Choice{{"a", "b"}, searcher == "cmaes"}, {}}});
    spec.searcher = searchers::chosen(searcher);
    if (scheduler == "pbt") {
        spec.scheduler = schedulers::chosen(scheduler, {{"interval", std::int64_t{3}}});
        spec.scheduler.explore = {{"lr", {0.8, 1.2}}};
    } else {
        spec.scheduler = schedulers::chosen(scheduler);
    }
    spec.failure.tolerate = 1.0;
    spec.failure.max_losses = 100;
    spec.deterministic = deterministic;
    spec.max_concurrent = 3;
    return spec;
}

Make maker(const study::StudySpec& spec) {
    return [&spec] { return std::make_unique<tuner::Tuner>(spec); };
}

void check_life(const Lives& lives) {
    for (const std::string& problem : lives.problems) UNSCOPED_INFO(problem);
    CHECK(lives.problems.empty());
    CHECK(lives.outcome == study::StudyOutcome::ok);
}

/// Every iteration is saved.
ClusterOptions learning_cluster(std::uint32_t workers, std::uint64_t seed) {
    ClusterOptions options;
    options.workers = workers;
    options.seed = seed;
    options.curve.fate = seed;
    options.curve.save_every = 1;
    return options;
}

/// The study to its end; its head is killed twice.
Lives killed_lives(const study::StudySpec& spec, const ClusterOptions& options) {
    Lives lives;
    lives.run(maker(spec), options, {1500ms + 100ms * options.seed, 3s});
    check_life(lives);
    return lives;
}

} // namespace

TEST_CASE("Suggestions follow from the records before them, whatever is killed", "[sim][searchers]") {
    const std::string name = GENERATE("cmaes", "evolution", "nsga2");
    const std::string scheduler = GENERATE("hyperband", "fifo", "pbt");
    INFO(name << ", " << scheduler);
    const study::StudySpec spec = study_of(name, scheduler, false);
    std::size_t learned = 0;
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
        INFO("seed " << seed);
        ClusterOptions options = learning_cluster(3, seed);
        if (seed % 2 == 0) options.deaths.emplace_back(base::Rank{2}, 4s);
        const Lives lives = killed_lives(spec, options);
        // Another core reads the records; another searcher, which was never asked before and knows what a snapshot has,
        // is asked at each trial.
        tuner::Tuner reader(spec);
        const auto follower = searchers::make_searcher(spec);
        lives.journal.for_each([&](const study::Record& record) {
            if (const auto* created = std::get_if<study::TrialCreated>(&record)) {
                const auto& state = reader.state();
                const auto fresh = searchers::make_searcher(spec);
                study::Bytes bytes;
                study::Encoder out(bytes);
                follower->snapshot(out);
                study::Decoder in(bytes);
                fresh->restore(in);
                CHECK(fresh->suggest(state.suggested, state.observations) == created->configuration);
                learned += created->configuration != spec.space.sample(spec.seed, created->trial) ? 1 : 0;
            }
            reader.apply(record);
            follower->apply(record);
        });
    }
    CHECK(learned > 60); // of 240
}

TEST_CASE("Suggestions of TPE that were prepared follow from what their tickets may see, whatever is killed",
          "[sim][tpe]") {
    const study::StudySpec spec = study_of("tpe", "hyperband", false);
    std::size_t modelled = 0;
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
        INFO("seed " << seed);
        ClusterOptions options = learning_cluster(3, seed);
        if (seed % 2 == 0) options.deaths.emplace_back(base::Rank{2}, 4s);
        const Lives lives = killed_lives(spec, options);
        tuner::Tuner reader(spec);
        lives.journal.for_each([&](const study::Record& record) {
            if (const auto* prepared = std::get_if<study::TicketPrepared>(&record)) {
                const auto& state = reader.state();
                const tuner::Ticket* ticket = state.tickets.unanswered(prepared->ticket);
                REQUIRE(ticket != nullptr);
                const auto fresh = searchers::make_searcher(spec);
                const auto startup = fresh->prepare(prepared->ticket, searchers::Observations(3))().configuration;
                CHECK(fresh->prepare(prepared->ticket, state.observations.first(ticket->seen))().configuration ==
                      prepared->configuration);
                modelled += startup != prepared->configuration ? 1 : 0;
            }
            reader.apply(record);
        });
    }
    CHECK(modelled > 60); // of about 230
}

TEST_CASE("All points of a grid come equally often, whoever suggests and whatever is killed", "[sim][searchers]") {
    const std::string name = GENERATE("bohb", "tpe", "gp", "auto");
    INFO(name);
    study::StudySpec spec = study_of(name, "fifo", false);
    spec.space = space::SearchSpace({{"lr", space::FloatRange{0.01, 1.0, true, 0.0}, {}},
                                     {"g", space::Grid{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}, {}}});
    spec.num_trials = 48;
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        INFO("seed " << seed);
        const Lives lives = killed_lives(spec, learning_cluster(5, seed));
        std::map<std::int64_t, int> count;
        std::size_t tickets = 0;
        lives.journal.for_each([&](const study::Record& record) {
            const auto* created = std::get_if<study::TrialCreated>(&record);
            if (created == nullptr) return;
            ++count[created->configuration.at("g").as_int()];
            tickets += created->origin.kind == study::Origin::Kind::ticket ? 1 : 0;
        });
        CHECK(tickets > 10);
        CHECK(count.size() == 12);
        for (const auto& [value, times] : count) CHECK(times == 4);
    }
}

TEST_CASE("In a finite space nothing comes twice while there is another configuration, whatever is killed",
          "[sim][searchers]") {
    const std::string name = GENERATE("bohb", "tpe", "gp", "auto");
    INFO(name);
    study::StudySpec spec = study_of(name, "fifo", false);
    if (name == "bohb") spec.searcher = searchers::chosen(name, {{"avoid_duplicates", true}});
    spec.space = space::SearchSpace(
        {{"width", space::IntRange{1, 7, false, 1}, {}}, {"kind", space::Choice{{"a", "b", "c"}}, {}}});
    spec.num_trials = 18;
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
        INFO("seed " << seed);
        const Lives lives = killed_lives(spec, learning_cluster(5, seed));
        std::map<std::string, int> count;
        lives.journal.for_each([&](const study::Record& record) {
            if (const auto* created = std::get_if<study::TrialCreated>(&record)) ++count[created->configuration.text()];
        });
        CHECK(count.size() == 18);
    }
}

TEST_CASE("Prepared suggestions follow from the records before their tickets, whatever is killed", "[sim][searchers]") {
    const std::string name = GENERATE("gp", "tpe", "auto", "bohb");
    const std::string scheduler = GENERATE("hyperband", "fifo", "pbt");
    INFO(name << ", " << scheduler);
    const study::StudySpec spec = study_of(name, scheduler, false);
    std::size_t tickets = 0;
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        INFO("seed " << seed);
        const Lives lives = killed_lives(spec, learning_cluster(5, seed));
        tuner::Tuner reader(spec);
        const auto follower = searchers::make_searcher(spec);
        std::map<std::uint64_t, space::Configuration> expected;
        lives.journal.for_each([&](const study::Record& record) {
            reader.apply(record);
            follower->apply(record);
            if (const auto* opened = std::get_if<study::TicketOpened>(&record)) {
                const auto seen = reader.state().observations.first(opened->seen);
                expected[opened->ticket] = follower->prepare(opened->ticket, seen)().configuration;
            } else if (const auto* prepared = std::get_if<study::TicketPrepared>(&record)) {
                CHECK(prepared->configuration == expected.at(prepared->ticket));
                ++tickets;
            }
        });
    }
    CHECK(tickets > 50); // of 160 trials, of which the first ones come before there is a model
}

TEST_CASE("A deterministic study that learns is the same on any number of ranks", "[sim][searchers]") {
    const std::string name = GENERATE(from_range(ranktune::testing::learning_searchers()));
    INFO(name);
    const study::StudySpec spec = study_of(name, "hyperband", true);
    std::vector<std::string> expected;
    for (const std::uint32_t workers : {1U, 2U, 3U, 5U}) {
        for (const bool killed : {false, true}) {
            INFO(workers << " workers" << (killed ? ", with kills" : ""));
            ClusterOptions options;
            options.workers = workers;
            options.seed = 100 + workers;
            options.curve.fate = 1;
            Lives lives;
            lives.run(maker(spec), options,
                      killed ? std::vector<base::Duration>{700ms, 1500ms, 2s} : std::vector<base::Duration>{});
            check_life(lives);
            std::vector<std::string> decided;
            for (const auto& trial : lives.all<study::TrialCreated>()) decided.push_back(trial.configuration.text());
            if (expected.empty()) expected = decided;
            CHECK(decided == expected);
        }
    }
    CHECK(expected.size() == 40);
}

} // namespace learning_test
