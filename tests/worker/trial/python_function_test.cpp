// SPDX-License-Identifier: Apache-2.0
// A Python function as a trial: imported once on each rank, called in a process of its own for each attempt.
#include <algorithm>
#include <csignal>
#include <set>
#include <sstream>

#include "trainables/program/python_module.hpp"
#include "worker/trial/program_fixture.hpp"

namespace ranktune::testing::python_function_test {
namespace {

using study::Verb;

void write(const std::string& path, std::span<const std::byte> bytes) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

struct Functions : Programs {
    Functions(int ranks, const std::string& text, const std::string& name = "train") : Programs(ranks, "") {
        write(home.path() + "/python/ranktune.py", trainables::python_module());
        write(home.path() + "/python/ranktune_function.py", trainables::python_function());
        std::ofstream(home.path() + "/train.py") << "import os, sys, ranktune\nprint('imported', os.getpid())\n"
                                                 << text;
        study::ProgramSpec& program = *cluster.spec().trainable.program;
        program.command.clear();
        program.function = home.path() + "/train.py:" + name;
        program.interpreter = "/usr/bin/python3";
        cluster.configuration.set("lr", 0.5);
    }
    /// What followed `word` in lines that begin with it.
    [[nodiscard]] std::vector<std::string> said(const std::string& word) {
        std::vector<std::string> found;
        std::istringstream lines(printed());
        for (std::string line; std::getline(lines, line);)
            if (line.starts_with(word + " ")) found.push_back(line.substr(word.size() + 1));
        return found;
    }
};

constexpr const char* counting = R"(
def train(config):
    start = int(open(ranktune.checkpoint()).read()) if ranktune.checkpoint() else 0
    print("process", os.getpid(), os.getppid(), "lr", config.lr, "from", start)
    def save(folder):
        with open(os.path.join(folder, "count"), "w") as file:
            file.write(str(i + 1))
        return "count"
    for i in range(start, 27):
        ranktune.report(score=config.lr * (i + 1), checkpoint=save)
)";

/// Of `counting`, on 2 ranks: an attempt to iteration 3, and one from its checkpoint to 5.
void pause_and_resume(Functions& functions) {
    std::optional<study::CheckpointRef> saved;
    for (const base::Iteration until : {3U, 5U}) {
        if (saved)
            functions.cluster.prepare(2, until, *saved);
        else
            functions.cluster.prepare(2, until);
        const auto logs = functions.cluster.run_until(until);
        check_outcomes(logs, AttemptOutcome::paused);
        CHECK(logs[0].reports.back().metrics ==
              std::vector<study::NamedMetric>{{"score", 0.5 * static_cast<double>(until)}});
        saved = logs[0].saved.at(0);
    }
}

} // namespace

TEST_CASE("a function is called in a process of its own; its file is imported once on each rank", "[trial]") {
    Functions functions(2, counting);
    std::set<std::string> processes;
    pause_and_resume(functions);
    CHECK(functions.said("imported").size() == 2);
    const auto all = functions.said("process");
    REQUIRE(all.size() == 4);
    CHECK(std::ranges::count_if(all, [](const auto& line) { return line.ends_with("lr 0.5 from 3"); }) == 2);
    for (const std::string& line : all) {
        processes.insert(line.substr(0, line.find(' ')));
        // The worker is the parent, so that its end, and signals, are those of any program.
        CHECK(line.find(" " + std::to_string(::getpid()) + " ") != std::string::npos);
    }
    CHECK(processes.size() == 4);
    CHECK(functions.scratch_is_empty());
}

TEST_CASE("what a function returns is its only report; it may be given the trial", "[trial]") {
    const auto [text, value] = GENERATE(table<std::string, double>({
        {"def train(config):\n    return 2 * config.lr\n", 1.0},
        {"def train(trial):\n    return {'score': trial.config.lr + trial.iteration, 'more': trial.number}\n", 0.5},
        {"def train():\n    return ranktune.config().lr\n", 0.5},
        {"def train(config):\n    ranktune.report(score=7)\n    return 8\n", 7.0},
    }));
    INFO(text);
    Functions functions(1, text);
    functions.cluster.prepare(1, 1000);
    const auto logs = functions.cluster.run_until(1000);
    check_outcomes(logs, AttemptOutcome::finished);
    REQUIRE(logs[0].reports.size() == 1);
    CHECK(logs[0].reports[0].metrics[0] == study::NamedMetric{"score", value});
}

