// SPDX-License-Identifier: Apache-2.0
// Programs that know nothing of ranktune: their reports are in what they print.
#include "worker/trial/program_fixture.hpp"

namespace ranktune::testing::printed_trial_test {
namespace {

using study::Verb;

/// A shell script that prints.
struct Printing : Programs {
    Printing(int ranks, const std::string& script, std::vector<std::string> report) : Programs(ranks, "") {
        std::ofstream(home.path() + "/train.sh") << script;
        study::ProgramSpec& program = *cluster.spec().trainable.program;
        program.command = "/bin/sh " + home.path() + "/train.sh";
        program.report = std::move(report);
        program.checkpoints = false;
    }
};

constexpr const char* counting = R"(
for i in 1 2 3; do echo "starting $i"; echo "score: $i.5"; done
)";
/// Goes on until it is ended.
constexpr const char* endless = R"(
i=0
while :; do i=$((i + 1)); echo "score: $i"; sleep 0.01; done
)";

} // namespace

TEST_CASE("each line that matches is a report", "[trial]") {
    Printing programs(1, counting, {"score: (\\S+)"});
    programs.cluster.prepare(1, 1000);
    const auto logs = programs.cluster.run_until(1000);
    check_outcomes(logs, AttemptOutcome::finished);
    REQUIRE(logs[0].reports.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(logs[0].reports[i].iteration == i + 1);
        CHECK(logs[0].reports[i].metrics == std::vector<study::NamedMetric>{{"score", static_cast<double>(i) + 1.5}});
    }
    CHECK(programs.printed().find("starting 3\nscore: 3.5\n") != std::string::npos);
    CHECK(programs.scratch_is_empty());
}

TEST_CASE("a verdict ends a program that only prints by a signal, on all ranks at once", "[trial]") {
    Printing programs(2, endless, {"score: (\\S+)"});
    programs.cluster.prepare(2, 2);
    const auto logs = programs.cluster.run_until(2, Verb::stop);
    check_outcomes(logs, AttemptOutcome::stopped);
    CHECK(logs[0].reports.size() >= 2);
    CHECK(logs[1].reports.empty()); // only rank 0 is heard
    CHECK(logs[0].saved.empty());
}

TEST_CASE("a program that fails has failed, whatever it printed", "[trial]") {
    Printing programs(1, "echo 'score: 0.5'\necho 'out of luck' >&2\nexit 3\n", {"score: (\\S+)"});
    programs.cluster.prepare(1, 1000);
    const auto logs = programs.cluster.run_until(1000);
    check_outcomes(logs, AttemptOutcome::failed);
    CHECK(blame(logs).find("exit code 3: out of luck") != std::string::npos);
}

TEST_CASE("the only report of a program can be its last number, or its exit code", "[trial]") {
    using study::PrintedResult;
    const auto [script, result, outcome,
                text] = GENERATE(table<std::string, PrintedResult, AttemptOutcome, std::string>({
        {"echo 'after 10 steps: 0.75'\necho done\n", PrintedResult::last_number, AttemptOutcome::finished, "0.75"},
        {"echo nothing\n", PrintedResult::last_number, AttemptOutcome::failed, "there is no number in the last lines"},
        {"echo 7\nexit 1\n", PrintedResult::last_number, AttemptOutcome::failed, "exit code 1"},
        {"exit 12\n", PrintedResult::exit_code, AttemptOutcome::finished, "12"},
        {"exit 0\n", PrintedResult::exit_code, AttemptOutcome::finished, "0"},
        {"kill -9 $$\n", PrintedResult::exit_code, AttemptOutcome::failed, "killed by signal 9"},
        {"echo 7\n", PrintedResult::success, AttemptOutcome::finished, "0"},
        {"echo '{\"score\": 0.25}'\n", PrintedResult::success, AttemptOutcome::finished, "0.25"},
        {"echo '{score}'\n", PrintedResult::success, AttemptOutcome::finished, "0"},
        {"exit 12\n", PrintedResult::success, AttemptOutcome::failed, "exit code 12"},
    }));
    INFO(script);
    Printing programs(1, script, {});
    programs.cluster.spec().trainable.program->result = result;
    programs.cluster.prepare(1, 1000);
    const auto logs = programs.cluster.run_until(1000);
    const bool killed = text.find("killed") == 0;
    if (!killed) check_outcomes(logs, outcome);
    if (outcome == AttemptOutcome::finished) {
        REQUIRE(logs[0].reports.size() == 1);
        CHECK(logs[0].reports[0].metrics == std::vector<study::NamedMetric>{{"score", std::stod(text)}});
    } else {
        CHECK(logs[0].ended->outcome != AttemptOutcome::finished);
        CHECK(blame(logs).find(text) != std::string::npos);
        CHECK(logs[0].reports.empty());
    }
}

TEST_CASE("a program that ends without a report is told how to be heard, beside its last lines", "[trial]") {
    const bool has_pattern = GENERATE(true, false);
    Printing programs(1, "echo 'accuracy 0.9'\n",
                      has_pattern ? std::vector<std::string>{"score: (\\S+)"} : std::vector<std::string>{});
    programs.cluster.prepare(1, 1000);
    const auto logs = programs.cluster.run_until(1000);
    check_outcomes(logs, AttemptOutcome::failed);
    const std::string why = blame(logs);
    INFO(why);
    CHECK(why.find("without a single report") != std::string::npos);
    CHECK(why.find(has_pattern ? "no line that it printed matches 'score: (\\S+)'"
                               : "report = 'score: ([-+.0-9a-zA-Z]+)'") != std::string::npos);
    CHECK(why.find("last lines of its standard output:\naccuracy 0.9") != std::string::npos);
}

TEST_CASE("what is found must be a number, and comes from one side only", "[trial]") {
    Printing programs(1, "echo 'score: high'\nsleep 0.1\n", {"score: (\\S+)"});
    programs.cluster.prepare(1, 1000);
    CHECK(blame(programs.cluster.run_until(1000)).find("is no number; the line: score: high") != std::string::npos);

    Programs speaking(1, "report(1.0)\n");
    speaking.cluster.spec().trainable.program->report = {"score: (\\S+)"};
    speaking.cluster.spec().trainable.program->checkpoints = false;
    speaking.cluster.prepare(1, 1000);
    CHECK(blame(speaking.cluster.run_until(1000)).find("makes reports itself: leave out report") != std::string::npos);
}

} // namespace ranktune::testing::printed_trial_test
