// SPDX-License-Identifier: Apache-2.0
// Programs that stay alive through an exploit: real processes on ranks that are threads, scripted verdicts.

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <thread>

#include "worker/trial/program_fixture.hpp"

namespace ranktune::testing {

using study::Verb;

namespace {

/// Prints what it trains with; can exploit. Its state is a file with one line per iteration: the lr that it used.
constexpr const char* exploiting = R"(
import signal
config = json.load(open(os.environ["RANKTUNE_CONFIG"]))
history = open(os.environ["RANKTUNE_CHECKPOINT"]).read() if "RANKTUNE_CHECKPOINT" in os.environ else ""
print("started", rank, os.getpid(), flush=True)
while True:
    history += f"{config['lr']}\n"
    path = os.path.join(folder, "state.txt")
    if rank == 0:
        open(path, "w").write(history)
    told = report(len(history), checkpoint=path, exploits=True)
    if told["decision"] == "exploit":
        config, history = told["config"], open(told["checkpoint"]).read()
        print("exploits", rank, told["iteration"], told["attempt"], json.load(open(os.environ["RANKTUNE_CONFIG"])),
              flush=True)
    elif told["decision"] != "continue":
        print(told["decision"], rank, repr(history), flush=True)
        sys.exit(0)
)";

bool is_running(pid_t process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    std::string stat;
    std::getline(file, stat);
    const auto at = stat.rfind(") ");
    return at != std::string::npos && stat[at + 2] != 'Z';
}

/// A trial that is told to exploit, and the other trial whose state it takes over.
struct Takeover : Programs {
    explicit Takeover(int ranks_in, const std::string& text = exploiting) : Programs(ranks_in, text), ranks(ranks_in) {
        cluster.configuration.set("lr", 0.5);
        const std::string file = home.path() + "/theirs.txt";
        std::ofstream(file) << "0.25\n0.125\n";
        donor.trial = base::TrialId{7};
        donor.checkpoint = io.adopt({donor.trial, 2, base::Incarnation{1}, base::AttemptId{1}}, file, false);
    }
    /// The first attempt: told to exploit after two iterations.
    void told_to_exploit() {
        cluster.prepare(ranks, 2);
        check_outcomes(answered_with(2, study::Reason::exploited), AttemptOutcome::stopped);
        CHECK(alive() == ranks);
    }
    std::vector<RankLog>& answered_with(base::Iteration iteration, study::Reason reason) {
        return cluster.run([&, iteration, reason](const worker::RunnerReported& report) {
            if (report.iteration == iteration) cluster.answer(iteration, Verb::discard, 0, reason);
        });
    }
    /// The next attempt of the same trial.
    study::StartTrial& exploit(base::Iteration iteration = 2) {
        ++cluster.generation;
        cluster.configuration.set("lr", 1.5);
        study::StartTrial& start = cluster.prepare(ranks, iteration + 2, donor);
        start.iteration = iteration;
        return start;
    }
    /// Pids that were printed, in the order of the starts.
    [[nodiscard]] std::vector<pid_t> started() {
        std::vector<pid_t> pids;
        const std::lock_guard lock(mutex);
        for (const std::string& line : output)
            if (line.starts_with("started")) pids.push_back(std::stoi(line.substr(line.rfind(' ') + 1)));
        return pids;
    }
    [[nodiscard]] int alive() {
        int count = 0;
        for (const pid_t pid : started()) count += ::kill(pid, 0) == 0 ? 1 : 0;
        return count;
    }
    [[nodiscard]] bool has_printed(const std::string& line) { return printed().find(line + "\n") != std::string::npos; }
    void wait_until_alive(int count) {
        while (alive() != count) std::this_thread::sleep_for(2ms);
    }
    /// The attempt after the exploit was trained by new processes, with the right state and configuration.
    void check_new_processes() {
        check_outcomes(cluster.run_until(4, Verb::stop), AttemptOutcome::stopped);
        CHECK(started().size() == 2 * static_cast<std::size_t>(ranks));
        CHECK(alive() == 0);
        CHECK_FALSE(has_printed("exploits 0 2 2 {'lr': 1.5}"));
        CHECK(has_printed("stop 0 '0.25\\n0.125\\n1.5\\n1.5\\n'"));
        CHECK(scratch_is_empty());
    }

    int ranks;
    study::Donor donor;
};

} // namespace

