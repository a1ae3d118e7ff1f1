// SPDX-License-Identifier: Apache-2.0
// What the end of an attempt means, cell by cell: every outcome, by what the trial had been told and which retries it
// has left, in a study of two ranks on two hosts. Compared with golden/outcomes.txt.

#include <array>
#include <cstdint>
#include <iomanip>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "support/golden.hpp"
#include "tuner/rules/causes.hpp"
#include "tuner/small_core.hpp"

namespace ranktune::tuner::outcomes_test {
namespace {

using testing::small_study;
using testing::SmallCore;

constexpr std::array outcomes = {AttemptOutcome::paused,     AttemptOutcome::stopped,     AttemptOutcome::finished,
                                 AttemptOutcome::failed,     AttemptOutcome::lost,        AttemptOutcome::disturbed,
                                 AttemptOutcome::unreadable, AttemptOutcome::unreachable, AttemptOutcome::unstarted,
                                 AttemptOutcome::unsaved,    AttemptOutcome::stateless,   AttemptOutcome::oversized,
                                 AttemptOutcome::resized,    AttemptOutcome::permanent};
static_assert(outcomes.size() == static_cast<std::size_t>(last_attempt_outcome) + 1);

/// What has been reported before trial 0's attempt ends. It trains on the first host, n0; trial 1 trains on the other.
/// Trials pause at the rung at iteration 2, where nobody has been before, and stop at a score of 0.9.
struct Scene {
    struct Report {
        std::uint32_t trial;
        Iteration iteration;
        double score;
    };
    std::string told;
    std::uint32_t slots; ///< of a deterministic study; 0: of an asynchronous one
    std::vector<Report> reports;
    bool population = false; ///< two trials, of which the worse one takes over the other's state at iteration 2
};
const std::vector<Scene> scenes = {
    {"go on", 0, {{0, 1, 0.5}}},
    {"pause", 0, {{0, 1, 0.5}, {0, 2, 0.6}}},
    {"exploit", 0, {{1, 1, 0.7}, {1, 2, 0.8}, {0, 1, 0.5}, {0, 2, 0.6}}, true},
    {"stop", 0, {{0, 1, 0.5}, {0, 2, 0.95}}},
    {"go on (by turn)", 2, {{0, 1, 0.5}, {1, 1, 0.5}}},
    {"yield", 3, {{0, 1, 0.5}, {0, 2, 0.6}}}, // the turns of trial 1, and of trial 2, which has no rank, come before
    {"pause (by turn)", 2, {{0, 1, 0.5}, {1, 1, 0.5}, {0, 2, 0.6}}},
    {"stop (by turn)", 2, {{0, 1, 0.5}, {1, 1, 0.5}, {0, 2, 0.95}}}};

std::string study_of(std::uint32_t slots, bool left, bool population = false) {
    std::string study = "max_iterations = 9\n";
    if (slots > 0) study += "deterministic = true\nmax_concurrent = " + std::to_string(slots) + "\n";
    const std::string scheduler =
        population ? "type = \"pbt\"\ninterval = 2\nquantile = 0.5\n[scheduler.explore]\nx = [0.8, 1.25]\n"
                   : "type = \"asha\"\nfirst_rung = 2\n";
    std::string text = small_study(study, "[scheduler]\n" + scheduler +
                                              "[stop]\nmetric = \"score >= 0.9\"\n"
                                              "[failure]\nmax_losses = 1\nmax_failures = " +
                                              (left ? "1\n" : "0\n"));
    if (population) text.replace(text.find("num_trials = 4"), 14, "num_trials = 2");
    return text;
}

/// Up to the moment before the end of trial 0's attempt. One failure counts against the host already: an attempt of the
/// trial that could not be set up. `left`: it has a checkpoint and may fail and be lost once more; otherwise nothing.
SmallCore played(const Scene& scene, bool left) {
    SmallCore core(study_of(scene.slots, left, scene.population));
    core.began({"n0", "n1"});
    core.over(0, AttemptOutcome::unstarted, {"no room for its folder"});
    if (!left) core.over(0, AttemptOutcome::lost);
    for (const auto& [trial, iteration, score] : scene.reports) {
        core.report(trial, iteration, score);
        if (left && trial == 0 && iteration == 1) core.saved(0, 1);
        if (scene.population && trial == 1 && iteration == 2) core.saved(1, 2);
    }
    return core;
}

std::string recorded(const SmallCore& core) {
    const auto* ended = core.record<study::AttemptEnded>();
    return std::string(name(ended->outcome)) + (ended->retry ? ", retry" : "");
}

/// The state of the trial at the end of the step.
std::string fate(const SmallCore& core) {
    for (const auto& record : core.records())
        if (const auto* started = std::get_if<study::TrialStarted>(&record); started && started->trial == TrialId{0}) {
            if (const auto* donor = std::get_if<Donor>(&started->from))
                return "takes over " + named(donor->trial) + " at " + std::to_string(donor->checkpoint.iteration);
            const auto* checkpoint = std::get_if<CheckpointRef>(&started->from);
            return "runs again from " + std::to_string(checkpoint ? checkpoint->iteration : 0);
        }
    return std::string(name(core.trial(0).phase)) + (winds_down(core.trial(0)) ? ", winding down" : "");
}

/// What the trial was charged with at this end, by what it had before.
std::string costs(const Trial& before, const Trial& after) {
    if (after.failures == before.failures && after.losses == before.losses) return "-";
    if (after.failures == before.failures + 1 && after.losses == before.losses) return "a failure";
    if (after.failures == before.failures && after.losses == before.losses + 1) return "a loss";
    return after.failures == before.failures && after.losses == 0 ? "forgiven" : "?";
}

std::string host(const SmallCore& core) {
    const std::size_t against = core.state().blame.hosts()[0].failed.size();
    return against == 0 ? "cleared" : against == 1 ? "-" : "noted";
}

std::string study_after(const SmallCore& core) {
    if (!core.state().draining) return "goes on";
    return "drains: " + study::describe(core.state().drain_reason, 0.0, 0.0);
}

std::string row(const std::vector<std::string>& cells) {
    constexpr std::array<int, 7> widths = {13, 17, 6, 20, 28, 10, 9};
    std::ostringstream text;
    for (std::size_t i = 0; i < cells.size(); ++i)
        text << std::left << std::setw(i < widths.size() ? widths[i] : 0) << cells[i];
    return text.str() + "\n";
}

std::string table() {
    std::string text = row({"outcome", "told to", "left", "recorded", "the trial", "costs", "host", "the study"});
    for (const AttemptOutcome outcome : outcomes) {
        text += "\n";
        for (const Scene& scene : scenes) {
            for (const bool left : {true, false}) {
                SmallCore core = played(scene, left);
                INFO(name(outcome) << ", told to " << scene.told << ", left " << left);
                const Trial before = core.trial(0);
                core.over(0, outcome, {"it broke", 0});
                text += row({std::string(name(outcome)), scene.told, left ? "yes" : "no", recorded(core), fate(core),
                             costs(before, core.trial(0)), host(core), study_after(core)});
            }
        }
    }
    return text;
}

} // namespace

TEST_CASE("Each outcome of an attempt means what the table says", "[tuner]") {
    const std::string text = table();
    CHECK(text == ranktune::testing::golden("tuner", "outcomes", text));
}

TEST_CASE("An end without a report is a failure, also if reports wait for their turn", "[tuner]") {
    SmallCore core(study_of(0, false));
    core.began({"n0", "n1"});
    core.over(0, AttemptOutcome::finished);
    CHECK(recorded(core) == "failed");
    CHECK(core.trial(0).phase == TrialPhase::failed);
    CHECK(core.trial(0).failure.message == "the trainable ended without a single report");

    SmallCore by_turn(study_of(2, false));
    by_turn.began({"n0", "n1"});
    by_turn.over(1, AttemptOutcome::finished);
    CHECK(recorded(by_turn) == "failed");
    CHECK(by_turn.trial(1).phase == TrialPhase::waiting); // for its turn
    by_turn.report(0, 1, 0.5);
    CHECK(by_turn.trial(1).phase == TrialPhase::failed);

    SmallCore held(study_of(2, false));
    held.began({"n0", "n1"});
    held.report(1, 1, 0.5);
    held.over(1, AttemptOutcome::finished);
    CHECK(recorded(held) == "finished");
    held.report(0, 1, 0.5);
    held.report(0, 2, 0.5);
    CHECK(held.trial(1).phase == TrialPhase::finished);
}

TEST_CASE("A trial that cannot be set up ends the study unless its host alone is the cause", "[tuner]") {
    const std::string spec = study_of(0, false);
    SECTION("there is no other host") {
        SmallCore core(spec);
        core.began({"n0"});
        core.over(0, AttemptOutcome::unstarted, {"no room", 0});
        CHECK(study_after(core) == "drains: a trial could not be set up");
        CHECK(core.state().drain_message.starts_with("trial #0 could not be set up on n0: no room."));
    }
    SECTION("another host says the same") {
        SmallCore core(spec);
        core.began({"n0", "n1"});
        core.over(0, AttemptOutcome::unstarted, {"no room for 7", 0});
        CHECK(study_after(core) == "goes on");
        core.over(1, AttemptOutcome::unstarted, {"no room for 8", 1});
        CHECK(study_after(core) == "drains: a trial could not be set up");
    }
    SECTION("another host says something else") {
        SmallCore core(spec);
        core.began({"n0", "n1"});
        core.over(0, AttemptOutcome::unstarted, {"no room", 0});
        core.over(1, AttemptOutcome::unstarted, {"no shell", 0});
        CHECK(study_after(core) == "goes on");
    }
}

TEST_CASE("An attempt that lost a rank is lost, whatever its leader says, unless its own code hung", "[tuner]") {
    const auto played = [](const std::string& mode, bool guilty, double score) {
        SmallCore core(small_study("max_iterations = 9\n" + mode,
                                   "[resources]\nranks = 2\n[stop]\nmetric = \"score >= "
                                   "0.9\"\n[failure]\nmax_failures = 1\n"));
        core.began({"n0", "n0"});
        core.report(0, 1, score);
        core.gone(2, guilty, "no report within 5 s");
        core.over(0, AttemptOutcome::finished, {"done"});
        return recorded(core) + ": " + core.record<study::AttemptEnded>()->failure.message;
    };
    const std::string by_turn = "deterministic = true\nmax_concurrent = 1\n";
    CHECK(played("", false, 0.5) == "lost, retry: ");
    CHECK(played("", true, 0.5) == "failed, retry: no report within 5 s");
    CHECK(played("", true, 0.95) == "lost: "); // it had been told to stop: only its ranks come back
    CHECK(played(by_turn, false, 0.5) == "lost, retry: ");
    CHECK(played(by_turn, true, 0.5) == "disturbed, retry: no report within 5 s"); // hanging depends on the machine
    CHECK(played(by_turn, true, 0.95) == "lost: ");
}

TEST_CASE("A failure with the same message at the same iteration is not retried", "[tuner]") {
    SmallCore core(small_study("max_iterations = 9\n", "[failure]\nmax_failures = 5\n"));
    core.began({"n0"});
    const auto end = [&](Iteration reports, const study::Failure& failure) {
        for (Iteration iteration = 1; iteration <= reports; ++iteration) core.report(0, iteration, 0.5);
        core.over(0, AttemptOutcome::failed, failure);
        return recorded(core);
    };
    CHECK(end(1, {"loss is NaN", 0}) == "failed, retry");
    CHECK(end(2, {"loss is NaN", 0}) == "failed, retry"); // it got further
    CHECK(end(2, {"no disk", 0}) == "failed, retry");
    CHECK(end(2, {"no disk", 1}) == "failed"); // on whichever rank
    CHECK(core.trial(0).failure == study::Failure{"no disk", 1});
}

TEST_CASE("A trial that is too large for its device is not tried again, whatever max_failures allows", "[tuner]") {
    for (const char* const mode : {"", "deterministic = true\nmax_concurrent = 1\n"}) {
        SmallCore core(small_study("max_iterations = 9\n" + std::string(mode), "[failure]\nmax_failures = 5\n"));
        core.began({"n0"});
        core.report(0, 1, 0.5);
        core.over(0, AttemptOutcome::oversized, {"the trial needs more memory than the device has", 0});
        CHECK(recorded(core) == "oversized");
        CHECK(core.trial(0).phase == TrialPhase::failed);
        CHECK(core.trial(0).failure.message == "the trial needs more memory than the device has");
    }
}

TEST_CASE("With failure.retry_on its exit codes are retried also in the same words, others never", "[tuner]") {
    std::string text = small_study("max_iterations = 9\n", "[failure]\nmax_failures = 3\nretry_on = [75]\n");
    text.replace(text.find("name = \"any\""), 12, "command = \"./train {x}\"");
    SmallCore core(text);
    core.began({"n0"});
    for (int attempt = 0; attempt < 2; ++attempt) {
        core.over(0, AttemptOutcome::failed, {"exit code 75", 0});
        CHECK(recorded(core) == "failed, retry");
    }
    core.over(0, AttemptOutcome::permanent, {"exit code 1", 0});
    CHECK(recorded(core) == "permanent");
    CHECK(core.trial(0).phase == TrialPhase::failed);
}

TEST_CASE("The verdict of an earlier attempt does not decide about the loss of the next one", "[tuner]") {
    SECTION("promoted from a rung") {
        SmallCore core(
            small_study("max_iterations = 4\n", "[scheduler]\ntype = \"asha\"\neta = 2\n[failure]\nmax_losses = 1\n"));
        core.began({"n0"});
        core.report(0, 1, 0.5);
        core.over(0, AttemptOutcome::paused);
        core.report(1, 1, 0.4);
        core.over(1, AttemptOutcome::paused);
        REQUIRE(core.record<study::TrialPromoted>() != nullptr);
        core.over(0, AttemptOutcome::lost);
        CHECK(recorded(core) == "lost, retry");
        core.over(0, AttemptOutcome::lost);
        CHECK(recorded(core) == "lost");
        CHECK(core.trial(0).phase == TrialPhase::failed);
    }
    SECTION("paused at the end of a job") {
        SmallCore core(small_study("max_iterations = 4\n", "[failure]\nmax_losses = 1\n"));
        core.began({"n0"});
        core.step(study::StopRequested{"SIGTERM"});
        core.report(0, 1, 0.5);
        core.over(0, AttemptOutcome::paused);
        core.began({"n0"});
        core.over(0, AttemptOutcome::lost);
        CHECK(recorded(core) == "lost, retry");
        core.over(0, AttemptOutcome::lost);
        CHECK(recorded(core) == "lost");
        CHECK(core.trial(0).phase == TrialPhase::failed);
    }
}

TEST_CASE("A trial that yields its ranks and cannot save starts from the beginning", "[tuner]") {
    SmallCore core(small_study("max_iterations = 9\ndeterministic = true\nmax_concurrent = 2\n",
                               "[scheduler]\ntype = \"asha\"\nvariant = \"stop\"\n"));
    core.began({"n0"});
    for (const Iteration iteration : {1, 2, 3}) core.report(0, iteration, 0.5); // it may get to its rung
    REQUIRE(core.record<study::YieldAsked>() != nullptr);                       // for trial 1
    core.over(0, AttemptOutcome::stopped);
    CHECK(recorded(core) == "stopped, retry");
    for (const std::uint32_t other : {1, 2, 3}) { // not among the best; the turns of trial 0 are between theirs
        core.report(other, 1, 0.1);
        core.over(other, AttemptOutcome::stopped);
    }
    CHECK(core.trial(0).iteration == 3);
    CHECK(fate(core) == "runs again from 0");
}

TEST_CASE("A failure on a host that is retired for it does not count", "[tuner]") {
    SmallCore core(small_study("max_iterations = 9\n", "[stop]\nmetric = \"score >= 0.9\"\n"));
    core.began({"n0", "n1"});
    core.report(1, 1, 0.5); // trials get on elsewhere
    core.over(0, AttemptOutcome::failed, {"no GPU"});
    core.over(2, AttemptOutcome::failed, {"no GPU"});
    core.report(3, 1, 0.95);
    REQUIRE(core.trial(3).phase == TrialPhase::stopped);
    core.over(3, AttemptOutcome::failed, {"no GPU"});
    REQUIRE(core.record<study::HostRetired>() != nullptr);
    CHECK(core.trial(0).phase == TrialPhase::waiting);
    CHECK(core.trial(2).phase == TrialPhase::waiting);
    CHECK(core.trial(3).phase == TrialPhase::stopped); // as it was told
    CHECK(core.trial(3).closed_by == Reason::metric_threshold);
}

} // namespace ranktune::tuner::outcomes_test
