// SPDX-License-Identifier: Apache-2.0
// Kept programs: one process for many tasks. Real processes on a rank that is a thread.

#include <csignal>
#include <iterator>
#include <thread>

#include "worker/trial/program_fixture.hpp"

namespace ranktune::testing::task_body_test {
namespace {

using study::Verb;

/// Does what its configuration says, in `does`. Leaves its pid at the start, and "stop" when it is told to.
constexpr const char* worker = R"py(
import json, os, socket, sys, time
link = socket.socket(fileno=int(os.environ["RANKTUNE_FD"])).makefile("rw")
def send(**message):
    link.write(json.dumps(message) + "\n")
    link.flush()
assert os.environ["RANKTUNE_KEPT"] == "1" and "RANKTUNE_CONFIG" not in os.environ and "RANK" not in os.environ
print("started", os.getpid(), flush=True)
send(ready=True)
for line in link:
    task = json.loads(line)
    if "task" not in task:
        open("told", "a").write(task["decision"] + "\n")
        break
    does = task["config"]["does"]
    print("task", task["task"], task["attempt"], does, flush=True)
    if does == "value":
        send(result={"y": 99}, task=task["task"] + 1, attempt=1)  # of nobody
        send(result={"y": task["task"] + 0.5, "word": "w"}, task=task["task"], attempt=task["attempt"])
    elif does == "score":
        send(result={"score": 0.25}, task=task["task"], attempt=task["attempt"])
    elif does == "exit":
        print("out of luck", file=sys.stderr, flush=True)
        os._exit(3)
    elif does == "end":
        sys.exit(0)
    elif does == "raise":
        send(failed="error", log="ValueError: bad (work.py:3)")
        os._exit(1)
    elif does == "fail":
        send(failed="error", log="ValueError: bad")
    elif does == "report":
        send(report={"score": 1})
    elif does == "wait":
        send(log="waits")
        time.sleep(1000)
)py";

struct Kept : Programs {
    Kept() : Programs(1, "") {
        std::ofstream(home.path() + "/worker.py") << worker;
        study::ProgramSpec& program = *cluster.spec().trainable.program;
        program.command = "/usr/bin/python3 -S -E " + home.path() + "/worker.py";
        program.result = study::PrintedResult::success;
        program.kept = true;
        program.launcher_variables = false;
        program.checkpoints = false;
    }
    void prepare(const std::string& does) {
        cluster.configuration.set("does", does);
        cluster.prepare(1, 1000).trial = base::TrialId{tasks++};
    }
    /// The next task.
    RankLog& run(const std::string& does) {
        prepare(does);
        return cluster.run_until(1000)[0];
    }
    [[nodiscard]] std::size_t started() {
        std::size_t count = 0;
        const std::string text = printed();
        for (auto at = text.find("started"); at != std::string::npos; at = text.find("started", at + 1)) ++count;
        return count;
    }
    void check_failed(const std::string& does, AttemptOutcome outcome, const std::string& text) {
        const RankLog& log = run(does);
        INFO(does << ": " << log.ended->failure.message);
        CHECK(log.ended->outcome == outcome);
        CHECK(log.ended->failure.message.find(text) != std::string::npos);
        CHECK(log.reports.empty());
    }
    /// Returns when the program waits.
    void begin(const std::string& does) {
        prepare(does);
        cluster.start();
        while (printed().find("waits") == std::string::npos) std::this_thread::sleep_for(2ms);
    }
    void end(AttemptOutcome outcome) {
        while (!cluster.all_ended()) cluster.pump([](const auto&) {});
        check_outcomes(cluster.logs, outcome);
        CHECK(cluster.logs[0].reports.empty());
        CHECK(::kill(newest(), 0) != 0);
    }
    /// The process that was started last.
    [[nodiscard]] pid_t newest() {
        const std::string text = printed();
        return std::stoi(text.substr(text.rfind("started ") + 8));
    }
    std::uint32_t tasks = 0;
};

} // namespace