TEST_CASE("a program that can exploit goes on with the other state in the same process", "[trial]") {
    const int ranks = GENERATE(1, 3);
    Takeover study(ranks);
    study.told_to_exploit();
    CHECK_FALSE(study.scratch_is_empty());
    study.exploit();
    const auto logs = study.cluster.run_until(4);
    check_outcomes(logs, AttemptOutcome::paused);
    REQUIRE(logs[0].reports.size() == 2);
    CHECK(logs[0].reports[0].iteration == 3);
    CHECK(study.started().size() == static_cast<std::size_t>(ranks));
    CHECK(study.alive() == 0);
    for (int r = 0; r < ranks; ++r) CHECK(study.has_printed("exploits " + std::to_string(r) + " 2 2 {'lr': 1.5}"));
    CHECK(study.has_printed("pause 0 '0.25\\n0.125\\n1.5\\n1.5\\n'"));
    REQUIRE(logs[0].saved.size() == 1);
    CHECK(logs[0].saved[0].iteration == 4);
    CHECK(study.scratch_is_empty());
}

TEST_CASE("a program may exploit several times, and fail like any other afterwards", "[trial]") {
    Takeover study(2);
    study.told_to_exploit();
    for (base::Iteration at = 2; at <= 6; at += 2) {
        study.exploit(at);
        check_outcomes(study.answered_with(at + 2, study::Reason::exploited), AttemptOutcome::stopped);
        CHECK(study.alive() == 2);
    }
    CHECK(study.started().size() == 2);
    study.exploit(8);
    bool killed = false;
    study.cluster.run([&](const worker::RunnerReported&) {
        if (!std::exchange(killed, true)) ::kill(study.started()[1], SIGKILL);
    });
    const auto& logs = study.cluster.logs;
    CHECK(std::ranges::count_if(
              logs, [](const RankLog& log) { return log.ended->outcome == AttemptOutcome::disturbed; }) == 1);
    CHECK(study.alive() == 0);
    CHECK(study.scratch_is_empty());
}

TEST_CASE("a program that does not say that it can exploit ends, as does one with a rank that does not", "[trial]") {
    std::string text = exploiting;
    const std::string key = "exploits=True";
    text.replace(text.find(key), key.size(), GENERATE("", "exploits=rank == 0"));
    Takeover study(2, text);
    study.cluster.prepare(2, 2);
    check_outcomes(study.answered_with(2, study::Reason::exploited), AttemptOutcome::stopped);
    CHECK(study.alive() == 0);
    CHECK(study.has_printed("stop 0 '0.5\\n0.5\\n'"));
    study.exploit();
    study.check_new_processes();
}

TEST_CASE("a trial that stops for good ends its program, whatever that can do", "[trial]") {
    Takeover study(2);
    study.cluster.prepare(2, 2);
    check_outcomes(study.answered_with(2, study::Reason::plateau), AttemptOutcome::stopped);
    CHECK(study.alive() == 0);
    CHECK(study.scratch_is_empty());
}

TEST_CASE("a program that waits to exploit is told to stop when something else comes", "[trial]") {
    Takeover study(2);
    study.told_to_exploit();
    SECTION("another trial") {
        study.exploit().trial = base::TrialId{1};
        study.check_new_processes();
    }
    SECTION("the same trial from its own checkpoint: the exploit was undone") {
        study.cluster.configuration.set("lr", 1.5);
        study.cluster.prepare(2, 4, study.donor.checkpoint);
        study.check_new_processes();
    }
    SECTION("another exploit than the one it waits for") {
        study.exploit().generation = 2;
        study.check_new_processes();
    }
    SECTION("another start of the head") {
        study.exploit().incarnation = base::Incarnation{2};
        study.check_new_processes();
    }
    CHECK(study.has_printed("stop 0 '0.5\\n0.5\\n'"));
    CHECK(study.has_printed("stop 1 '0.5\\n0.5\\n'"));
}

TEST_CASE("on other ranks the program is started again", "[trial]") {
    Takeover study(2);
    study.told_to_exploit();
    study.ranks = 1;
    study.exploit();
    check_outcomes(study.cluster.run_until(4, Verb::stop), AttemptOutcome::stopped);
    CHECK(study.started().size() == 3);
    CHECK(study.has_printed("stop 0 '0.25\\n0.125\\n1.5\\n1.5\\n'"));
    CHECK(study.alive() == 1); // rank 1 has no other work, and the limit is long
    study.cluster.prepare(2, 2);
    static_cast<void>(study.cluster.run_until(1, Verb::stop));
    CHECK(study.alive() == 0);
    CHECK(study.has_printed("stop 1 '0.5\\n0.5\\n'"));
    CHECK(study.scratch_is_empty());
}

TEST_CASE("a program that is killed while it waits to exploit is started again on all ranks", "[trial]") {
    const int ranks = GENERATE(1, 2);
    Takeover study(ranks);
    study.told_to_exploit();
    ::kill(study.started().back(), SIGKILL);
    while (is_running(study.started().back())) std::this_thread::sleep_for(1ms);
    study.exploit();
    study.check_new_processes();
}

