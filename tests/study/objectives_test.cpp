// SPDX-License-Identifier: Apache-2.0
// Several objectives: how study.metric and study.mode are read and written, and what refuses them.
#include <cmath>

#include "ranktune/schedulers/objective_reader.hpp"
#include "ranktune/study/change.hpp"
#include "ranktune/study/schema.hpp"
#include "study/constraint.hpp"
#include "study_files.hpp"
#include "support/catch.hpp"

namespace objectives_test {

using namespace ranktune;
using namespace ranktune::study;
using namespace ranktune::study::testing;
using ranktune::testing::listed;
using ranktune::testing::names_of;

namespace {

Parts with_goals(const std::string& metric, const std::string& mode, const std::string& rest = "") {
    Parts parts = free_parts();
    parts.study = "name = \"s\"\nmetric = " + metric + "\nmode = " + mode + "\nnum_trials = 10\nmax_iterations = 27\n";
    parts.rest = rest;
    return parts;
}

Parts two_goals(const std::string& rest) { return with_goals(R"(["accuracy", "latency"])", R"(["max", "min"])", rest); }

} // namespace

TEST_CASE("a list of metrics is several objectives, and part of what a study is", "[study]") {
    const StudySpec spec = parse(two_goals("").text());
    CHECK(spec.objective.several());
    const std::vector<Goal> expected = {{"accuracy", Mode::max}, {"latency", Mode::min}};
    CHECK(spec.objective.goals() == expected);
    CHECK(metrics_text(spec.objective) == "accuracy and latency");
    const std::string resolved = resolved_toml(spec);
    CHECK(resolved.find("metric = [\"accuracy\", \"latency\"]\nmode = [\"max\", \"min\"]\n") != std::string::npos);
    CHECK(parse_resolved(resolved).objective.goals() == expected);

    const auto changes = differences(spec, parse(with_goals(R"(["accuracy", "size"])", R"(["max", "min"])").text()));
    REQUIRE(changes.size() == 1);
    CHECK(changes.front().key == "study.metric");
    CHECK_FALSE(changes.front().may_change);

    const StudySpec one = parse(with_goals(R"(["loss"])", R"(["min"])").text());
    CHECK_FALSE(one.objective.several());
    CHECK(resolved_toml(one).find("metric = \"loss\"\nmode = \"min\"\n") != std::string::npos);
}

TEST_CASE("mistakes of several objectives", "[study]") {
    const auto said = [](const std::string& metric, const std::string& mode) {
        return mistake(with_goals(metric, mode).text());
    };
    const std::string different = "needs 1 to 4 different metrics; put limits on others into study.constraints";
    CHECK(said("[]", "[]") == "3:10 study.metric: " + different);
    CHECK(said(R"(["a", "a"])", R"(["max", "min"])") == "3:10 study.metric: " + different);
    CHECK(said(R"(["a", "b", "c", "d", "e"])", R"(["max", "min"])") == "3:10 study.metric: " + different);
    CHECK(said(R"(["a", 3])", R"(["max", "min"])").find("3:16 study.metric: needs a list of strings") == 0);
    const std::string each =
        "needs a list with \"min\" or \"max\" for each of the 2 metrics of study.metric, as in [\"max\", \"min\"]";
    CHECK(said(R"(["a", "b"])", "\"max\"") == "4:8 study.mode: " + each);
    CHECK(said(R"(["a", "b"])", R"(["max"])") == "4:8 study.mode: " + each);
    CHECK(said(R"(["a", "b"])", R"(["max", "mim"])") ==
          "4:16 study.mode: unknown value \"mim\"; accepted: \"min\" or \"max\"");
    CHECK(said("\"a\"", R"(["max"])").find("4:8 study.mode: needs \"min\" or \"max\", not a list") == 0);
    Parts mlp;
    mlp.study =
        "name = \"s\"\nmetric = [\"val_loss\", \"val_los\"]\nmode = [\"min\", \"min\"]\nnum_trials = 1\n"
        "max_iterations = 2\n";
    CHECK(mistake(mlp.text()).find("3:23 study.metric: the trainable 'mlp' does not report \"val_los\"") == 0);
}

TEST_CASE("an algorithm that knows one objective refuses several, and names those that do not", "[study]") {
    const auto said = [](const std::string& rest) { return mistake(two_goals(rest).text()); };
    const auto knows_several = [](const AlgorithmInfo& info) { return info.several_objectives; };
    const std::string able = listed(names_of(schedulers::built_in(), knows_several));
    CHECK(able == "\"fifo\", \"asha\" or \"schedule\"");
    for (const auto& info : schedulers::built_in()) {
        INFO(info->name);
        std::string rest = "[scheduler]\ntype = \"" + info->name + "\"\n";
        if (info->explores) rest += "[scheduler.explore]\nlr = \"perturb\"\n";
        if (info->schedules) rest += "[scheduler.schedule]\nlr = [[2, 0.5]]\n";
        const std::string refusal = "12:8 scheduler.type: \"" + info->name +
                                    "\" compares trials by one metric, and study.metric names 2; use " + able +
                                    ", or one metric and limits on the others in study.constraints";
        CHECK(said(rest) == (info->several_objectives ? "" : refusal));
    }
    CHECK(said("[scheduler]\ntype = \"asha\"\nvariant = \"stop\"\n").empty());
    CHECK(said("[scheduler]\ntype = \"asha\"\nvariant = \"stop\"\nrule = \"ray\"\n") ==
          "14:8 scheduler.rule: \"ray\" compares trials by one metric; with several in study.metric use \"floor\"");
    for (const auto& info : searchers::built_in()) {
        if (info->whole_space) continue; // refuses this space
        INFO(info->name);
        const std::string text =
            said("[searcher]\ntype = \"" + info->name + "\"\n" + (info->runs_program ? "command = \"x\"\n" : ""));
        const bool refused =
            text.starts_with("12:8 searcher.type: \"" + info->name + "\" compares trials by one metric");
        CHECK(refused == !info->several_objectives);
        CHECK(text.empty() == info->several_objectives);
    }
    CHECK(said("[searcher]\ntype = \"nsga2\"\nwarm_start = [\"old\"]\n")
              .find("searcher.warm_start: does not go with several metrics in study.metric") != std::string::npos);
}

TEST_CASE("a report is complete with all objectives, and its score has all of them", "[study]") {
    const Objective objective{"accuracy", Mode::max, {{"size", 5.0, true}}, {{"latency", Mode::min}}};
    schedulers::ObjectiveReader reader(objective);
    const auto id = [](unsigned n) { return MetricId(static_cast<MetricId::rep>(n)); };
    reader.apply(MetricDefined{id(0), "latency"});
    reader.apply(MetricDefined{id(1), "accuracy"});
    reader.apply(MetricDefined{id(2), "size"});
    CHECK_FALSE(reader.read({{id(1), 0.5}, {id(2), 1.0}}).complete);
    const auto reading = reader.read({{id(1), 0.5}, {id(0), 20.0}, {id(2), 1.0}});
    CHECK(reading.complete);
    CHECK(reading.others[0] == 20.0);
    const Score score = reader.score(reading);
    CHECK(std::vector<double>(score.values().begin(), score.values().end()) == std::vector{0.5, -20.0});
    CHECK(score.trouble() == 0.0);
    CHECK(reader.score(reader.read({{id(1), 0.5}, {id(0), 20.0}, {id(2), 7.0}})).trouble() == 2.0);
    CHECK(reader.score(reader.read({{id(1), 0.5}, {id(0), NAN}, {id(2), 1.0}})).trouble() == INFINITY);
    CHECK(Score().trouble() == INFINITY);

    Bytes bytes;
    Encoder out(bytes);
    reader.snapshot(out);
    put(out, score);
    schedulers::ObjectiveReader again(objective);
    Decoder in(bytes);
    again.restore(in);
    CHECK(decoded<Score>(in) == score);
    CHECK(in.empty());
    CHECK(again.read({{id(1), 0.5}, {id(0), 20.0}, {id(2), 1.0}}).complete);
}

} // namespace objectives_test
