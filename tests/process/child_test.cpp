// SPDX-License-Identifier: Apache-2.0
// One process: its start, what it inherits, its messages and its end, and that nothing is left behind.

#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "process/child.hpp"
#include "process/descendants.hpp"
#include "process/guard.hpp"
#include "process/wake.hpp"
#include "ranktune/base/error.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/files.hpp"

namespace ranktune::testing {

using namespace ranktune::process;
namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

Words environment() { return {std::string("PATH=") + std::getenv("PATH"), "RANKTUNE_FD=3"}; }

/// A child whose output is kept.
struct Run {
    explicit Run(const Words& words, Child::Clock::duration grace = 5s)
        : child(
              words, environment(), "/", [this](std::string_view line) { output.emplace_back(line); }, grace) {}
    /// Runs the text with /bin/sh.
    static Words shell(const std::string& text) { return {"/bin/sh", "-c", text}; }

    const ChildExit& wait_for_end() {
        while (!child.exited()) child.wait(50ms);
        return *child.exited();
    }
    std::string wait_for_line() {
        for (;;) {
            if (auto line = child.next_line()) return *line;
            if (child.exited()) return "(it ended)";
            child.wait(50ms);
        }
    }
    void wait_for_output(std::size_t lines) {
        while (output.size() < lines && !child.exited()) child.wait(50ms);
    }

    Words output;
    Child child;
};

bool is_alive(pid_t pid) { return ::kill(pid, 0) == 0; }

std::set<std::string> own_descriptors() {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        names.insert(entry.path().filename().string() + " " + std::filesystem::read_symlink(entry, gone).string());
    }
    return names;
}

[[maybe_unused]] std::string mistake(const Words& words, const std::string& directory = "/") {
    return ranktune::testing::error_of([&] { Child child(words, environment(), directory, [](std::string_view) {}); });
}

} // namespace

TEST_CASE("a child's output and exit status are read", "[process]") {
    Run run(Run::shell("echo one; echo two >&2; printf three; exit 3"));
    CHECK(run.wait_for_end().text() == "exit code 3");
    CHECK(std::multiset<std::string>(run.output.begin(), run.output.end()) ==
          std::multiset<std::string>{"one", "two", "three"});
    CHECK(run.child.last_words() == "two");

    Run killed(Run::shell("kill -SEGV $$"));
    CHECK(killed.wait_for_end().text() == "killed by signal 11 (Segmentation fault)");
    Run fine({"/bin/true"});
    CHECK(fine.wait_for_end().clean());
}

TEST_CASE("a child inherits no descriptor, no signal mask and no handler", "[process]") {
    const int leak = open("/dev/null", O_RDONLY); // no O_CLOEXEC, as MPI's sockets
    REQUIRE(leak >= 3);
    sigset_t block;
    sigset_t before;
    sigemptyset(&block);
    for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&block, signal);
    pthread_sigmask(SIG_BLOCK, &block, &before);
    auto* const old_pipe = std::signal(SIGPIPE, SIG_IGN);
    auto* const old_hup = std::signal(SIGHUP, [](int) {});
    Run run({"/usr/bin/python3", "-c",
             "import os\n"
             "print(' '.join(sorted(os.listdir('/proc/self/fd'), key=int)[:-1]))\n" // the last: the listing itself
             "print(' '.join(l.split()[1] for l in open('/proc/self/status') if l[:6] in ('SigBlk', 'SigIgn')))\n"
             "print(os.getpgid(0) == os.getpid(), os.readlink('/proc/self/fd/0'), os.getcwd())"});
    run.wait_for_end();
    std::signal(SIGPIPE, old_pipe);
    std::signal(SIGHUP, old_hup);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    close(leak);
    REQUIRE(run.output.size() == 3);
    CHECK(run.output[0] == "0 1 2 3");
    CHECK(run.output[1] == "0000000000000000 0000000001001000"); // Python itself ignores PIPE and XFSZ
    CHECK(run.output[2] == "True /dev/null /");
}

