// SPDX-License-Identifier: Apache-2.0
// Algorithms that exploit other trials, let trials wait, and prepare suggestions ahead, in simulated jobs whose
// processes are killed.

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lives.hpp"
#include "schedulers/built_in.hpp"
#include "searchers/built_in.hpp"
#include "support/catch.hpp"
#include "support/toy_algorithms.hpp"

namespace doors_test {

using namespace ranktune;
using namespace ranktune::simulate;
using namespace std::chrono_literals;
using ranktune::testing::ToyPopulation;
using ranktune::testing::ToySlowSearcher;

namespace {

constexpr base::Iteration interval = 3;

study::StudySpec spec_of(std::uint32_t trials, base::Iteration ceiling) {
    study::StudySpec spec;
    spec.name = "doors";
    spec.objective = {"score", study::Mode::max};
    spec.num_trials = trials;
    spec.max_iterations = ceiling;
    spec.space = space::SearchSpace(
        {{"lr", space::FloatRange{0.01, 1.0, true, 0.0}, {}}, {"width", space::IntRange{1, 64, false, 1}, {}}});
    spec.searcher = searchers::chosen("random");
    spec.scheduler = schedulers::chosen("fifo");
    spec.failure.tolerate = 1.0;
    spec.failure.max_losses = 100;
    return spec;
}

} // namespace

TEST_CASE("Trials take over the checkpoints of others, whichever process dies", "[sim]") {
    std::size_t exploits = 0;
    std::size_t from_donors = 0;
    std::size_t undone = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        INFO("seed " << seed);
        const Make make = [] {
            return std::make_unique<tuner::Tuner>(spec_of(12, 30), std::make_unique<ToyPopulation>(4, interval, 30),
                                                  nullptr);
        };
        ClusterOptions options;
        options.workers = 3;
        options.seed = seed;
        options.curve.save_every = 1;
        options.curve.unreadable_rate = 0.1;
        options.curve.fate = seed;
        if (seed % 2 == 0) options.deaths.emplace_back(base::Rank{2}, 4s);
        Lives lives;
        lives.run(make, options,
                  {base::from_ns(900'000'000 + 100'000'000 * static_cast<std::int64_t>(seed)) - base::StudyTime{}, 5s});
        for (const std::string& problem : lives.problems) UNSCOPED_INFO(problem);
        CHECK(lives.problems.empty());
        CHECK(lives.outcome == study::StudyOutcome::ok);
        undone += lives.all<study::ExploitUndone>().size();
        for (const auto& one : lives.all<study::Exploited>()) {
            ++exploits;
            CHECK(one.donor.trial != one.trial);
            CHECK(one.donor.checkpoint.iteration == one.iteration); // the toy scheduler compares at equal iterations
        }
        for (const auto& start : lives.all<study::TrialStarted>())
            if (std::holds_alternative<study::Donor>(start.from)) ++from_donors;
        for (const auto& trial : lives.tuner->state().trials) {
            CHECK(trial.phase == study::TrialPhase::finished);
            CHECK(trial.bracket == 1);
            for (const auto& takeover : trial.takeovers) {
                CHECK(&configuration_at(trial, takeover.iteration) == &takeover.before);
            }
        }
    }
    // Otherwise the cases have too few faults to test anything.
    CHECK(exploits > 300);
    CHECK(from_donors > 300);
    CHECK(undone > 10);
}

TEST_CASE("No group waits for a suggestion that is prepared ahead", "[sim]") {
    const study::StudySpec spec = spec_of(40, 3);
    const Make make = [&] {
        return std::make_unique<tuner::Tuner>(spec, nullptr, std::make_unique<ToySlowSearcher>(spec.space, 7, 5));
    };
    ClusterOptions options;
    options.workers = 4;
    Lives lives;
    lives.run(make, options, {3s, 2s});
    for (const std::string& problem : lives.problems) UNSCOPED_INFO(problem);
    CHECK(lives.problems.empty());
    CHECK(lives.outcome == study::StudyOutcome::ok);
    std::set<std::uint64_t> tickets;
    std::uint64_t stopgaps = 0;
    for (const auto& trial : lives.tuner->state().trials) {
        if (trial.origin.kind == study::Origin::Kind::stopgap) {
            CHECK(trial.origin.index == stopgaps); // stopgaps are numbered without gaps
            ++stopgaps;
        } else {
            CHECK(trial.origin.kind == study::Origin::Kind::ticket);
            CHECK(tickets.insert(trial.origin.index).second);
        }
    }
    CHECK(stopgaps >= 4); // created before anything could be prepared
    CHECK(tickets.size() >= 10);
    for (const auto& prepared : lives.all<study::TicketPrepared>())
        CHECK(prepared.configuration.has_value() == (prepared.ticket % 5 != 4));
    for (const std::uint64_t ticket : tickets) CHECK(ticket % 5 != 4);
}

TEST_CASE("A deterministic study waits for its suggestions, and is the same on any number of ranks", "[sim]") {
    study::StudySpec spec = spec_of(20, 4);
    spec.deterministic = true;
    spec.max_concurrent = 3;
    std::vector<std::string> expected;
    for (const std::uint32_t workers : {1U, 2U, 3U, 5U}) {
        for (const bool killed : {false, true}) {
            INFO(workers << " workers" << (killed ? ", with kills" : ""));
            const Make make = [&] {
                return std::make_unique<tuner::Tuner>(spec, nullptr,
                                                      std::make_unique<ToySlowSearcher>(spec.space, 7, 6));
            };
            ClusterOptions options;
            options.workers = workers;
            options.seed = 100 + workers;
            options.curve.fate = 1;
            Lives lives;
            const std::vector<base::Duration> deaths{700ms, 1500ms, 900ms};
            lives.run(make, options, killed ? deaths : std::vector<base::Duration>{});
            for (const std::string& problem : lives.problems) UNSCOPED_INFO(problem);
            CHECK(lives.problems.empty());
            CHECK(lives.outcome == study::StudyOutcome::ok);
            std::vector<std::string> decided;
            lives.journal.for_each([&](const study::Record& record) {
                if (const auto* created = std::get_if<study::TrialCreated>(&record))
                    decided.push_back(std::string(study::name(created->origin.kind)) + " " +
                                      std::to_string(created->origin.index) + ": " + created->configuration.text());
                if (const auto* opened = std::get_if<study::TicketOpened>(&record))
                    decided.push_back("ticket " + std::to_string(opened->ticket) + " sees " +
                                      std::to_string(opened->seen));
            });
            if (expected.empty()) expected = decided;
            CHECK(decided == expected);
        }
    }
    CHECK(expected.size() == 40);
    CHECK(expected[2] == "ticket 2 sees 0");
}

} // namespace doors_test