TEST_CASE("a program that goes on without waiting for its answer is not given another state", "[trial]") {
    std::string text = exploiting;
    const std::string place = "        open(path, \"w\").write(history)\n";
    text.insert(text.find(place) + place.size(), R"(
    if history.count("\n") == 2:
        import threading
        threading.Timer(1.0, lambda: send(report={})).start()
)");
    Takeover study(1, text);
    study.told_to_exploit();
    study.wait_until_alive(0); // it strays, and is told to stop
    study.exploit();
    study.check_new_processes();
}

TEST_CASE("a program that nobody claims is told to stop", "[trial]") {
    Takeover study(2);
    study.setting.unclaimed = 50ms;
    study.told_to_exploit();
    study.wait_until_alive(0);
    CHECK(study.has_printed("stop 0 '0.5\\n0.5\\n'"));
    study.exploit();
    study.check_new_processes();
}

TEST_CASE("a program that waits to exploit ends with its rank, even if it ignores everything", "[trial]") {
    std::vector<pid_t> pids;
    std::string text = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + std::string(exploiting);
    text.replace(text.find("sys.exit(0)"), 11, "time.sleep(1000)");
    std::optional<Takeover> study(std::in_place, 2, text);
    study->cluster.spec().output.abort_grace = 400ms;
    study->told_to_exploit();
    pids = study->started();
    study.reset();
    for (const pid_t pid : pids) CHECK(::kill(pid, 0) != 0);
}

// Started by the next test case, to be killed.
TEST_CASE("a worker with a program that waits to exploit", "[.killed-waiting]") {
    Takeover study(2);
    study.told_to_exploit();
    for (const pid_t pid : study.started()) std::printf("%d %d\n", getpid(), pid);
    std::fflush(stdout);
    ::pause();
}

TEST_CASE("a program that waits to exploit dies with a worker that is killed", "[trial]") {
    const std::string self = fs::read_symlink("/proc/self/exe").string();
    FILE* worker = popen(("exec " + self + " '[.killed-waiting]'").c_str(), "r");
    REQUIRE(worker != nullptr);
    int pid = 0;
    std::vector<int> programs;
    char line[256];
    while (programs.size() < 2 && std::fgets(line, sizeof line, worker) != nullptr)
        if (int program = 0; std::sscanf(line, "%d %d", &pid, &program) == 2) programs.push_back(program);
    REQUIRE(programs.size() == 2);
    for (const int program : programs) CHECK(::kill(program, 0) == 0);
    ::kill(pid, SIGKILL);
    for (int turn = 0; turn < 30'000 && std::ranges::any_of(programs, is_running); ++turn)
        std::this_thread::sleep_for(1ms);
    CHECK(std::ranges::none_of(programs, is_running));
    pclose(worker);
}

TEST_CASE("what cannot be read leaves the program waiting for the next attempt", "[trial]") {
    Takeover study(2);
    study.told_to_exploit();
    const fs::path state = fs::path(study.home.path()) / study.donor.checkpoint.path;
    fs::rename(state, state.string() + ".away");
    study.exploit();
    const auto outcome = study.cluster.run_until(4)[0].ended->outcome;
    CHECK((outcome == AttemptOutcome::unreadable || outcome == AttemptOutcome::unreachable));
    CHECK(study.alive() == 2);
    fs::rename(state.string() + ".away", state);
    --study.cluster.generation;
    study.exploit(); // a further attempt at the same exploit
    check_outcomes(study.cluster.run_until(4, Verb::stop), AttemptOutcome::stopped);
    CHECK(study.started().size() == 2);
    CHECK(study.has_printed("stop 0 '0.25\\n0.125\\n1.5\\n1.5\\n'"));
}

TEST_CASE("a trial that is given up ends the program that waited for it", "[trial]") {
    Takeover study(2);
    study.told_to_exploit();
    study.exploit();
    study.cluster.start();
    for (int r = 0; r < 2; ++r) study.cluster.thread(r).abandon();
    while (!study.cluster.all_ended()) study.cluster.pump([](const worker::RunnerReported&) {});
    check_outcomes(study.cluster.logs, AttemptOutcome::lost);
    study.cluster.prepare(2, 1);
    static_cast<void>(study.cluster.run_until(1, Verb::stop));
    CHECK(study.alive() == 0);
}

TEST_CASE("what a program prints is limited in each of its attempts", "[trial]") {
    std::string text = exploiting;
    const std::string place = "    history += ";
    text.insert(text.find(place), "    sys.stdout.write(('y' * 99 + '\\n') * 60000)\n");
    Takeover study(1, text); // 12 MB in each attempt
    study.told_to_exploit();
    const std::size_t once = study.printed().size();
    CHECK(once > 8'900U << 10U);
    CHECK(once < 9'900U << 10U);
    study.exploit();
    check_outcomes(study.cluster.run_until(4, Verb::stop), AttemptOutcome::stopped);
    CHECK(study.printed().size() > 2 * once - (100U << 10U));
}

} // namespace ranktune::testing
