// SPDX-License-Identifier: Apache-2.0
// The searcher `external` without its program: what it asks, when it gives up, and what it remembers.

#include "searchers/external.hpp"

#include "searchers/learner.hpp"
#include "support/catch.hpp"

namespace ranktune::searchers::testing {
namespace {

study::StudySpec external_study(const space::SearchSpace& space) {
    study::StudySpec spec = study_with("external", space, 3, {{"command", "python3 search.py"}, {"timeout", "5s"}});
    spec.name = "s";
    return spec;
}

study::TicketPrepared failed(std::uint64_t ticket) { return {ticket, {}, std::nullopt, "it ended"}; }

} // namespace

TEST_CASE("external: a preparation is a question for the head, with all that the ticket may see", "[searchers]") {
    const space::SearchSpace space = cube(2);
    Learner learner(external_study(space));
    const TrialId first = learner.create();
    learner.finish(first, 0.5);
    const auto before = learner.seen.first(learner.seen.size());
    const space::Configuration configuration = learner.trials[0];
    static_cast<void>(learner.create(configuration, {study::Origin::Kind::ticket, 7, 0}));
    const auto work = learner.searcher->prepare(8, before);
    const auto* question = work.target<ExternalQuestion>();
    REQUIRE(question != nullptr);
    CHECK(question->ticket == 8);
    CHECK(question->seen.size() == 3);
    CHECK(question->setting->command == "python3 search.py");
    CHECK(question->setting->timeout == std::chrono::seconds(5));
    CHECK(question->setting->study == "s");
    CHECK_FALSE(question->trials[0].ticket);
    CHECK(question->trials[1].ticket == 7U);
    CHECK(question->configuration_at(0) == learner.trials[0]);
}

TEST_CASE("external: after three failures in a row nothing is prepared until the next start", "[searchers]") {
    Learner learner(external_study(cube(1)));
    Searcher& searcher = *learner.searcher;
    CHECK(searcher.prepares_ahead(1, learner.seen) == 1);
    CHECK(searcher.prepares_ahead(16, learner.seen) == 4);
    CHECK(searcher.prepares_ahead(4000, learner.seen) == 16);
    for (std::uint64_t ticket = 0; ticket < 2; ++ticket) searcher.apply(failed(ticket));
    searcher.apply(study::TicketPrepared{2, {}, *searcher.suggest(0, learner.seen), {}});
    for (std::uint64_t ticket = 3; ticket < 5; ++ticket) searcher.apply(failed(ticket));
    CHECK(searcher.prepares_ahead(4, learner.seen) == 1);
    searcher.apply(failed(5));
    CHECK(searcher.prepares_ahead(4, learner.seen) == 0);
    CHECK(learner.restored()->prepares_ahead(4, learner.seen) == 0);
    CHECK(searcher.suggest(3, learner.seen) != searcher.suggest(4, learner.seen));
    searcher.apply(study::IncarnationBegan{});
    CHECK(searcher.prepares_ahead(4, learner.seen) == 1);
}

TEST_CASE("external: a snapshot has the configurations of all trials", "[searchers]") {
    Learner learner(external_study(cube(2)));
    for (int i = 0; i < 300; ++i)
        static_cast<void>(learner.create(*learner.searcher->suggest(static_cast<std::uint64_t>(i), learner.seen),
                                         {study::Origin::Kind::ticket, static_cast<std::uint64_t>(i), 0}));
    const auto other = learner.restored();
    const auto work = other->prepare(300, learner.seen.first(learner.seen.size()));
    const auto* question = work.target<ExternalQuestion>();
    REQUIRE(question != nullptr);
    for (std::uint32_t i = 0; i < 300; ++i) {
        REQUIRE(question->trials[i].configuration == learner.trials[i]);
        REQUIRE(question->trials[i].ticket == i);
    }
}

TEST_CASE("external: whether the study stops with its program", "[searchers]") {
    CHECK_FALSE(stops_on_failure(chosen("external")));
    CHECK(stops_on_failure(chosen("external", {{"on_failure", "stop"}})));
    CHECK_FALSE(stops_on_failure(chosen("tpe")));
}

} // namespace ranktune::searchers::testing
