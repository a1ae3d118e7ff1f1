// SPDX-License-Identifier: Apache-2.0
// Points to try first: they come first, with every searcher, and take no suggestion.
#include <string>
#include <vector>

#include "small_core.hpp"

namespace ranktune::tuner {
namespace {

using study::Origin;
using testing::SmallCore;

const std::string space =
    "y = \"uniform(0, 1)\"\nkind = [\"a\", \"b\"]\n"
    "z = { domain = \"uniform(0, 1)\", condition = \"kind == 'a'\" }\n";

/// The third point lacks `kind`, on which `z` depends.
std::string with_points(const std::string& searcher) {
    return testing::small_study("max_iterations = 1\n",
                                space + "[searcher]\ntype = \"" + searcher +
                                    "\"\nstart = [{ x = 0.25, y = 0.5, kind = \"b\" }, { x = 0.125 }, { z = 0.75 }]\n");
}

/// Runs one trial after the other on one rank, and answers what is to be prepared.
std::vector<Trial> trials_of(SmallCore& core, std::uint32_t count = 4) {
    core.began({"n0"});
    for (std::uint32_t trial = 0; trial < count; ++trial) {
        for (const auto& ticket : std::vector<Ticket>(core.state().tickets.open()))
            if (!ticket.answered)
                core.step(
                    study::Prepared{ticket.number, (*core.core().preparation(ticket.number))().configuration, ""});
        core.report(trial, 1, 0.5);
        core.over(trial, AttemptOutcome::stopped);
    }
    std::vector<Trial> trials;
    for (std::uint32_t trial = 0; trial < count; ++trial) trials.push_back(core.state().trial(TrialId(trial)));
    return trials;
}

} // namespace

TEST_CASE("points to try first come first, completed by the searcher, and take none of its suggestions", "[tuner]") {
    for (const char* searcher : {"random", "sobol", "bohb", "tpe"}) {
        for (const bool deterministic : {false, true}) {
            INFO(searcher << (deterministic ? ", deterministic" : ""));
            std::string text = with_points(searcher);
            if (deterministic) text.insert(text.find("seed ="), "deterministic = true\nmax_concurrent = 1\n");
            SmallCore core(text);
            const std::vector<Trial> trials = trials_of(core);
            for (std::uint64_t i = 0; i < 3; ++i) CHECK(trials[i].origin == Origin{Origin::Kind::start, i, 0});
            CHECK(trials[0].configuration.text() == "x=0.25 y=0.5 kind=b");
            CHECK(trials[1].configuration.at("x") == space::Value(0.125));
            CHECK(trials[1].configuration.contains("y"));
            CHECK(trials[1].configuration.contains("z") == (trials[1].configuration.at("kind").as_string() == "a"));
            const bool has_z = trials[2].configuration.at("kind").as_string() == "a";
            CHECK(trials[2].configuration.contains("z") == has_z);
            if (has_z) CHECK(trials[2].configuration.at("z") == space::Value(0.75));
            CHECK(trials[3].origin.kind != Origin::Kind::start);
            CHECK(trials[3].origin.index == 0);
        }
    }
}

TEST_CASE("a grid is searched whole, with the points to try first in front", "[tuner]") {
    std::string text =
        testing::small_study("max_iterations = 1\n", "[searcher]\ntype = \"grid\"\nstart = [{ x = 2 }]\n");
    text.replace(text.find("\"uniform(0, 1)\""), 15, "[1, 2, 3]");
    SmallCore core(text);
    std::string all;
    for (const Trial& trial : trials_of(core, 3)) all += trial.configuration.text() + " ";
    CHECK(all == "x=2 x=1 x=3 ");
    CHECK(core.state().ended);
}

} // namespace ranktune::tuner
