// SPDX-License-Identifier: Apache-2.0
#include "ranktune/study/change.hpp"

#include "ranktune/study/parse.hpp"
#include "support/any_trainable.hpp"
#include "support/catch.hpp"

namespace ranktune::study {
namespace {

StudySpec spec(const std::vector<std::string>& overrides = {}) {
    const std::string text =
        "[study]\nname = \"a\"\nmetric = \"loss\"\nmode = \"min\"\nnum_trials = 6\nmax_iterations = 9\n"
        "[trainable]\nname = \"t\"\nlayers = 2\n[space]\nlr = \"uniform(0.0, 1.0)\"\n";
    return parse_study(text, "/a.toml", overrides, {ranktune::testing::any_trainable("t")});
}

std::vector<KeyChange> changes(const std::vector<std::string>& overrides) {
    return differences(spec(), spec(overrides));
}

} // namespace

TEST_CASE("Study files that mean the same do not differ", "[study]") {
    CHECK(changes({}).empty());
    CHECK(changes({"study.seed=0", "failure.tolerate=0.05", "scheduler.type=fifo"}).empty());
}

TEST_CASE("Budgets, limits and outputs may change; what results depend on may not", "[study]") {
    CHECK(changes({"study.num_trials=9"}) == std::vector<KeyChange>{{"study.num_trials", "6", "9", true}});
    for (const char* allowed :
         {"study.time_budget=2h", "study.max_concurrent=3", "failure.max_failures=2", "run.abort_grace=5s",
          "journal.commit_interval=2s", "stop.time=1h", "resources.cpus_per_rank=4", "resources.bind=none",
          "stop.plateau.metric=loss", "checkpoint.interval=3"}) {
        INFO(allowed);
        const auto found = changes({allowed});
        REQUIRE(!found.empty());
        for (const auto& change : found) CHECK(change.may_change);
    }
    for (const char* refused : {"study.seed=1", "study.metric=accuracy", "study.mode=max", "study.max_iterations=27",
                                "trainable.layers=3", "trainable.width=3", "space.lr=0.5", "space.more=[1,2]",
                                "resources.ranks=2", "searcher.type=sobol", "scheduler.type=asha"}) {
        INFO(refused);
        const auto found = changes({refused});
        REQUIRE(!found.empty());
        CHECK_FALSE(found.front().may_change);
    }
}

TEST_CASE("The slots of a deterministic study may not change, and whether it is one", "[study]") {
    const std::vector<std::string> deterministic = {"study.deterministic=true", "study.max_concurrent=3"};
    StudySpec now = spec(deterministic);
    REQUIRE(now.deterministic);
    CHECK(parse_resolved_study(resolved_toml(now), "/resolved.toml").deterministic);
    const StudySpec wider = spec({"study.deterministic=true", "study.max_concurrent=4"});
    const auto found = differences(now, wider);
    REQUIRE(found.size() == 1);
    CHECK(found.front().key == "study.max_concurrent");
    CHECK_FALSE(found.front().may_change);
    take_over(now, wider);
    CHECK(now.max_concurrent == 3);
    const auto back = differences(now, spec({"study.max_concurrent=3"}));
    REQUIRE(back.size() == 1);
    CHECK_FALSE(back.front().may_change);

    CHECK_FALSE(changes_what_is_decided(changes({"study.name=b", "checkpoint.interval=3", "run.abort_grace=5s"})));
    CHECK(changes_what_is_decided(changes({"study.num_trials=9"})));
}

TEST_CASE("The command line of a program may be mended", "[study]") {
    const auto program = [](const std::string& command) {
        return parse_study(
            "[study]\nname = \"a\"\nmetric = \"loss\"\nmode = \"min\"\nnum_trials = 6\nmax_iterations = 9\n"
            "[trainable]\ncommand = \"" +
                command + "\"\n[space]\nlr = \"uniform(0.0, 1.0)\"\n",
            "/a.toml", {}, {});
    };
    StudySpec now = program("train.py {args}");
    const StudySpec later = program("python3 train.py {args}");
    const auto found = differences(now, later);
    REQUIRE(found.size() == 1);
    CHECK(found[0].key == "trainable.command");
    CHECK(found[0].may_change);
    take_over(now, later);
    CHECK(differences(now, later).empty());
}

TEST_CASE("What is taken over is what may change, no more and no less", "[study]") {
    const std::vector<std::string> everything = {
        "study.name=b",          "study.num_trials=9",      "study.max_concurrent=3",     "study.time_budget=2h",
        "stop.time=1h",          "failure.max_failures=2",  "journal.commit_interval=2s", "run.abort_grace=5s",
        "study.seed=1",          "study.max_iterations=27", "trainable.layers=3",         "space.lr=0.5",
        "searcher.type=sobol",   "scheduler.type=asha",     "resources.cpus_per_rank=4",  "resources.ranks=2",
        "checkpoint.interval=3", "slurm.requeue=true",      "resources.bind=none"};
    const StudySpec later = spec(everything);
    StudySpec now = spec();
    take_over(now, later);
    for (const auto& change : differences(spec(), later)) {
        INFO(change.key);
        bool still_differs = false;
        for (const auto& left : differences(now, later)) still_differs = still_differs || left.key == change.key;
        CHECK(still_differs != change.may_change);
    }
}

} // namespace ranktune::study