TEST_CASE("a function that fails in any way fails its attempt alone", "[trial]") {
    const auto [body, why] = GENERATE(table<std::string, std::string>({
        {"raise ValueError('no data')", "at iteration 1: ValueError: no data (train.py:5)"},
        {"sys.exit('out of luck')", "out of luck"},
        {"os.kill(os.getpid(), 11)", "killed by signal 11"},
        {"os._exit(3)", "exit code 3"},
        {"pass", "without a single report"},
    }));
    INFO(body);
    Functions functions(
        1, "def train(config):\n    if config.lr == 0.5:\n        " + body + "\n    else:\n        return config.lr\n");
    functions.cluster.prepare(1, 1000);
    CHECK(blame(functions.cluster.run_until(1000)).find(why) != std::string::npos);
    functions.cluster.configuration.set("lr", 0.25); // the next attempt, in the same interpreter
    functions.cluster.prepare(1, 1000);
    check_outcomes(functions.cluster.run_until(1000), AttemptOutcome::finished);
    CHECK(functions.said("imported").size() == 1);
}

TEST_CASE("a file that cannot be imported, or has no such function, fails the attempt with the reason", "[trial]") {
    Functions broken(1, "import nothing_of_this_name\n");
    broken.cluster.prepare(1, 1000);
    const std::string why = blame(broken.cluster.run_until(1000));
    CHECK(why.find("while it imported the file: exit code 1") != std::string::npos);
    CHECK(why.find("No module named 'nothing_of_this_name'") != std::string::npos);

    Functions other(1, "def main(config):\n    pass\n");
    other.cluster.prepare(1, 1000);
    CHECK(blame(other.cluster.run_until(1000)).find("has no function 'train'") != std::string::npos);
}

TEST_CASE("an interpreter that was killed is started again; fresh starts one for each attempt", "[trial]") {
    Functions functions(1, "def train(config):\n    print('parent', " + std::string("os.getpid())\n    return 1\n"));
    functions.cluster.prepare(1, 1000);
    check_outcomes(functions.cluster.run_until(1000), AttemptOutcome::finished);
    ::kill(static_cast<pid_t>(std::stol(functions.said("imported").at(0))), SIGKILL);
    functions.cluster.prepare(1, 1000);
    const auto logs = functions.cluster.run_until(1000);
    // Killed before it was asked, or while: then ranktune could not set the attempt up, and the next one works.
    if (logs[0].ended->outcome != AttemptOutcome::finished) {
        functions.cluster.prepare(1, 1000);
        check_outcomes(functions.cluster.run_until(1000), AttemptOutcome::finished);
    }
    CHECK(functions.said("imported").size() == 2);

    Functions fresh(1, counting);
    fresh.cluster.spec().trainable.program->fresh = true;
    for (int i = 1; i <= 2; ++i) {
        fresh.cluster.prepare(1, 1);
        check_outcomes(fresh.cluster.run_until(1), AttemptOutcome::paused);
        CHECK(fresh.said("imported").size() == static_cast<std::size_t>(i));
    }
}

TEST_CASE("a verdict ends a function, and an abandoned one is killed with all that it started", "[trial]") {
    Functions functions(1,
                        "import subprocess\ndef train(config):\n    subprocess.Popen(['sleep', '1000'])\n"
                        "    ranktune.report(score=1)\n    print('waits', os.getpid(), flush=True)\n"
                        "    import time\n    time.sleep(1000)\n");
    functions.cluster.prepare(1, 5);
    functions.cluster.start();
    while (functions.said("waits").empty()) functions.cluster.pump([](const auto&) {});
    functions.cluster.thread(0).abandon();
    while (!functions.cluster.all_ended()) functions.cluster.pump([](const auto&) {});
    check_outcomes(functions.cluster.logs, AttemptOutcome::lost);
    const auto pid = static_cast<pid_t>(std::stol(functions.said("waits").at(0)));
    CHECK(::kill(pid, 0) != 0);
}

