// SPDX-License-Identifier: Apache-2.0
// What people see of a population: whose weights a trial has, and what they were trained with.
#include "tuner/lineage.hpp"

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "report/explain/explain.hpp"
#include "report/explain/life.hpp"
#include "report/export/export.hpp"
#include "report/replay/replay.hpp"
#include "report/screens/screens.hpp"
#include "report/screens/trial_table.hpp"
#include "study_by_hand.hpp"
#include "support/catch.hpp"
#include "view_by_hand.hpp"

namespace lineage_test {

using namespace ranktune;
using namespace ranktune::report;
using ranktune::report::testing::rising;
using ranktune::report::testing::StudyByHand;

namespace {

std::string population(base::Iteration max_iterations) {
    return R"toml([study]
name = "population"
metric = "score"
mode = "max"
num_trials = 4
seed = 1
max_iterations = )toml" +
           std::to_string(max_iterations) + R"toml(
[trainable]
name = "any"
[space]
lr = "uniform(0.1, 10.0)"
[scheduler]
type = "pbt"
interval = 2
resample_probability = 0.0
explore.lr = [0.5, 2.0]
)toml";
}

/// All but the last one report `score` for themselves, in the order of their scores.
void report_all(StudyByHand& study, base::Iteration iteration, const std::vector<std::uint32_t>& best_first) {
    double score = 1.0;
    for (const std::uint32_t trial : best_first) {
        study.report(trial, iteration, score);
        if (score == 1.0) study.saved(trial, iteration);
        score -= 0.1;
    }
}

std::string text_of(const std::vector<tuner::Stretch>& stretches) {
    std::string text;
    for (const tuner::Stretch& each : stretches)
        text += "#" + std::to_string(each.trial.value()) + " " + std::to_string(each.from) + "-" +
                std::to_string(each.to) + " lr " + each.configuration->at("lr").text() + "\n";
    return text;
}

/// The trial begins another attempt, from what it has.
void restart(StudyByHand& study, std::uint32_t trial) {
    const base::TrialId id(trial);
    const base::AttemptId attempt = study.state(trial).attempt.id;
    const auto ranks = study.state(trial).attempt.ranks;
    study.tuner.apply(study::AttemptEnded{id, attempt, {}, study::AttemptOutcome::lost, true, {}});
    study.tuner.apply(study::TrialStarted{id, attempt.next(), {}, ranks, tuner::start_of(study.state(trial)).from});
}

struct Taken : StudyByHand {
    Taken() : StudyByHand(population(9)) {
        began(4);
        for (std::uint32_t trial = 0; trial < 4; ++trial) lr.push_back(state(trial).configuration.at("lr").text());
        // #0 takes over #3 at 2, and with it comes to the top; then #1 takes over #0 at 4.
        for (const std::uint32_t trial : {0U, 1U, 2U, 3U}) report(trial, 1, 0.0);
        report_all(*this, 2, {3, 2, 1, 0});
        over(0, study::AttemptOutcome::stopped);
        for (const std::uint32_t trial : {0U, 1U, 2U, 3U}) report(trial, 3, 0.0);
        report_all(*this, 4, {0, 3, 2, 1});
        over(1, study::AttemptOutcome::stopped);
        report(1, 5, 2.0);
    }
    [[nodiscard]] std::string now(std::uint32_t trial) { return state(trial).configuration.at("lr").text(); }
    std::vector<std::string> lr; ///< at the beginning
};

} // namespace

TEST_CASE("The lineage of a trial goes back through those that it took over from", "[report][pbt]") {
    Taken study;
    REQUIRE(study.state(0).generation() == 1);
    REQUIRE(study.state(1).generation() == 1);
    const auto of = [&](std::uint32_t trial) { return text_of(lineage(study.tuner.state(), base::TrialId(trial))); };
    CHECK(of(2) == "#2 0-4 lr " + study.lr[2] + "\n");
    CHECK(of(0) == "#3 0-2 lr " + study.lr[3] + "\n#0 2-4 lr " + study.now(0) + "\n");
    CHECK(of(1) == "#3 0-2 lr " + study.lr[3] + "\n#0 2-4 lr " + study.now(0) + "\n#1 4-5 lr " + study.now(1) + "\n");
}

