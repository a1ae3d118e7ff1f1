// SPDX-License-Identifier: Apache-2.0
// Signals, also those that a thread catches which was there before they were blocked.

#include "drivers/signals.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "drivers/wake.hpp"
#include "support/catch.hpp"

namespace ranktune::drivers {
namespace {

/// Waits for a signal as the loops do.
std::string next_signal(SignalReader& reader) {
    Waker waker;
    for (;;) {
        if (const auto name = reader.poll()) return *name;
        waker.nap(std::chrono::seconds(1), reader.fd());
    }
}

} // namespace

TEST_CASE("a stop signal is read by the loop, whichever thread it is given to", "[drivers]") {
    std::atomic<bool> end{false};
    std::thread earlier([&] { // as those of libraries: started before the signals were blocked
        while (!end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    block_stop_signals();
    SignalReader reader;
    CHECK_FALSE(reader.poll().has_value());
    kill(getpid(), SIGUSR1);
    CHECK(next_signal(reader) == "SIGUSR1");
    pthread_kill(earlier.native_handle(), SIGTERM);
    CHECK(next_signal(reader) == "SIGTERM");
    CHECK_FALSE(reader.poll().has_value());
    end = true;
    earlier.join();
}

TEST_CASE("a signal that stands for something else is called so", "[drivers]") {
    block_stop_signals();
    const SignalReader reader(SignalMeanings::from({{interrupt_variable, "SIGUSR2"}}));
    CHECK(reader.meaning("SIGUSR2") == "Ctrl-C");
    CHECK(reader.meaning("SIGUSR1") == "SIGUSR1");
    CHECK(SignalMeanings::from({}).of("SIGUSR2") == "SIGUSR2");
}

TEST_CASE("what was received in place of a signal is read from the note, and only there", "[drivers]") {
    std::string path;
    {
        SignalNote note;
        path = note.path();
        const auto meanings = SignalMeanings::from({{signal_note_variable, path}});
        CHECK(meanings.of("SIGUSR1") == "SIGUSR1"); // nothing is written yet
        CHECK(meanings.noted().empty());
        note.write(SIGTERM);
        CHECK(meanings.of("SIGUSR1") == "SIGTERM");
        CHECK(meanings.of("SIGUSR2") == "SIGTERM");
        CHECK(meanings.of("SIGHUP") == "SIGHUP"); // nobody passes another on as this one
        CHECK(meanings.noted() == "SIGTERM");
        note.write(SIGINT);
        CHECK(meanings.of("SIGUSR1") == "SIGTERM"); // the first one counts
        std::ofstream(path) << "anything else\n";
        CHECK(meanings.of("SIGUSR1") == "SIGUSR1");
        CHECK(meanings.noted().empty());
    }
    CHECK(SignalMeanings().noted().empty());
    CHECK(SignalMeanings::passed_on_as("Ctrl-C") == "SIGUSR2");
    CHECK(SignalMeanings::passed_on_as("SIGHUP") == "SIGUSR1");
    CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("what Slurm sends when the time is up is one request, and leaves time for checkpoints", "[drivers]") {
    using namespace std::chrono_literals;
    const std::chrono::steady_clock::time_point start{};
    StopSequence stops;
    CHECK(stops.next("SIGTERM", start) == StopStep::begin);
    CHECK(stops.next("SIGTERM", start + 8ms) == StopStep::repeat);

    StopSequence warned; // --signal=USR1@120
    CHECK(warned.next("SIGUSR1", start) == StopStep::begin);
    CHECK(warned.next("SIGTERM", start + 120s) == StopStep::repeat);
    CHECK(warned.next("SIGTERM", start + 120s + 8ms) == StopStep::repeat);
}

TEST_CASE("who insists ends a study at once", "[drivers]") {
    using namespace std::chrono_literals;
    const std::chrono::steady_clock::time_point start{};
    StopSequence keyboard;
    CHECK(keyboard.next("SIGINT", start) == StopStep::begin);
    CHECK(keyboard.next("SIGINT", start + 1s) == StopStep::at_once);

    StopSequence mixed;
    CHECK(mixed.next("SIGUSR1", start) == StopStep::begin);
    CHECK(mixed.next("SIGINT", start + 1s) == StopStep::at_once);

    StopSequence twice;
    CHECK(twice.next("SIGTERM", start) == StopStep::begin);
    CHECK(twice.next("SIGTERM", start + 4999ms) == StopStep::repeat);
    CHECK(twice.next("SIGTERM", start + 5s) == StopStep::at_once);
}

TEST_CASE("a nap ends when it is woken", "[drivers]") {
    Waker waker;
    std::thread other([&] { waker.wake(); });
    CHECK(waker.nap(std::chrono::hours(1)));
    other.join();
    CHECK_FALSE(waker.nap(std::chrono::microseconds(1)));
}

} // namespace ranktune::drivers