namespace {

/// Runs an attempt of the only rank to its end.
void run_once(Functions& functions, double lr) {
    functions.cluster.configuration.set("lr", lr);
    functions.cluster.prepare(1, 1000);
    check_outcomes(functions.cluster.run_until(1000), AttemptOutcome::finished);
}

/// `kept = true`.
struct KeptFunctions : Functions {
    KeptFunctions(int ranks, const std::string& text) : Functions(ranks, text) { program().kept = true; }
    [[nodiscard]] study::ProgramSpec& program() { return *cluster.spec().trainable.program; }
};

} // namespace

TEST_CASE("a kept interpreter calls the function itself: caches stay, generators begin anew", "[trial]") {
    KeptFunctions functions(2, "import random\ncache = []\n" + std::string(counting) +
                                   "    print('never')\n"
                                   "inner = train\n"
                                   "def train(config):\n"
                                   "    cache.append(config.lr)\n"
                                   "    print('draw', random.random(), len(cache), os.environ.get('OWN'))\n"
                                   "    os.environ['OWN'] = 'set'\n"
                                   "    inner(config)\n");
    pause_and_resume(functions);
    const auto imported = functions.said("imported");
    REQUIRE(imported.size() == 2);
    const auto all = functions.said("process");
    REQUIRE(all.size() == 4);
    CHECK(std::ranges::count_if(all, [](const auto& line) { return line.ends_with("lr 0.5 from 3"); }) == 2);
    for (const std::string& line : all) CHECK(std::ranges::count(imported, line.substr(0, line.find(' '))) == 1);
    const auto draws = functions.said("draw");
    REQUIRE(draws.size() == 4);
    for (const std::string& rank : {draws[0], draws[1]}) {
        CHECK(rank.ends_with(" 1 None"));
        const std::string drawn = rank.substr(0, rank.find(' '));
        CHECK(std::ranges::count(draws, drawn + " 2 None") == 1);
    }
    CHECK(functions.scratch_is_empty());
}

TEST_CASE("a kept interpreter ends with an attempt that fails, and says why when it can do no other", "[trial]") {
    const auto [body, why] = GENERATE(table<std::string, std::string>({
        {"raise ValueError('no data')", "at iteration 1: ValueError: no data"},
        {"sys.exit('out of luck')", "out of luck"},
        {"sys.exit(True)", "exit code 1"},
        {"sys.exit(259)", "exit code 3"},
        {"os.kill(os.getpid(), 11)", "killed by signal 11"},
        {"os._exit(3)", "exit code 3"},
        {"os.kill(os.getpid(), 15)", "killed by signal 15"},
    }));
    INFO(body);
    KeptFunctions functions(
        1, "def train(config):\n    if config.lr == 0.5:\n        " + body + "\n    return config.lr\n");
    run_once(functions, 0.25);
    functions.cluster.configuration.set("lr", 0.5);
    functions.cluster.prepare(1, 1000);
    CHECK(blame(functions.cluster.run_until(1000)).find(why) != std::string::npos);
    run_once(functions, 0.25);
    CHECK(functions.said("imported").size() == 2);
}

TEST_CASE("a kept interpreter makes room for a new one after its trials, its growth, or what was left", "[trial]") {
    SECTION("a number of trials") {
        KeptFunctions functions(1, "def train(config):\n    return 1\n");
        functions.program().restart_after = 2;
        for (int i = 0; i < 5; ++i) run_once(functions, 1);
        CHECK(functions.said("imported").size() == 3);
        CHECK(functions.printed().find("has done its 2 trials (restart_after)") != std::string::npos);
    }
    SECTION("memory that grows") {
        KeptFunctions functions(1,
                                "kept = []\ndef train(config):\n"
                                "    kept.append(b'x' * int(config.lr))\n    return 1\n");
        functions.program().restart_growth = 30'000'000;
        for (const double bytes : {60e6, 20e6, 20e6, 1.0}) run_once(functions, bytes);
        CHECK(functions.said("imported").size() == 2);
        CHECK(functions.printed().find("MB since its first trial") != std::string::npos);
    }
    SECTION("processes and threads") {
        KeptFunctions functions(1,
                                "import subprocess, threading\nready = threading.Event()\ndef train(config):\n"
                                "    if config.lr == 1:\n        child = subprocess.Popen(['sleep', '1000'])\n"
                                "        print('child', child.pid)\n"
                                "    threading.Thread(target=lambda: print('thread', 'done')).start()\n"
                                "    return 1\n");
        for (const double lr : {0.0, 1.0}) run_once(functions, lr);
        REQUIRE(functions.said("child").size() == 1);
        CHECK(::kill(static_cast<pid_t>(std::stol(functions.said("child").at(0))), 0) != 0); // the attempt is over
        run_once(functions, 0.0);
        CHECK(functions.said("imported").size() == 2);
        CHECK(functions.said("thread").size() == 3);
        CHECK(functions.printed().find("has left processes behind (" + functions.said("child").at(0) + ")") !=
              std::string::npos);
    }
    SECTION("threads of an executor, which would wait for ever") {
        KeptFunctions functions(1,
                                "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(1)\n"
                                "def train(config):\n    return pool.submit(lambda: 1).result()\n");
        for (int i = 0; i < 2; ++i) run_once(functions, 1);
        CHECK(functions.said("imported").size() == 2);
        CHECK(functions.printed().find("has left an executor behind") != std::string::npos);
    }
}

