// SPDX-License-Identifier: Apache-2.0
#include "comm/layout/neighbours.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

#include "storage/journal/lease.hpp"
#include "support/catch.hpp"

namespace neighbours_test {

using namespace ranktune;
using namespace ranktune::comm;
using base::Rank;

namespace {

/// A process that waits to be killed.
process::ProcessId sleeper() {
    const pid_t pid = fork();
    if (pid == 0)
        for (;;) pause();
    const auto started = storage::process_start(static_cast<std::uint64_t>(pid));
    return {static_cast<std::uint64_t>(pid), started.value_or(0), process::this_process().space};
}

void reap(const process::ProcessId& process) { waitpid(static_cast<pid_t>(process.pid), nullptr, 0); }

} // namespace

TEST_CASE("the ring of a rank has the other ranks of its node and pid namespace, those that follow it first",
          "[layout]") {
    Layout layout;
    layout.nodes = {"a", "a", "b", "a", "a"};
    layout.processes = {{1, 1, "x"}, {2, 1, "x"}, {3, 1, "x"}, {4, 1, "x"}, {5, 1, "container"}};
    CHECK(ring_of(layout, Rank(1)) == std::vector<Rank>{Rank(3), Rank(0)});
    CHECK(ring_of(layout, Rank(3)) == std::vector<Rank>{Rank(0), Rank(1)});
    CHECK(ring_of(layout, Rank(2)).empty());
    CHECK(ring_of(layout, Rank(4)).empty());
    CHECK(processes_of(layout, {Rank(3), Rank(0)}) ==
          std::vector<process::ProcessId>{layout.processes[3], layout.processes[0]});
    CHECK(ring_of(Layout{}, Rank(0)).empty());
}

TEST_CASE("a loop hears of neighbours that end, and can end them", "[layout]") {
    Layout layout;
    layout.nodes = {"a", "a", "a"};
    layout.processes = {process::this_process(), sleeper(), sleeper()};
    Neighbours neighbours(layout, Rank(0));
    process::Waker waker;
    Listening listening(&neighbours, waker);
    CHECK_FALSE(listening.ended());
    CHECK_FALSE(listening.signal(Rank(0), SIGKILL)); // no neighbour of itself
    CHECK_FALSE(listening.signal(Rank(7), SIGKILL));
    for (const std::uint32_t rank : {1U, 2U}) {
        CHECK(listening.signal(Rank(rank), SIGKILL));
        reap(layout.processes[rank]);
        std::optional<Rank> ended;
        while (!(ended = listening.ended())) waker.nap(std::chrono::seconds(10));
        CHECK(ended == Rank(rank));
    }
    Listening nobody(nullptr, waker);
    CHECK_FALSE(nobody.ended());
    CHECK_FALSE(nobody.signal(Rank(1), SIGKILL));
}

TEST_CASE("a rank whose neighbour ends before a loop listens ends, too", "[layout]") {
    Layout layout;
    layout.nodes = {"a", "a"};
    layout.processes = {process::this_process(), sleeper()};
    const pid_t rank = fork();
    if (rank == 0) {
        layout.processes[0] = process::this_process();
        const Neighbours neighbours(layout, Rank(0));
        for (;;) pause(); // as in a collective call
    }
    CHECK(process::send_signal(layout.processes[1], SIGKILL));
    reap(layout.processes[1]);
    int status = 0;
    waitpid(rank, &status, 0);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 75);
}

} // namespace neighbours_test
