// SPDX-License-Identifier: Apache-2.0
// A later start with a wider space: what was learned stays, and searchers and schedulers go on in it.
#include <set>

#include "tuner/small_core.hpp"

namespace space_growth_test {

using namespace ranktune;
using namespace ranktune::tuner;
using tuner::testing::SmallCore;

namespace {

/// `space` in place of that of small_study.
std::string with_space(const std::string& space, const std::string& searcher, unsigned trials,
                       const std::string& more = "") {
    std::string text = tuner::testing::small_study("max_iterations = 1\nnum_trials = " + std::to_string(trials) + "\n",
                                                   "[searcher]\ntype = \"" + searcher + "\"\n" + more);
    const std::string own = "x = \"uniform(0, 1)\"\n";
    return text.replace(text.find(own), own.size(), space);
}

std::string resolved(const std::string& text) {
    return study::resolved_toml(study::parse_study(
        text, "small.toml", {}, ranktune::testing::known({ranktune::testing::any_trainable("any")})));
}

void train_all(SmallCore& core) {
    for (std::uint32_t trial = 0; trial < core.state().trials.size(); ++trial) {
        if (core.trial(trial).phase != TrialPhase::running) continue;
        core.answer_tickets();
        core.report(trial, 1, 0.1 * trial);
        core.over(trial, AttemptOutcome::stopped);
    }
}

std::vector<std::string> configurations(const SmallCore& core) {
    std::vector<std::string> all;
    for (const Trial& t : core.state().trials) all.push_back(t.configuration.text());
    return all;
}

} // namespace

TEST_CASE("a grid that grows runs only what is new", "[tuner]") {
    SmallCore core(with_space("a = [1, 2]\nb = ['x', 'y']\n", "grid", 4));
    core.began({"n0"});
    train_all(core);
    REQUIRE(core.state().ended);
    REQUIRE(configurations(core) == std::vector<std::string>{"a=1 b=x", "a=1 b=y", "a=2 b=x", "a=2 b=y"});
    core.change(resolved(with_space("a = [1, 2, 0]\nb = ['x', 'z', 'y']\n", "grid", 9)));
    core.began({"n0"});
    train_all(core);
    CHECK(core.state().ended);
    CHECK(configurations(core) == std::vector<std::string>{"a=1 b=x", "a=1 b=y", "a=2 b=x", "a=2 b=y", "a=1 b=z",
                                                           "a=2 b=z", "a=0 b=x", "a=0 b=z", "a=0 b=y"});
    core.change(resolved(with_space("a = [1, 2, 0, 3]\nb = ['x', 'z', 'y']\n", "grid", 12)));
    core.began({"n0"});
    train_all(core);
    const auto all = configurations(core);
    CHECK(std::set<std::string>(all.begin(), all.end()).size() == 12);
    CHECK(all.size() == 12);
}

TEST_CASE("every searcher goes on in a wider space, with what it has learned", "[tuner]") {
    const auto suits = [](const study::SearcherInfo& info) { return !info.whole_space && !info.runs_program; };
    for (const std::string& searcher : ranktune::testing::names_of(searchers::built_in(), suits)) {
        INFO(searcher);
        SmallCore core(with_space("x = \"uniform(0, 1)\"\nn = [1, 2, 4]\nconst = 0.5\n", searcher, 14));
        core.began({"n0"});
        train_all(core);
        REQUIRE(core.state().ended);
        const auto before = core.state().observations.first(core.state().observations.size());
        core.change(resolved(with_space(
            "x = \"uniform(-1, 1)\"\nn = [1, 2, 4, 8]\nconst = \"uniform(0, 1)\"\nforbid = \"x < 0 and n == 1\"\n",
            searcher, 60)));
        const auto& after = core.state().observations;
        REQUIRE(after.size() == before.size());
        if (!before.empty()) { // the searcher learns
            CHECK(after.dimensions() == 3);
            CHECK(after.point(0)[0] == Approx(0.5 + 0.5 * before.point(0)[0]));
            CHECK(after.point(0)[2] == Approx(0.5));
            CHECK(after[1].score.rank() == before[1].score.rank());
        }
        core.began({"n0"});
        train_all(core);
        CHECK(core.state().ended);
        bool wider = false;
        for (const Trial& t : core.state().trials) {
            wider = wider || t.configuration.at("x").as_double() < 0.0 || t.configuration.at("n").as_int() == 8;
            CHECK(core.core().spec().space.why_outside(t.configuration) == "");
            CHECK(core.core().spec().space.broken_by(t.configuration) == nullptr);
        }
        CHECK(wider);
    }
}

TEST_CASE("a grid that lists a value twice comes to its end, and one whose trial is no point of it leaves nothing out",
          "[tuner]") {
    SmallCore core(with_space("a = [1, 1, 2]\n", "grid", 3));
    core.began({"n0"});
    train_all(core);
    CHECK(configurations(core) == std::vector<std::string>{"a=1", "a=1", "a=2"});

    SmallCore other(with_space("a = [1, 2, 3]\nb = 0\n", "grid", 1));
    other.began({"n0"});
    train_all(other);
    other.change(resolved(with_space("a = [1, 2, 3]\nb = [0, 1]\nforbid = \"a == 1 and b == 0\"\n", "grid", 6)));
    other.began({"n0"});
    train_all(other);
    CHECK(other.state().ended);
    // num_trials is at most the size of the grid, of which the first trial is no point.
    CHECK(configurations(other) == std::vector<std::string>{"a=1 b=0", "a=1 b=1", "a=2 b=0", "a=2 b=1", "a=3 b=0"});
}

TEST_CASE("suggestions that were prepared in the old space are dropped with it", "[tuner]") {
    SmallCore core(with_space("x = \"uniform(0, 1)\"\n", "tpe", 30));
    core.began({"n0"});
    for (std::uint32_t trial = 0; trial < 16; ++trial) {
        core.answer_tickets();
        core.report(trial, 1, 1.0);
        core.over(trial, AttemptOutcome::stopped);
    }
    core.answer_tickets();
    REQUIRE_FALSE(core.state().tickets.open().empty());
    REQUIRE(core.state().tickets.open().front().answered);
    const auto before = core.state().trials.size();
    core.change(resolved(with_space("x = \"uniform(0, 1)\"\nrequire = \"x > 0.9\"\n", "tpe", 30)));
    CHECK(core.state().tickets.open().empty());
    core.began({"n0"});
    train_all(core);
    CHECK(core.state().ended);
    for (std::size_t i = before; i < core.state().trials.size(); ++i)
        CHECK(core.trial(static_cast<std::uint32_t>(i)).configuration.at("x").as_double() > 0.9);
}

} // namespace space_growth_test