TEST_CASE("what an attempt leaves in a kept interpreter is not taken for the next one's", "[trial]") {
    KeptFunctions functions(1, R"(import signal, subprocess, threading
go, told = threading.Event(), []
def late():
    go.wait()
    try:
        ranktune.report(score=-1, exit=False)
    except RuntimeError as error:
        told.append(str(error))
def train(config):
    if config.lr == 0:
        threading.Thread(target=late, daemon=True, name="late").start()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.alarm(1000)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        sys.stdout.close()
        sys.stdout = None
        return 1
    go.set()
    for thread in threading.enumerate():
        if thread.name == "late":
            thread.join()
    print("told", told)
    print("code", subprocess.run(["sh", "-c", "exit 3"]).returncode, signal.alarm(0),
          signal.pthread_sigmask(signal.SIG_BLOCK, []))
    return 2
)");
    run_once(functions, 0.0);
    functions.cluster.configuration.set("lr", 1.0);
    functions.cluster.prepare(1, 1000);
    const auto logs = functions.cluster.run_until(1000);
    check_outcomes(logs, AttemptOutcome::finished);
    REQUIRE(logs[0].reports.size() == 1);
    CHECK(logs[0].reports[0].metrics[0] == study::NamedMetric{"score", 2.0});
    CHECK(functions.said("imported").size() == 1);
    REQUIRE(functions.said("told").size() == 1);
    CHECK(functions.said("told")[0].find("an earlier trial") != std::string::npos);
    CHECK(functions.said("code") == std::vector<std::string>{"3 0 set()"});
}

TEST_CASE("a configuration that is too long for a variable comes in a file", "[trial]") {
    const bool kept = GENERATE(true, false);
    Functions functions(1,
                        "import subprocess\ndef train(config):\n    subprocess.run(['true'], check=True)\n"
                        "    return len(config.text)\n");
    functions.cluster.spec().trainable.program->kept = kept;
    functions.cluster.configuration.set("text", std::string(140'000, 'x'));
    functions.cluster.prepare(1, 1000);
    const auto logs = functions.cluster.run_until(1000);
    check_outcomes(logs, AttemptOutcome::finished);
    CHECK(logs[0].reports.at(0).metrics[0] == study::NamedMetric{"score", 140'000.0});
    CHECK(functions.scratch_is_empty());
}

TEST_CASE("an abandoned attempt ends its kept interpreter", "[trial]") {
    KeptFunctions functions(1,
                            "import time\ndef train(config):\n    ranktune.report(score=1)\n"
                            "    print('waits', os.getpid(), flush=True)\n    time.sleep(1000 * config.lr)\n");
    functions.cluster.prepare(1, 5);
    functions.cluster.start();
    while (functions.said("waits").empty()) functions.cluster.pump([](const auto&) {});
    functions.cluster.thread(0).abandon();
    while (!functions.cluster.all_ended()) functions.cluster.pump([](const auto&) {});
    check_outcomes(functions.cluster.logs, AttemptOutcome::lost);
    CHECK(::kill(static_cast<pid_t>(std::stol(functions.said("waits").at(0))), 0) != 0);
    run_once(functions, 0);
    CHECK(functions.said("imported").size() == 2);
}

} // namespace ranktune::testing::python_function_test
