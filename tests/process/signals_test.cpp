// SPDX-License-Identifier: Apache-2.0
// Signals, including those delivered to a thread that was started before they were blocked.

#include "process/signals.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "process/wake.hpp"
#include "support/catch.hpp"

namespace ranktune::testing {

using namespace ranktune::process;
namespace {

using study::Asker;

/// Waits for a signal as loops do.
Asker next_signal(SignalReader& reader) {
    Waker waker;
    for (;;) {
        if (const auto name = reader.poll()) return *name;
        waker.nap(std::chrono::seconds(1), reader.fd());
    }
}

} // namespace

TEST_CASE("a stop signal is read by the loop, whichever thread it is delivered to", "[process]") {
    std::atomic<bool> end{false};
    std::thread earlier([&] { // like a library's thread: started before the signals were blocked
        while (!end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    block_stop_signals();
    SignalReader reader;
    CHECK_FALSE(reader.poll().has_value());
    kill(getpid(), SIGUSR1);
    CHECK(next_signal(reader) == Asker::sigusr1);
    pthread_kill(earlier.native_handle(), SIGTERM);
    CHECK(next_signal(reader) == Asker::sigterm);
    CHECK_FALSE(reader.poll().has_value());
    end = true;
    earlier.join();
}

TEST_CASE("a forwarded signal is reported as the original one", "[process]") {
    block_stop_signals();
    const SignalReader reader(SignalMeanings::from({{interrupt_variable, "SIGUSR2"}}));
    CHECK(reader.meaning(Asker::sigusr2) == Asker::keyboard);
    CHECK(reader.meaning(Asker::sigusr1) == Asker::sigusr1);
    CHECK(SignalMeanings::from({}).of(Asker::sigusr2) == Asker::sigusr2);
}

TEST_CASE("the original signal is read from the note only", "[process]") {
    std::string path;
    {
        SignalNote note;
        path = note.path();
        const auto meanings = SignalMeanings::from({{signal_note_variable, path}});
        CHECK(meanings.of(Asker::sigusr1) == Asker::sigusr1); // no note yet
        CHECK(meanings.noted() == Asker::none);
        note.write(SIGTERM);
        CHECK(meanings.of(Asker::sigusr1) == Asker::sigterm);
        CHECK(meanings.of(Asker::sigusr2) == Asker::sigterm);
        CHECK(meanings.of(Asker::sighup) == Asker::sighup); // no signal is forwarded as this one
        CHECK(meanings.noted() == Asker::sigterm);
        note.write(SIGINT);
        CHECK(meanings.of(Asker::sigusr1) == Asker::sigterm); // the first one counts
        std::ofstream(path) << "anything else\n";
        CHECK(meanings.of(Asker::sigusr1) == Asker::sigusr1);
        CHECK(meanings.noted() == Asker::none);
    }
    CHECK(SignalMeanings().noted() == Asker::none);
    CHECK(SignalMeanings::passed_on_as(Asker::keyboard) == Asker::sigusr2);
    CHECK(SignalMeanings::passed_on_as(Asker::sighup) == Asker::sigusr1);
    CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("rank 0 leaves its exit code beside the note, once", "[process]") {
    std::string path;
    {
        const SignalNote note;
        path = note.path();
        CHECK_FALSE(note.exit_code());
        setenv(signal_note_variable, path.c_str(), 1);
        leave_exit_code(2);
        leave_exit_code(75);
        unsetenv(signal_note_variable);
        leave_exit_code(4); // nobody asks
        CHECK(note.exit_code() == 2);
    }
    CHECK_FALSE(std::filesystem::exists(path + ".code"));
}

TEST_CASE("Slurm's signals at the time limit are one request and leave time for checkpoints", "[process]") {
    using namespace std::chrono_literals;
    const std::chrono::steady_clock::time_point start{};
    StopSequence stops;
    CHECK(stops.next(Asker::sigterm, start) == StopStep::begin);
    CHECK(stops.next(Asker::sigterm, start + 8ms) == StopStep::repeat);

    StopSequence warned; // --signal=USR1@120
    CHECK(warned.next(Asker::sigusr1, start) == StopStep::begin);
    CHECK(warned.next(Asker::sigterm, start + 120s) == StopStep::repeat);
    CHECK(warned.next(Asker::sigterm, start + 120s + 8ms) == StopStep::repeat);
}

TEST_CASE("insisting ends a study at once", "[process]") {
    using namespace std::chrono_literals;
    const std::chrono::steady_clock::time_point start{};
    StopSequence keyboard;
    CHECK(keyboard.next(Asker::sigint, start) == StopStep::begin);
    CHECK(keyboard.next(Asker::sigint, start + 1s) == StopStep::at_once);

    StopSequence mixed;
    CHECK(mixed.next(Asker::sigusr1, start) == StopStep::begin);
    CHECK(mixed.next(Asker::sigint, start + 1s) == StopStep::at_once);

    StopSequence twice;
    CHECK(twice.next(Asker::sigterm, start) == StopStep::begin);
    CHECK(twice.next(Asker::sigterm, start + 4999ms) == StopStep::repeat);
    CHECK(twice.next(Asker::sigterm, start + 5s) == StopStep::at_once);
}

TEST_CASE("a nap ends when it is woken", "[process]") {
    Waker waker;
    std::thread other([&] { waker.wake(); });
    CHECK(waker.nap(std::chrono::hours(1)));
    other.join();
    CHECK_FALSE(waker.nap(std::chrono::microseconds(1)));
}

TEST_CASE("other waits end when a waker is woken, until it is cleared", "[process]") {
    Waker waker;
    std::thread other([&] { waker.wake(); });
    await_readable(waker.fd(), std::chrono::hours(1));
    await_readable(waker.fd(), std::chrono::hours(1)); // still
    other.join();
    waker.clear();
    waker.clear();
    CHECK_FALSE(waker.nap(std::chrono::microseconds(1)));
    await_readable(-1, std::chrono::microseconds(1));
}

} // namespace ranktune::testing
