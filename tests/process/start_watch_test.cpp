// SPDX-License-Identifier: Apache-2.0
#include "process/start_watch.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "support/catch.hpp"

namespace start_watch_test {

using namespace ranktune::process;
using ranktune::process::StartWatch;
using namespace std::chrono_literals;

namespace {

struct Ended {
    int code = -1;
    std::string words;
};

/// How a rank ends that waits for the others when its launcher dies.
Ended orphaned(std::chrono::milliseconds limit) {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0); // orphans become children of this process
    const pid_t launcher = fork();
    REQUIRE(launcher >= 0);
    if (launcher == 0) {
        const pid_t rank = fork();
        if (rank != 0) {
            char there = 0; // wait until the rank has read its parent's pid
            _exit(read(ends[0], &there, 1) == 1 ? 0 : 1);
        }
        dup2(ends[1], STDERR_FILENO);
        const StartWatch watch(limit, "a rank on n1");
        if (write(ends[1], "+", 1) != 1) _exit(1);
        std::this_thread::sleep_for(100s);
        _exit(0);
    }
    close(ends[1]);
    int status = 0;
    REQUIRE(waitpid(launcher, &status, 0) == launcher);
    REQUIRE((WIFEXITED(status) && WEXITSTATUS(status) == 0));
    Ended ended;
    char buffer[512];
    for (ssize_t size = 0; (size = read(ends[0], buffer, sizeof buffer)) > 0;)
        ended.words.append(buffer, static_cast<std::size_t>(size));
    close(ends[0]);
    REQUIRE(waitpid(-1, &status, 0) > 0);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    if (WIFEXITED(status)) ended.code = WEXITSTATUS(status);
    return ended;
}

} // namespace

TEST_CASE("A rank whose launcher dies while it waits for the others ends", "[process]") {
    for (const auto limit : {0ms, 90'000ms}) { // no limit, and longer than this test waits
        const Ended ended = orphaned(limit);
        CHECK(ended.code == 75);
        CHECK(ended.words.starts_with("ranktune: a rank on n1 ends (exit 75): what started it"));
    }
}

} // namespace start_watch_test
