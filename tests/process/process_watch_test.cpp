// SPDX-License-Identifier: Apache-2.0
#include "process/process_watch.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <vector>

#include "storage/journal/lease.hpp"
#include "support/catch.hpp"

namespace process_watch_test {

using namespace ranktune::process;

namespace {

/// A child that waits to be killed.
class Sleeper {
  public:
    Sleeper() : pid_(fork()) {
        if (pid_ == 0)
            for (;;) pause();
        const auto started = ranktune::storage::process_start(static_cast<std::uint64_t>(pid_));
        id_ = {static_cast<std::uint64_t>(pid_), started.value_or(0), this_process().space};
    }
    ~Sleeper() {
        kill(pid_, SIGKILL);
        reap();
    }
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;
    void reap() {
        if (!reaped_) waitpid(pid_, nullptr, 0);
        reaped_ = true;
    }
    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] const ProcessId& id() const { return id_; }

  private:
    pid_t pid_;
    bool reaped_ = false;
    ProcessId id_;
};

/// The positions that a watch has told of.
class Told {
  public:
    void operator()(std::size_t position) {
        const std::lock_guard lock(mutex_);
        told_.push_back(position);
        changed_.notify_all();
    }
    [[nodiscard]] std::vector<std::size_t> wait_for(std::size_t count) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return told_.size() >= count; });
        return told_;
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::size_t> told_;
};

} // namespace

TEST_CASE("the end of a process is told, then that of the next one", "[process]") {
    Sleeper first;
    Sleeper second;
    Sleeper third;
    Told told;
    ProcessWatch watch({first.id(), second.id(), third.id()}, [&](std::size_t position) { told(position); });
    kill(second.pid(), SIGKILL); // not watched yet
    kill(first.pid(), SIGKILL);  // nobody reaps it: a zombie has ended
    CHECK(told.wait_for(2) == std::vector<std::size_t>{0, 1});
    CHECK(lives(third.id()));
    CHECK(send_signal(third.id(), SIGKILL));
    CHECK(told.wait_for(3).back() == 2);
    CHECK_FALSE(lives(third.id()));
    CHECK_FALSE(send_signal(third.id(), SIGKILL));
}

TEST_CASE("another process with the same pid is not the one that was meant", "[process]") {
    Sleeper other;
    ProcessId earlier = other.id();
    --earlier.started;
    CHECK_FALSE(lives(earlier));
    CHECK_FALSE(send_signal(earlier, SIGKILL));
    Told told;
    ProcessWatch watch({earlier, other.id()}, [&](std::size_t position) { told(position); });
    CHECK(told.wait_for(1) == std::vector<std::size_t>{0});
    CHECK(lives(other.id()));
}

TEST_CASE("a silent process that runs is not killed at first, one that stands still is", "[process]") {
    const pid_t busy = fork();
    if (busy == 0)
        for (std::atomic<unsigned> turns{0};;) ++turns;
    const ProcessId spins{static_cast<std::uint64_t>(busy), 0, {}};
    CHECK(kill_silent(spins, false) == Killing::waits);
    if (kill_silent(spins, true) != Killing::done) {
        kill(busy, SIGKILL);
        FAIL_CHECK("it lives");
    }
    int status = 0;
    CHECK(waitpid(busy, &status, 0) == busy);
    CHECK(WTERMSIG(status) == SIGKILL);
    CHECK(kill_silent(spins, false) == Killing::nobody);
    Sleeper stopped;
    kill(stopped.pid(), SIGSTOP);
    CHECK(waitpid(stopped.pid(), &status, WUNTRACED) == stopped.pid());
    CHECK(kill_silent(stopped.id(), false) == Killing::done);
}

TEST_CASE("a watch ends without the end of a process", "[process]") {
    Sleeper one;
    {
        const ProcessWatch watch({one.id()}, [](std::size_t) { FAIL("it lives"); });
    }
    CHECK(lives(one.id()));
}

TEST_CASE("a process knows itself", "[process]") {
    CHECK(this_process().pid == static_cast<std::uint64_t>(getpid()));
    CHECK(lives(this_process()));
}

} // namespace process_watch_test
