// SPDX-License-Identifier: Apache-2.0
#include "process/background.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "support/catch.hpp"

namespace background_test {

using namespace ranktune::process;
using namespace std::chrono_literals;

namespace {

/// Counts calls and waits for them.
class Calls {
  public:
    void count() {
        const std::lock_guard lock(mutex_);
        ++calls_;
        changed_.notify_all();
    }
    void wait_for(int calls) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return calls_ >= calls; });
    }
    [[nodiscard]] int now() {
        const std::lock_guard lock(mutex_);
        return calls_;
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int calls_ = 0;
};

} // namespace

TEST_CASE("scheduled work is repeated until stop, and not afterwards", "[process]") {
    Calls calls;
    Background work(sparingly(1ms, [&] { calls.count(); }), Background::Clock::now());
    calls.wait_for(3);
    std::thread other([&] { work.stop(); });
    work.stop();
    other.join();
    const int at_the_end = calls.now();
    std::this_thread::sleep_for(20ms);
    CHECK(calls.now() == at_the_end);
}

TEST_CASE("requested work is done before the end, and none without a request", "[process]") {
    Calls calls;
    {
        Background work([&] {
            calls.count();
            return Background::when_asked;
        });
        std::this_thread::sleep_for(5ms);
        CHECK(calls.now() == 0);
        work.ask();
        calls.wait_for(1);
        work.ask(); // destroyed right after
    }
    CHECK(calls.now() == 2);
}

TEST_CASE("a request during a call leads to one more call", "[process]") {
    Calls begun;
    Calls ended;
    std::atomic<bool> may_end = false;
    Background work([&] {
        begun.count();
        while (!may_end) std::this_thread::yield();
        ended.count();
        return Background::when_asked;
    });
    work.ask();
    begun.wait_for(1);
    work.ask();
    work.ask();
    may_end = true;
    ended.wait_for(2);
    work.stop();
    CHECK(ended.now() == 2);
    work.ask(); // too late
    CHECK(ended.now() == 2);
}

TEST_CASE("work may ask for another call from its first one on", "[process]") {
    struct Asking { // the first call may run before the constructor of `work` is done
        Calls calls;
        Background work{[this] {
                            calls.count();
                            if (calls.now() == 1) work.ask();
                            return Background::when_asked;
                        },
                        Background::Clock::now()};
    };
    for (int times = 0; times < 1000; ++times) {
        Asking asking;
        asking.calls.wait_for(2);
        CHECK(asking.calls.now() == 2);
    }
}

TEST_CASE("tasks are done in their order, and all before the end", "[process]") {
    std::vector<int> done;
    {
        Tasks tasks;
        for (int i = 0; i < 100; ++i) tasks.post([&done, i] { done.push_back(i); });
    }
    REQUIRE(done.size() == 100);
    CHECK(std::is_sorted(done.begin(), done.end()));
}

TEST_CASE("slow work rests nineteen times as long as it took", "[process]") {
    const auto work = sparingly(1ms, [] { std::this_thread::sleep_for(2ms); });
    const auto before = Background::Clock::now();
    CHECK(work() - before >= 40ms);
}

#ifndef __SANITIZE_THREAD__ // which allows no thread in a forked process
TEST_CASE("a process ends beside a thread left behind, without what runs at an exit", "[process]") {
    const bool left = GENERATE(true, false);
    const pid_t child = fork();
    if (child == 0) {
        static_cast<void>(std::atexit([] { _exit(9); }));
        if (left) leave_behind(std::thread([] { std::this_thread::sleep_for(1h); }));
        end_with_threads_left_behind(3);
        std::exit(4);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == (left ? 3 : 9));
}
#endif

} // namespace background_test