TEST_CASE("The life of a trial says what it took over, and what changed", "[report][pbt]") {
    Taken study;
    TrialLife life(study::TrialId{1}, "score");
    for (const auto& record : study.records) life.add(record);
    std::string told;
    for (const auto& line : life.lines()) told += line + "\n";
    INFO(told);
    CHECK(told.find("exploit: takes over the state of #0 at iteration 4") != std::string::npos);
    CHECK(told.find("takes over iteration 4 of #0, lr ") != std::string::npos);
    CHECK(told.find("attempt 2 started on n0 (w2), from iteration 4 of #0") != std::string::npos);
}

TEST_CASE("A trial that took over a state explains whose, and what changed", "[report][pbt]") {
    Taken study;
    Style style;
    style.width = 200;
    const std::string text = explanation(view_of(study), study::TrialId{1}, "population", true, style);
    INFO(text);
    CHECK(text.find("took over #0's iteration 4, at iteration 4, lr ") != std::string::npos);
    CHECK(text.find(" -> " + value_text(study.state(1).configuration.at("lr"))) != std::string::npos);
    CHECK(text.find("origin    suggested by random\n") != std::string::npos);
}

TEST_CASE("The best trial of a population is shown with its schedule", "[report][pbt]") {
    Taken study;
    const std::string screen = best_screen(study.tuner, "population", {}, false);
    INFO(screen);
    CHECK(screen.find("schedule  0-2 as #3  lr=") != std::string::npos);
    CHECK(screen.find("          2-4 as #0  lr=") != std::string::npos);
    CHECK(screen.find("          4-5 as #1  lr=") != std::string::npos);
    CHECK(screen.find("judge the") != std::string::npos);
    const std::string table = live_table(study.tuner, {}, {});
    INFO(table);
    CHECK(table.find("took over") != std::string::npos);
    CHECK(table.find("#0@4 (1)") != std::string::npos);
    CHECK(table.find("#3@2 (1)") != std::string::npos);
}

TEST_CASE("A long schedule is shown from its end", "[report][pbt]") {
    StudyByHand study(population(60));
    study.began(4);
    // The last one of each point takes over the first one.
    for (base::Iteration iteration = 1; iteration <= 58; ++iteration) {
        const std::uint32_t worst = (iteration / 2) % 4;
        double score = static_cast<double>(iteration);
        for (std::uint32_t k = 1; k <= 4; ++k) {
            const std::uint32_t trial = (worst + k) % 4;
            study.report(trial, iteration, score);
            if (iteration % 2 == 0 && k == 1) study.saved(trial, iteration);
            score -= 0.1;
        }
        if (winds_down(study.state(worst))) study.over(worst, study::AttemptOutcome::stopped);
    }
    const auto stretches = lineage_of_best(study.tuner.state(), *study.tuner.state().best);
    REQUIRE(stretches.size() > 8);
    const std::string screen = best_screen(study.tuner, "population", {}, false);
    INFO(screen);
    CHECK(screen.find(std::to_string(stretches.size() - 8) + " earlier stretches; all:") != std::string::npos);
    CHECK(screen.find("ranktune export population --format json") != std::string::npos);
    CHECK(screen.find("-58 as #" + std::to_string(study.tuner.state().best->value())) != std::string::npos);
}