#if !defined(__SANITIZE_THREAD__) // which makes a fork of vfork: the child's error stays in its own memory
TEST_CASE("a child that cannot start says why", "[process]") {
    const ranktune::testing::TemporaryDirectory home;
    const std::string script = home.path() + "/script";
    std::ofstream(script) << "echo hello\n";
    CHECK(
        mistake({"no-such-program-here"}).starts_with("cannot start 'no-such-program-here': no such program in PATH"));
    CHECK(mistake({"/no/such"}) == "cannot start '/no/such': No such file or directory");
    CHECK(mistake({script}) == "cannot start '" + script + "': Permission denied (is it executable?)");
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    CHECK(mistake({script}).ends_with("Exec format error (a script needs a first line such as #!/bin/sh)"));
    CHECK(mistake({"/bin/true"}, "/no/where") ==
          "cannot start '/bin/true' in the directory '/no/where': No such file or directory");
    CHECK(mistake({""}) == "the command of the trial is empty");
}
#endif

TEST_CASE("messages go both ways", "[process]") {
    Run run(Run::shell("echo hello >&3; read answer <&3; echo \"got $answer\" >&3"));
    CHECK(run.wait_for_line() == "hello");
    run.child.send("an answer\n");
    CHECK(run.wait_for_line() == "got an answer");
    CHECK(run.wait_for_end().clean());
}

TEST_CASE("a wait for a child ends when another descriptor can be read", "[process]") {
    Run run(Run::shell("read answer <&3"));
    Waker waker;
    waker.wake();
    CHECK_FALSE(run.child.wait(std::chrono::hours(1), waker.fd()));
    run.child.send("an answer\n");
    CHECK(run.wait_for_end().clean());
}

TEST_CASE("a line in pieces and a line of a MiB arrive whole", "[process]") {
    Run run({"/usr/bin/python3", "-c",
             "import os, time\n"
             "os.write(3, b'par'); time.sleep(0.05); os.write(3, b'tial\\n')\n"
             "f = os.fdopen(3, 'wb'); f.write(b'x' * (1 << 20) + b'\\n'); f.flush()"});
    CHECK(run.wait_for_line() == "partial");
    CHECK(run.wait_for_line().size() == std::size_t{1} << 20U);
    CHECK(run.wait_for_end().clean());
}

TEST_CASE("a child that floods its outputs never blocks", "[process]") {
    Run run(Run::shell("i=0; while [ $i -lt 20000 ]; do echo \"line $i\"; echo \"error $i\" >&2; i=$((i+1)); done"));
    CHECK(run.wait_for_end().clean());
    CHECK(run.output.size() == 40000);
    CHECK(run.child.last_words().ends_with("error 19998\nerror 19999"));
    CHECK(run.child.last_words().size() <= 2100);
}

TEST_CASE("unread decisions block nobody", "[process]") {
    Run run(Run::shell("read line; exec sleep 100"));
    const std::string line = "{\"decision\":\"continue\"}\n";
    for (int i = 0; i < 200000; ++i) run.child.send(line);
    run.child.kill();
    CHECK(run.wait_for_end().signal == SIGKILL);
}

TEST_CASE("the last state of a progress bar is kept, and very long lines are cut", "[process]") {
    Run run(Run::shell("printf ' 1%%\\r 50%%\\r100%%\\n'; printf 'dos\\r\\n'; head -c 100000 /dev/zero | tr '\\0' x"));
    run.wait_for_end();
    REQUIRE(run.output.size() >= 4);
    CHECK(run.output[0] == "100%");
    CHECK(run.output[1] == "dos");
    CHECK(run.output[2].size() < 90000);
}

TEST_CASE("a child that ignores TERM gets KILL after the grace", "[process]") {
    Run run(Run::shell("trap '' TERM; echo ready; while :; do sleep 0.01; done"), 100ms);
    run.wait_for_output(1);
    run.child.stop();
    CHECK(run.wait_for_end().signal == SIGKILL);
}

TEST_CASE("a child that handles TERM may clean up, even if it was stopped", "[process]") {
    Run run(Run::shell("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done"), 60s);
    run.wait_for_output(1);
    ::kill(run.child.pid(), SIGSTOP);
    run.child.stop();
    CHECK(run.wait_for_end().clean());
    // Its own child gets TERM as well, about which a shell may print a line.
    CHECK(std::ranges::count(run.output, "bye") == 1);
}

TEST_CASE("descendants die with the child, including those that left its process group", "[process]") {
    Run run(
        Run::shell("sleep 1000 & echo $!; setsid sleep 1001 & echo $!; (setsid sh -c 'echo $$; sleep 1002; :' &) ; "
                   "sleep 0.2; exit 0"));
    CHECK(run.wait_for_end().clean());
    REQUIRE(run.output.size() == 3);
    for (const std::string& line : run.output) CHECK_FALSE(is_alive(std::stoi(line)));
}

