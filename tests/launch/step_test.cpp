// SPDX-License-Identifier: Apache-2.0
// Real processes: /bin/sh.
#include "launch/step.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "launch/overdue.hpp"
#include "process/descendants.hpp"
#include "ranktune/base/error.hpp"
#include "support/catch.hpp"

namespace step_test {

using namespace ranktune::launch;
using namespace ranktune::process;
using namespace std::chrono_literals;

namespace {

StepOptions shell(const std::string& script) {
    StepOptions options;
    options.words = {"sh", "-c", script};
    return options;
}

} // namespace

TEST_CASE("A first signal stops cleanly, and only insisting stops at once", "[launch]") {
    const auto start = std::chrono::steady_clock::time_point{} + 100s;
    SignalRelay interrupts;
    CHECK_FALSE(interrupts.asked());
    CHECK(interrupts.next(SIGINT, start) == SIGUSR2);
    CHECK(interrupts.asked());
    CHECK(interrupts.next(SIGINT, start + 1s) == SIGUSR2); // the head ends at once, and reports its progress
    CHECK(interrupts.insisted());
    CHECK(interrupts.next(SIGINT, start + 2s) == SIGTERM);

    SignalRelay after_another;
    CHECK(after_another.next(SIGTERM, start) == SIGUSR1);
    CHECK(after_another.next(SIGINT, start + 1s) == SIGTERM);

    SignalRelay mixed;
    CHECK(mixed.next(SIGINT, start) == SIGUSR2);
    CHECK_FALSE(mixed.next(SIGTERM, start + 1s));
    CHECK(mixed.next(SIGTERM, start + 7s) == SIGUSR2); // the signal that the ranks got first

    SignalRelay by_slurm; // TERM comes twice, and after a USR1
    CHECK(by_slurm.next(SIGUSR1, start) == SIGUSR1);
    CHECK_FALSE(by_slurm.next(SIGTERM, start + 60s));
    CHECK_FALSE(by_slurm.next(SIGTERM, start + 60s + 1ms));
    CHECK(by_slurm.next(SIGTERM, start + 66s) == SIGUSR1);
    CHECK(by_slurm.next(SIGTERM, start + 72s) == SIGTERM);

    SignalRelay to_a_relay(true);
    CHECK(to_a_relay.next(SIGINT, start) == SIGINT);
    CHECK(to_a_relay.next(SIGINT, start + 1s) == SIGINT);
    CHECK(to_a_relay.asked());
}

TEST_CASE("Only a first INT asks the head in words", "[launch]") {
    int asked = 0;
    for (const char* signal : {"INT", "USR2"}) {
        SignalRelay relay;
        StepOptions options = shell(std::string("trap 'exit 8' USR1; trap 'exit 9' USR2; kill -") + signal +
                                    " $PPID; for n in 1 2 3 4 5 6 7 8 9 10; do sleep 0.05; done");
        options.ask = [&] {
            ++asked;
            return true;
        };
        options.heard = [] { return true; };
        const auto ended = run_step(options, relay);
        CHECK(ended.code == (signal == std::string("INT") ? 0 : 8));
        CHECK(ended.asked);
        CHECK(asked == 1);
    }
}

TEST_CASE("A head that does not take the request in time gets the signal", "[launch]") {
    const std::string one = "kill -INT $PPID; ";
    const std::string wait = "while :; do sleep 0.05; done";
    const auto interrupted = [](const std::string& script, bool can_ask, bool heard,
                                std::chrono::milliseconds hearing) {
        SignalRelay relay;
        StepOptions options = shell("trap 'exit 8' TERM; trap 'exit 9' USR2; " + script);
        int asked = 0;
        options.ask = [&] {
            ++asked;
            return can_ask;
        };
        options.heard = [&] { return heard; };
        options.hearing = hearing;
        const int code = run_step(options, relay).code;
        CHECK(asked == 1);
        return code;
    };
    CHECK(interrupted(one + wait, true, false, 1ms) == 9);
    CHECK(interrupted(one + "sleep 0.3", true, true, 0ms) == 0);
    CHECK(interrupted(one + wait, false, false, 1h) == 9); // it could not be asked: send the signal at once
    CHECK(interrupted("while :; do kill -INT $PPID; sleep 0.05; done", true, false, 1h) ==
          9); // insisting is not put off
}

TEST_CASE("Insisting ends even a launcher that ignores signals", "[launch]") {
    SignalRelay relay;
    StepOptions options = shell("trap '' USR2 TERM; while :; do kill -INT $PPID; sleep 0.05; done");
    options.grace = 50ms;
    CHECK(run_step(options, relay).code == 128 + SIGKILL);
    CHECK(relay.insisted());
}

TEST_CASE("A step can tell the received signal from the one passed on", "[launch]") {
    const std::string read_note = "trap 'cat $RANKTUNE_SIGNAL_NOTE >&2; echo >&2; exit' USR1 USR2; ";
    const std::string wait = " $PPID; while :; do sleep 0.05; done";
    const auto told = [&](const std::string& signals, bool as_is = false) {
        SignalRelay relay(as_is);
        StepOptions options = shell(read_note + "kill -" + signals + wait);
        std::vector<std::string> lines;
        options.on_error_line = [&](const std::string& line) { lines.push_back(line); };
        CHECK(run_step(options, relay).code == 0);
        REQUIRE_FALSE(lines.empty());
        return lines.front();
    };
    CHECK(told("TERM") == "SIGTERM");
    CHECK(told("HUP") == "SIGHUP");
    CHECK(told("USR2") == "SIGUSR2");
    CHECK(told("INT") == "Ctrl-C");
    CHECK(told("USR1") == "SIGUSR1"); // a first signal might be lost
    CHECK(told("USR2", true).find("No such file") != std::string::npos);
}

TEST_CASE("A step ends with its own code, or 128 and the signal that killed it", "[launch]") {
    SignalRelay relay;
    CHECK(run_step(shell("exit 7"), relay).code == 7);
    CHECK(run_step(shell("kill -9 $$"), relay).code == 137);
    CHECK_FALSE(relay.asked());
    StepOptions missing;
    missing.words = {"no-such-launcher"};
    CHECK_THROWS_AS(run_step(missing, relay), ranktune::base::IoError);
}

TEST_CASE("A launcher that has nothing left to do gets TERM, and then KILL", "[launch]") {
    SignalRelay relay;
    int readings = 0;
    int ready[2]; // readable once the shell has set its trap
    REQUIRE(pipe(ready) == 0);
    StepOptions options =
        shell("trap 'exit 6' TERM; echo >&" + std::to_string(ready[1]) + "; while :; do sleep 0.01; done");
    options.look = 1ms;
    options.overdue = [&](pid_t launcher) {
        CHECK(launcher > 0);
        pollfd file{ready[0], POLLIN, 0};
        return poll(&file, 1, 0) == 1 && ++readings == 3;
    };
    const auto told = run_step(options, relay);
    CHECK(told.code == 6);
    CHECK_FALSE(told.asked);
    CHECK(readings == 3);
    for (const int fd : ready) close(fd);

    options.words = shell("trap '' TERM; while :; do sleep 0.01; done").words;
    options.grace = 1ms;
    options.overdue = [](pid_t) { return true; };
    const int code = run_step(options, relay).code;
    CHECK((code == 137 || code == 143)); // 143: it was ended before it had begun to ignore TERM
}

TEST_CASE("A launcher that has lost all its ranks before there was a head is ended", "[launch]") {
    SignalRelay relay;
    int told[2];
    REQUIRE(pipe(told) == 0);
    // One child, which lives until a reading has seen it, and then none; the launcher itself never ends.
    const std::string heard = "read line <&" + std::to_string(told[0]);
    StepOptions options = shell("trap 'exit 6' TERM; (" + heard + "); while :; do " + heard + "; done");
    options.look = 1ms;
    options.overdue = [&,
                       overdue = Overdue(2 * ranktune::storage::lease_period, std::nullopt)](pid_t launcher) mutable {
        const auto children = has_living_children(launcher);
        if (children.value_or(false)) CHECK(write(told[1], "\n", 1) == 1);
        return overdue.next({false, {}, false, children});
    };
    CHECK(run_step(options, relay).code == 6);
    for (const int fd : told) close(fd);
}

TEST_CASE("A step gets its variables and no input, and its errors are read", "[launch]") {
    SignalRelay relay;
    StepOptions options =
        shell("read x && exit 1; [ \"$SUPERVISED\" = yes ] || exit 2; echo one >&2; printf two >&2; echo >&2; exit 3");
    options.variables.emplace_back("SUPERVISED", "yes");
    std::vector<std::string> lines;
    options.on_error_line = [&](const std::string& line) { lines.push_back(line); };
    CHECK(run_step(options, relay).code == 3);
    CHECK(lines == std::vector<std::string>{"one", "two"});
}

TEST_CASE("Error lines of a step can be held back", "[launch]") {
    const auto written = std::filesystem::temp_directory_path() / ("ranktune-step-" + std::to_string(getpid()));
    const int error_output = dup(STDERR_FILENO);
    FILE* const file = std::fopen(written.c_str(), "w");
    REQUIRE(file != nullptr);
    dup2(fileno(file), STDERR_FILENO);
    SignalRelay relay;
    StepOptions options = shell("printf 'one\\ntwo\\nthr' >&2; printf 'ee\\nfour' >&2");
    std::vector<std::string> kept;
    options.keep_error_line = [&](const std::string& line) {
        if (line.starts_with("t")) kept.push_back(line);
        return line.starts_with("t");
    };
    const int code = run_step(options, relay).code;
    dup2(error_output, STDERR_FILENO);
    close(error_output);
    std::fclose(file);
    CHECK(code == 0);
    CHECK(kept == std::vector<std::string>{"two", "three"});
    std::ifstream in(written);
    CHECK(std::string(std::istreambuf_iterator<char>(in), {}) == "one\nfour");
    std::filesystem::remove(written);
}

TEST_CASE("INT reaches a step as USR2, and it is in a process group of its own", "[launch]") {
    SignalRelay relay;
    // $PPID is this process: the step sends it the signal as a terminal would.
    const auto ended =
        run_step(shell("trap 'exit 9' USR2; read -r _ _ _ _ group _ </proc/$$/stat; [ \"$group\" = $$ ] || exit 1; "
                       "kill -INT $PPID; while :; do sleep 0.05; done"),
                 relay);
    CHECK(ended.code == 9);
    CHECK(ended.asked);
    CHECK(pause_unless_asked(60s, relay)); // does not wait: a stop was requested already
}

TEST_CASE("Processes that a step leaves behind have ended when it is over", "[launch]") {
    SignalRelay relay;
    std::string pid;
    StepOptions options = shell("(sleep 1 & echo $! >&2) ; exit 0");
    options.on_error_line = [&](const std::string& line) { pid = line; };
    CHECK(run_step(options, relay).code == 0);
    REQUIRE_FALSE(pid.empty());
    CHECK(kill(static_cast<pid_t>(std::stol(pid)), 0) != 0);
}

// Started by the next test case, and killed.
TEST_CASE("a process that runs a step that ignores signals", "[.killed-supervisor]") {
    SignalRelay relay;
    StepOptions options = shell("trap '' TERM; echo $PPID $$; exec >&-; while :; do sleep 0.05; done");
    options.grace = 50ms;
    static_cast<void>(run_step(options, relay));
}

TEST_CASE("A step that ignores signals ends when the process that runs it is killed", "[launch]") {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    FILE* const supervisor = popen(("exec " + self + " '[.killed-supervisor]'").c_str(), "r");
    REQUIRE(supervisor != nullptr);
    int pid = 0;
    int step = 0;
    CHECK(std::fscanf(supervisor, "%d %d", &pid, &step) == 2);
    REQUIRE(step > 0);
    const auto children = [&] {
        std::ifstream file("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children");
        return std::distance(std::istream_iterator<int>(file), std::istream_iterator<int>());
    };
    while (children() < 2) std::this_thread::sleep_for(1ms); // the step and its guardian
    CHECK(kill(pid, SIGKILL) == 0);
    const auto is_alive = [&] {
        return waitpid(step, nullptr, WNOHANG) != step && kill(step, 0) == 0; // it may have become this process's child
    };
    for (int turn = 0; turn < 30'000 && is_alive(); ++turn) std::this_thread::sleep_for(10ms);
    CHECK(kill(step, 0) != 0);
    pclose(supervisor);
}

} // namespace step_test