// (Ray writes a policy file while it trains, and none for a trial that took over nothing, which is an error there. Here
// every study can be asked afterwards, for every trial.)
TEST_CASE("P15: a trial that repeats a member has its configurations at the same iterations [LogConfig, Replay]",
          "[report][pbt]") {
    Taken study;
    const std::string text = study::resolved_toml(repeated(study.tuner, base::TrialId(1)));
    INFO(text);
    CHECK(text.find("name = \"population-trial-1\"") != std::string::npos);
    CHECK(text.find("[scheduler.schedule]\nlr = [[2, " + study.now(0) + "], [4, " + study.now(1) + "]]\n") !=
          std::string::npos);
    StudyByHand again(text); // as a user's study file
    again.began(1);
    again.play_out(rising);
    const auto stretches = lineage(study.tuner.state(), base::TrialId(1));
    CHECK(again.state(0).phase == study::TrialPhase::finished);
    CHECK(again.state(0).iteration == 5);
    base::Iteration trained = 0;
    for (const tuner::Stretch& stretch : stretches)
        for (base::Iteration i = 0; i < stretch.length(); ++i)
            CHECK(tuner::configuration_at(again.state(0), ++trained) == *stretch.configuration);
    CHECK(trained == 5);
    // It is shown as a schedule of its own.
    TrialLife life(study::TrialId{0}, "score");
    for (const auto& record : again.records) life.add(record);
    std::string told;
    for (const auto& line : life.lines()) told += line + "\n";
    INFO(told);
    CHECK(told.find("goes on from iteration 2, lr ") != std::string::npos);
    CHECK(told.find("attempt 2 started on n1 (w1), from iteration 2\n") != std::string::npos);
    const std::string screen = best_screen(again.tuner, "again", {}, false);
    INFO(screen);
    CHECK(screen.find("schedule  0-2  lr=") != std::string::npos);
    CHECK(screen.find("judge the") == std::string::npos);
    CHECK(live_table(again.tuner, {}, {}).find("took over") == std::string::npos);
}

TEST_CASE("The best value of a member is shown, and repeated, with the configuration that it was reached with",
          "[report][pbt]") {
    Taken study;
    const std::string at_best = study.now(1);
    for (const std::uint32_t trial : {0U, 2U, 3U}) study.report(trial, 5, 0.0);
    report_all(study, 6, {0, 3, 2, 1}); // and #1 takes over #0 once more
    study.over(1, study::AttemptOutcome::stopped);
    REQUIRE(study.now(1) != at_best);
    REQUIRE(study.tuner.state().best == base::TrialId(1));
    REQUIRE(study.state(1).best_iteration == 5);

    std::ostringstream csv;
    export_trials_csv(
        study.tuner, [](const auto&) {}, csv);
    INFO(csv.str());
    CHECK(csv.str().find(at_best) != std::string::npos);
    CHECK(csv.str().find(study.now(1)) == std::string::npos);
    std::ostringstream json;
    export_json(
        std::move(report::testing::Reread(study).loaded), [](const auto&) {}, json);
    const auto trial = nlohmann::json::parse(json.str())["trials"][1];
    CHECK(trial["configuration"]["lr"] == nlohmann::json::parse(at_best));
    CHECK(trial["best"]["iteration"] == 5);
    CHECK(trial["takeovers"][1]["configuration"]["lr"] == nlohmann::json::parse(study.now(1)));
    const TrialTable table(study.tuner, {.columns = {"trial", "lr"}}, false, {});
    const std::string shown = table.text({}, "population");
    INFO(shown);
    CHECK(shown.find(at_best.substr(0, 4)) != std::string::npos);
    CHECK(shown.find(study.now(1).substr(0, 4)) == std::string::npos);

    CHECK(repeated_best(study.tuner).max_iterations == 5);
    CHECK(repeated(study.tuner, base::TrialId(1)).max_iterations == 6);
    const std::string text = study::resolved_toml(repeated_best(study.tuner));
    CHECK(text.find("[4, " + at_best + "]]\n") != std::string::npos);
}