TEST_CASE("a child that is destroyed is stopped", "[process]") {
    pid_t pid = 0;
    {
        Run run(Run::shell("sleep 1000"));
        pid = run.child.pid();
        CHECK(is_alive(pid));
    }
    CHECK_FALSE(is_alive(pid));
}

TEST_CASE("a child dies with the thread that started it", "[process]") {
    // Leaked on purpose, as when the worker is killed.
    Child* leaked = nullptr;
    bool runs = false;
    std::thread([&] {
        leaked = new Child({"/bin/sh", "-c", "echo runs; exec sleep 1000"}, environment(), "/",
                           [&](std::string_view) { runs = true; });
        // Under ThreadSanitizer vfork is fork: this thread could be gone before the child asks to die with it.
        while (!runs) leaked->wait(50ms);
    }).join();
    while (!leaked->exited()) leaked->wait(50ms);
    CHECK(leaked->exited()->signal == SIGKILL);
    delete leaked;
}

// Started by the next test case, to be killed.
TEST_CASE("a worker with a program that has a descendant", "[.killed-worker]") {
    Run run(Run::shell("sleep 1000 & echo $!; wait"));
    run.wait_for_output(1);
    std::printf("%d %s\n", getpid(), run.output[0].c_str());
    std::fflush(stdout);
    pause();
}

TEST_CASE("when a process is killed, the descendants of its programs are killed too", "[process]") {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    FILE* worker = popen(("exec " + self + " '[.killed-worker]'").c_str(), "r");
    REQUIRE(worker != nullptr);
    int pid = 0;
    int descendant = 0;
    char line[256];
    while (descendant == 0 && std::fgets(line, sizeof line, worker) != nullptr)
        if (std::sscanf(line, "%d %d", &pid, &descendant) != 2) descendant = 0;
    REQUIRE(descendant != 0);
    CHECK(is_alive(descendant));
    ::kill(pid, SIGKILL);
    for (int turn = 0; turn < 30'000 && is_alive(descendant); ++turn) {
        std::this_thread::sleep_for(10ms);
        waitpid(descendant, nullptr, WNOHANG); // it may have become a child of this process
    }
    CHECK_FALSE(is_alive(descendant));
    pclose(worker);
}

TEST_CASE("a thousand children leave no descriptor and no zombie", "[process]") {
    Run({"/bin/true"}).wait_for_end(); // makes the per-process objects
    const auto before = own_descriptors();
    for (int i = 0; i < 1000; ++i) {
        Run run(i % 10 == 0 ? Run::shell("sleep 100 & echo x >&3") : Words{"/bin/true"});
        run.wait_for_end();
    }
    CHECK(own_descriptors() == before);
    CHECK(waitpid(-1, nullptr, WNOHANG) <= 0); // no zombie is left
}

namespace {

/// Starts a process in its own session with this variable; returns when it is set.
pid_t start_with(const std::string& variable) {
    const pid_t pid = fork();
    if (pid == 0) {
        setsid();
        execle("/bin/sleep", "sleep", "1000", nullptr, std::array<const char*, 2>{variable.c_str(), nullptr}.data());
        _exit(127);
    }
    std::string found;
    while (found != variable) {
        std::ifstream environment("/proc/" + std::to_string(pid) + "/environ");
        std::getline(environment, found, '\0');
    }
    return pid;
}

} // namespace

TEST_CASE("The next worker kills processes that a worker and its guard left when they were killed together",
          "[process]") {
    const std::string mine = Guard::instance().mark(); // RANKTUNE_GUARD=<pid>/<start>/<namespace>/<number>
    const auto at = mine.find('/');
    const auto next = mine.find('/', at + 1);
    const std::string pid = mine.substr(0, at);
    const std::string rest = mine.substr(next);
    const std::string dead = pid + "/1" + rest; // the pid was reused
    const pid_t left = start_with(dead);
    const pid_t living = start_with(mine);
    const pid_t elsewhere = start_with(pid + "/1/pid:[1]/7"); // pids of another namespace do not count
    const pid_t stranger = start_with("OTHER=1");
    CHECK(end_programs_of_the_dead() >= 1);
    int status = 0;
    CHECK(waitpid(left, &status, 0) == left);
    CHECK(WIFSIGNALED(status));
    for (const pid_t one : {living, elsewhere, stranger}) {
        CHECK(waitpid(one, nullptr, WNOHANG) == 0);
        kill(one, SIGKILL);
        CHECK(waitpid(one, nullptr, 0) == one);
    }
}

} // namespace ranktune::testing
