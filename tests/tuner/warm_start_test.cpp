// SPDX-License-Identifier: Apache-2.0
// Results of earlier studies: a record right after the beginning, for the searcher alone.
#include <cmath>
#include <string>
#include <vector>

#include "ranktune/base/error.hpp"
#include "small_core.hpp"

namespace ranktune::tuner {
namespace {

using testing::SmallCore;

std::string warm_study_text(const std::string& searcher) {
    return testing::small_study("max_iterations = 3\n", "[searcher]\ntype = \"" + searcher + "\"\n");
}

/// Best near x = 0.9.
study::WarmStarted earlier_results(const space::SearchSpace& space) {
    study::WarmStarted earlier;
    for (std::uint32_t i = 0; i < 40; ++i) {
        const auto configuration = space.sample(7, TrialId(i));
        const double x = configuration.at("x").as_double();
        earlier.trials.push_back({configuration, {{1, x}, {3, -std::abs(x - 0.9)}}, i == 5});
    }
    earlier.sources = {{"old.csv", 40, 0, ""}};
    return earlier;
}

} // namespace

TEST_CASE("a study that learns from earlier results begins with a model", "[tuner]") {
    for (const std::string& searcher : ranktune::testing::learning_searchers()) {
        INFO(searcher);
        SmallCore core(warm_study_text(searcher));
        core.warm_start(earlier_results(core.core().spec().space)); // a twin that applies it has the same state
        CHECK(core.state().observations.earlier_points() == 40);
        CHECK(core.state().trials.size() == 0);
        CHECK(core.state().reports == 0);
        CHECK_FALSE(core.state().best);
        core.began({"n0"});
        for (std::uint32_t trial = 0; trial < 4; ++trial) {
            for (const auto& ticket : std::vector<Ticket>(core.state().tickets.open())) {
                CHECK(ticket.seen >= 40);
                if (!ticket.answered)
                    core.step(
                        study::Prepared{ticket.number, (*core.core().preparation(ticket.number))().configuration, ""});
            }
            core.report(trial, 1, core.trial(trial).configuration.at("x").as_double());
            core.over(trial, AttemptOutcome::finished);
        }
        study::Bytes bytes;
        study::Encoder out(bytes);
        core.core().snapshot(out);
        Tuner restored(core.core().spec());
        study::Decoder in(bytes);
        restored.restore(in);
        CHECK(restored.digest() == core.core().digest());
    }
}

TEST_CASE("earlier results come before everything else, and to searchers that learn", "[tuner]") {
    SmallCore late(warm_study_text("tpe"));
    late.began({"n0"});
    CHECK_THROWS_AS(late.warm_start(earlier_results(late.core().spec().space)), base::FormatError);
    SmallCore random(warm_study_text("random"));
    CHECK_THROWS_AS(random.warm_start(earlier_results(random.core().spec().space)), base::FormatError);
}

} // namespace ranktune::tuner