TEST_CASE("The schedule of the best report stays when its takeover is undone later", "[report][pbt]") {
    Taken study;
    const std::string after = study.now(1);
    const std::string at_best = text_of(lineage_of_best(study.tuner.state(), base::TrialId(1)));
    study.tuner.apply(study::ExploitUndone{base::TrialId(1), {}, 0, study::StateLoss::evicted});
    CHECK(study.now(1) == study.lr[1]);
    CHECK(text_of(lineage_of_best(study.tuner.state(), base::TrialId(1))) == at_best);
    CHECK(tuner::best_configuration(study.state(1)).at("lr").text() == after);
    // #0 may have to begin again, too: what #1 took over from it stays what it was.
    study.tuner.apply(study::ExploitUndone{base::TrialId(0), {}, 0, study::StateLoss::evicted});
    CHECK(text_of(lineage_of_best(study.tuner.state(), base::TrialId(1))) == at_best);
    CHECK(repeated_best(study.tuner).max_iterations == 5);
    restart(study, 1);
    study.tuner.apply(study::Reported{
        base::TrialId(1), study.state(1).attempt.id, {}, 1, 0.0, {{base::MetricId(0), 0.0}}, {study::Verb::go_on}});
    CHECK(text_of(lineage(study.tuner.state(), base::TrialId(1))) == "#1 0-1 lr " + study.lr[1] + "\n");
    CHECK(repeated(study.tuner, base::TrialId(1)).max_iterations == 1);
    TrialLife life(study::TrialId{1}, "score");
    for (const auto& record : study.records) life.add(record);
    life.add(study::ExploitUndone{base::TrialId(1), {}, 0, study::StateLoss::evicted});
    CHECK(life.lines().back().find("checkpoint.max_bytes leaves no state since its takeover") != std::string::npos);
}

TEST_CASE("A trial that took over nothing is repeated as it is", "[report][pbt]") {
    Taken study;
    const study::StudySpec spec = repeated(study.tuner, base::TrialId(2));
    CHECK(spec.scheduler.algorithm->name == "fifo");
    CHECK(spec.max_iterations == 4);
    StudyByHand again(study::resolved_toml(spec));
    again.began(1);
    CHECK(again.state(0).configuration == study.state(2).configuration);
    StudyByHand fresh(population(9));
    fresh.began(4);
    CHECK_THROWS_AS(static_cast<void>(repeated(fresh.tuner, base::TrialId(0))), base::UsageError);
}

TEST_CASE("A trial is repeated with the hyper-parameters that appear and vanish", "[report][pbt]") {
    std::string text = population(9);
    const std::string plain = "lr = \"uniform(0.1, 10.0)\"\n";
    text.replace(text.find(plain), plain.size(),
                 plain +
                     "method = [\"adam\", \"sgd\"]\n"
                     "momentum = { domain = \"uniform(0, 1)\", condition = \"method == 'sgd'\" }\n"
                     "unused = { value = 3, condition = \"method == 'sgd' and lr > 20\" }\n"
                     "size = [[8, 8], [16, 16]]\n");
    StudyByHand study(text + "explore.method = \"resample\"\n");
    study.began(4);
    const space::Value size = study.state(0).configuration.at("size");
    const auto with = [&](double lr, const char* method, std::optional<double> momentum) {
        space::Configuration configuration;
        configuration.set("lr", lr);
        configuration.set("method", method);
        if (momentum) configuration.set("momentum", *momentum);
        configuration.set("size", size);
        return configuration;
    };
    const space::Configuration first = study.state(0).configuration;
    std::vector<space::Configuration> all{first,
                                          with(1.5, "adam", {}),
                                          with(1.5, "sgd", 0.25),
                                          with(2.5, "sgd", 0.5),
                                          with(2.5, "adam", {}),
                                          with(2.5, "sgd", 0.5)};
    for (std::uint32_t i = 1; i < all.size(); ++i) {
        study.report(0, i, 1.0);
        study.saved(0, i);
        const auto& state = study.state(0).checkpoints.back();
        study.tuner.apply(study::Exploited{base::TrialId(0), {}, i, {base::TrialId(0), state}, i, all[i]});
        restart(study, 0);
    }
    study.report(0, all.size(), 1.0);
    const std::string file = study::resolved_toml(repeated(study.tuner, base::TrialId(0)));
    INFO(file);
    StudyByHand again(file);
    again.began(1);
    again.play_out(rising);
    for (std::uint32_t i = 0; i < all.size(); ++i) CHECK(tuner::configuration_at(again.state(0), i + 1) == all[i]);
}

} // namespace lineage_test
