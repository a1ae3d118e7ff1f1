// SPDX-License-Identifier: Apache-2.0
#include "ranktune/study/change.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "ranktune/study/parse.hpp"
#include "support/catch.hpp"
#include "support/known.hpp"

namespace ranktune::study {
namespace {

StudySpec spec(const std::vector<std::string>& overrides = {}) {
    const std::string text =
        "[study]\nname = \"a\"\nmetric = \"loss\"\nmode = \"min\"\nnum_trials = 6\nmax_iterations = 9\n"
        "[trainable]\nname = \"t\"\nlayers = 2\n[space]\nlr = \"uniform(0.0, 1.0)\"\n";
    return parse_study(text, "/a.toml", overrides, ranktune::testing::known({ranktune::testing::any_trainable("t")}));
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
          "stop.plateau.metric=loss", "checkpoint.interval=3", "space.lr=0.5", "space.more=[1,2]"}) {
        INFO(allowed);
        const auto found = changes({allowed});
        REQUIRE(!found.empty());
        for (const auto& change : found) CHECK(change.may_change);
    }
    for (const char* refused :
         {"study.seed=1", "study.metric=accuracy", "study.mode=max", "study.max_iterations=27", "trainable.layers=3",
          "trainable.width=3", "resources.ranks=2", "searcher.type=sobol", "scheduler.type=asha"}) {
        INFO(refused);
        const auto found = changes({refused});
        REQUIRE(!found.empty());
        CHECK_FALSE(found.front().may_change);
    }
}

TEST_CASE("The slots of a deterministic study, and whether it is deterministic, may not change", "[study]") {
    const std::vector<std::string> deterministic = {"study.deterministic=true", "study.max_concurrent=3"};
    StudySpec now = spec(deterministic);
    REQUIRE(now.deterministic);
    CHECK(parse_resolved_study(resolved_toml(now), "/resolved.toml", ranktune::testing::built_in_algorithms())
              .deterministic);
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
    CHECK_FALSE(changes_what_is_decided(changes({"slurm.requeue=true", "slurm.max_requeues=3", "slurm.lead_time=9s",
                                                 "slurm.poll_interval=5m", "journal.commit_interval=9s"})));
    CHECK(changes_what_is_decided(changes({"study.num_trials=9"})));
}

TEST_CASE("A file of the trainable may move if its content is the same", "[study]") {
    TrainableInfo info = ranktune::testing::any_trainable("t");
    info.options.push_back({"data", OptionInfo::Kind::path, true, "what it is trained with"});
    const auto with = [&](const std::string& path, const std::string& content, const std::string& rest = {}) {
        PathChecks paths;
        paths.content = [content](const std::string&) { return content; };
        return parse_study(
            "[study]\nname = \"a\"\nmetric = \"loss\"\nmode = \"min\"\nnum_trials = 6\nmax_iterations = 9\n"
            "[trainable]\nname = \"t\"\ndata = \"" +
                path + "\"\n[space]\nlr = \"uniform(0.0, 1.0)\"\n" + rest,
            "/a.toml", {}, ranktune::testing::known({info}), paths);
    };
    StudySpec now = with("old.h5", "5 bytes");
    REQUIRE(now.trainable.content_of("data") != nullptr);
    CHECK(*now.trainable.content_of("data") == "5 bytes");
    CHECK(parse_resolved_study(resolved_toml(now), "/resolved.toml", ranktune::testing::built_in_algorithms())
              .trainable.inputs == now.trainable.inputs);
    CHECK(differences(now, with("old.h5", "5 bytes")).empty());
    // [inputs] of a copied resolved file does not count if the file can be read.
    CHECK(*with("old.h5", "5 bytes", "[inputs]\ndata = \"7 bytes\"\n").trainable.content_of("data") == "5 bytes");

    const auto changed = differences(now, with("old.h5", "6 bytes"));
    CHECK(changed == std::vector<KeyChange>{{"inputs.data", "\"5 bytes\"", "\"6 bytes\"", false}});
    for (const auto& change : differences(now, with("new.h5", "6 bytes"))) CHECK_FALSE(change.may_change);

    const StudySpec moved = with("new.h5", "5 bytes");
    const auto found = differences(now, moved);
    CHECK(found == std::vector<KeyChange>{{"trainable.data", "\"/old.h5\"", "\"/new.h5\"", true}});
    CHECK_FALSE(changes_what_is_decided(found));
    take_over(now, moved);
    CHECK(differences(now, moved).empty());
    take_over(now, with("other.h5", "6 bytes"));
    CHECK(differences(now, moved).empty());

    StudySpec unseen = with("old.h5", ""); // begun by a version that did not record content
    const auto noted = differences(unseen, with("old.h5", "5 bytes"));
    CHECK(noted == std::vector<KeyChange>{{"inputs.data", "", "\"5 bytes\"", true}});
    CHECK_FALSE(changes_what_is_decided(noted));
    CHECK_FALSE(differences(unseen, moved).front().may_change);
    take_over(unseen, with("old.h5", "5 bytes"));
    CHECK(differences(unseen, with("old.h5", "5 bytes")).empty());
}