TEST_CASE("a kept program does one task after the other, and is told to stop when none is left", "[trial]") {
    fs::path told;
    ranktune::testing::TemporaryDirectory kept; // longer than the study
    {
        Kept study;
        study.cluster.spec().trainable.program->directory = kept.path();
        told = fs::path(kept.path()) / "told";
        for (std::uint32_t task = 0; task < 3; ++task) {
            const RankLog& log = study.run(task == 1 ? "score" : "value");
            check_outcomes({log}, AttemptOutcome::finished);
            REQUIRE(log.reports.size() == 1);
            const std::vector<study::NamedMetric> values =
                task == 1 ? std::vector<study::NamedMetric>{{"score", 0.25}}
                          : std::vector<study::NamedMetric>{{"y", task + 0.5}, {"score", 0.0}}; // success is a 0
            CHECK(log.reports[0].metrics == values);
        }
        CHECK(study.started() == 1);
        const std::string printed = study.printed();
        for (const char* line : {"task 0 1 value\n", "task 1 2 score\n", "task 2 3 value\n",
                                 "a result of task 1 is left out: nobody waits for it\n"})
            CHECK(printed.find(line) != std::string::npos);
        CHECK_FALSE(fs::exists(told));
    }
    std::ifstream file(told);
    CHECK(std::string(std::istreambuf_iterator<char>(file), {}) == "stop\n");
}

TEST_CASE("a kept program makes room for a new one after as many tasks as restart_after says", "[trial]") {
    Kept study;
    study.cluster.spec().trainable.program->restart_after = 2;
    for (int task = 0; task < 5; ++task) check_outcomes({study.run("value")}, AttemptOutcome::finished);
    CHECK(study.started() == 3);
}

TEST_CASE("a task whose kept program ends has failed, and the next task gets a new process", "[trial]") {
    Kept study;
    check_outcomes({study.run("value")}, AttemptOutcome::finished);
    study.check_failed("exit", AttemptOutcome::failed, "exit code 3: out of luck");
    study.check_failed("raise", AttemptOutcome::failed, "ValueError: bad (work.py:3)");
    study.check_failed("end", AttemptOutcome::failed, "with exit code 0, before its row was done");
    study.check_failed("report", AttemptOutcome::failed, "ranktune.result()");
    check_outcomes({study.run("value")}, AttemptOutcome::finished);
    CHECK(study.started() == 5); // "end" had the process of no other task: each before it had ended
}

TEST_CASE("a kept program that says why it failed and does not end is ended", "[trial]") {
    Kept study;
    study.cluster.spec().output.abort_grace = std::chrono::milliseconds(200);
    study.check_failed("fail", AttemptOutcome::failed, "ValueError: bad (the program did not end");
}

TEST_CASE("exit codes that failure.retry_on does not list are permanent failures", "[trial]") {
    const bool listed = GENERATE(true, false);
    Kept study;
    study.cluster.spec().failure.retry_on = {listed ? 3U : 4U, 137};
    study.check_failed("exit", listed ? AttemptOutcome::failed : AttemptOutcome::permanent, "exit code 3");
    study.begin("wait");
    ::kill(study.newest(), SIGKILL);
    study.end(AttemptOutcome::disturbed); // 137 is listed
}

TEST_CASE("a task of a kept program has a time limit, and its process ends with it", "[trial]") {
    Kept study;
    check_outcomes({study.run("value")}, AttemptOutcome::finished); // its start takes as long as it takes
    study.cluster.spec().failure.iteration_timeout = 100ms;
    study.check_failed("wait", AttemptOutcome::failed, "took longer than");
    study.cluster.spec().failure.iteration_timeout.reset();
    check_outcomes({study.run("value")}, AttemptOutcome::finished);
    CHECK(study.started() == 2);
}

TEST_CASE("a task that is given up, or has no time left to be done, takes its process along", "[trial]") {
    Kept study;
    study.begin("wait");
    SECTION("it is given up") {
        study.cluster.thread(0).abandon();
        study.end(AttemptOutcome::lost);
    }
    SECTION("the job ends: it begins again later") {
        study.cluster.spec().output.abort_grace = 100ms;
        study.cluster.thread(0).interrupt({Verb::pause, study::Reason::draining, 0.0, 0.0});
        study.end(AttemptOutcome::unsaved);
    }
    SECTION("a user cancels it") {
        study.cluster.spec().output.abort_grace = 100ms;
        study.cluster.thread(0).interrupt({Verb::stop, study::Reason::cancelled, 0.0, 0.0});
        study.end(AttemptOutcome::stopped);
    }
    check_outcomes({study.run("value")}, AttemptOutcome::finished);
    CHECK(study.started() == 2);
}

} // namespace ranktune::testing::task_body_test