TEST_CASE("The guide to failures lists what a running study takes over", "[study]") {
    std::ifstream in(RANKTUNE_SOURCE_ROOT "/docs/guides/failure.md");
    const std::string page{std::istreambuf_iterator<char>(in), {}};
    const auto begin = page.find("\n- Taken over: ");
    REQUIRE(begin != std::string::npos);
    const std::string list = page.substr(begin, page.find("\n- Refused", begin) - begin);
    std::size_t listed = 0;
    for (const std::string& key : changeable_keys()) {
        INFO(key);
        const std::string text = key.ends_with('.') ? "[" + key.substr(0, key.size() - 1) + "]" : key;
        CHECK(list.find("`" + text + "`") != std::string::npos);
        ++listed;
    }
    std::set<std::string> options; // several schedulers have the same one
    for (const auto& scheduler : ranktune::testing::built_in_algorithms().schedulers)
        for (const AlgorithmOption& option : scheduler->options)
            if (option.may_change) options.insert(option.name);
    for (const std::string& option : options) CHECK(list.find("`scheduler." + option + "`") != std::string::npos);
    listed += options.size();
    // Nothing else is listed: every word in backquotes is one of these, or a key with its own rule.
    std::size_t quoted = 0;
    for (auto at = list.find('`'); at != std::string::npos; at = list.find('`', list.find('`', at + 1) + 1)) ++quoted;
    CHECK(quoted == listed);
}

TEST_CASE("The command line of a program may be corrected", "[study]") {
    const auto program = [](const std::string& command) {
        return parse_study(
            "[study]\nname = \"a\"\nmetric = \"loss\"\nmode = \"min\"\nnum_trials = 6\nmax_iterations = 9\n"
            "[trainable]\ncommand = \"" +
                command + "\"\n[space]\nlr = \"uniform(0.0, 1.0)\"\n",
            "/a.toml", {}, ranktune::testing::known());
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

TEST_CASE("The form of booleans for a program may be corrected", "[study]") {
    const auto program = [](const std::string& keys) {
        return parse_study(
            "[study]\nname = \"a\"\nmetric = \"loss\"\nmode = \"min\"\nnum_trials = 6\nmax_iterations = 9\n"
            "[trainable]\ncommand = \"train.py {args}\"\n" +
                keys + "[space]\namp = [true, false]\n",
            "/a.toml", {}, ranktune::testing::known());
    };
    StudySpec now = program("");
    const StudySpec later = program("flags = true\n");
    const auto found = differences(now, later);
    CHECK(found == std::vector<KeyChange>{{"trainable.flags", "false", "true", true}});
    CHECK(changes_what_is_decided(found)); // as for another command: failed trials may succeed now
    take_over(now, later);
    CHECK(differences(now, later).empty());
}

TEST_CASE("A study may say later that its program gives no checkpoints", "[study]") {
    const auto program = [](const std::string& trainable, const std::string& scheduler) {
        return parse_study(
            "[study]\nname = \"a\"\nmetric = \"loss\"\nmode = \"min\"\nnum_trials = 6\nmax_iterations = 9\n"
            "[trainable]\ncommand = \"train.py\"\n" +
                trainable + "[space]\nlr = \"uniform(0.0, 1.0)\"\n[scheduler]\ntype = \"asha\"\n" + scheduler,
            "/a.toml", {}, ranktune::testing::known());
    };
    StudySpec now = program("", "");
    const StudySpec later = program("checkpoints = false\n", "restart_paused = true\n");
    const auto found = differences(now, later);
    REQUIRE_FALSE(found.empty());
    for (const auto& change : found) CHECK(change.may_change);
    take_over(now, later);
    CHECK(differences(now, later).empty());
    // The scheduler may not change.
    const auto other = differences(now, program("checkpoints = false\n", "variant = \"stop\"\n"));
    CHECK(std::ranges::any_of(other, [](const KeyChange& change) { return !change.may_change; }));
}

TEST_CASE("take_over copies exactly the keys that may change", "[study]") {
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
