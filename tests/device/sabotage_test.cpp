// SPDX-License-Identifier: Apache-2.0
// The stand-in finds mistakes that a GPU usually hides. Each device that a test ruins is its own.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "device_case.hpp"
#include "support/catch.hpp"

namespace sabotage_test {

using namespace ranktune;
using testing::error_of;
using testing::OnAccelerator;

namespace {

device::Accelerator& stand_in(int number) {
    setenv("RANKTUNE_STAND_IN_DEVICES", "7", 1); // before the first look at them
    auto& runtime = testing::runtime_or_skip();
    if (!testing::is_stand_in(runtime)) {
        std::printf("skipped: these mistakes are for the stand-in\n");
        std::fflush(stdout);
        _exit(77);
    }
    return runtime.open(number);
}

/// One stream fills memory, the other copies it to the host; how many rounds of 200 did not see the result.
int rounds_that_miss(device::Accelerator& on, bool with_wait) {
    const auto pinned = on.allocate_pinned(256 * sizeof(float));
    const auto* const seen = static_cast<const float*>(pinned.get());
    const auto ready = on.make_event();
    int missed = 0;
    for (int round = 0; round < 200; ++round) {
        const OnAccelerator<float> memory(on, 256); // NaN
        on.compute_stream().fill_zero(memory.data(), 256 * sizeof(float));
        on.compute_stream().record(*ready);
        if (with_wait) on.communication_stream().wait(*ready);
        on.communication_stream().download(pinned.get(), memory.data(), 256 * sizeof(float));
        testing::wait_for(on.communication_stream());
        missed += seen[255] == 0.0F ? 0 : 1;
        testing::wait_for(on.compute_stream());
    }
    return missed;
}

/// Records a graph of two streams: one fills memory, the other copies it to the host. How many of 200 launches did not
/// see the result.
int launches_that_miss(device::Accelerator& on, bool with_wait) {
    constexpr std::size_t bytes = 256 * sizeof(float);
    auto& first = on.compute_stream();
    auto& second = on.communication_stream();
    const auto pinned = on.allocate_pinned(bytes);
    const auto* const seen = static_cast<const float*>(pinned.get());
    const std::vector<float> undefined(256, std::nanf(""));
    const OnAccelerator<float> memory(on, undefined);
    const auto forked = on.make_event();
    const auto filled = on.make_event();
    const auto joined = on.make_event();
    first.begin_recording();
    first.record(*forked);
    second.wait(*forked); // takes part from here on
    first.fill_zero(memory.data(), bytes);
    if (with_wait) {
        first.record(*filled);
        second.wait(*filled);
    }
    second.download(pinned.get(), memory.data(), bytes);
    second.record(*joined);
    first.wait(*joined);
    const auto graph = first.end_recording();
    int missed = 0;
    for (int round = 0; round < 200; ++round) {
        on.copy_from_host(memory.data(), undefined.data(), bytes);
        first.launch(*graph);
        testing::wait_for(first);
        missed += seen[255] == 0.0F ? 0 : 1;
    }
    return missed;
}

/// Runs `body` in a child process; returns the signal that ended it, or 0.
template <class Body>
int signal_of(Body&& body) {
    const pid_t child = fork();
    if (child == 0) {
        for (const int each : {SIGSEGV, SIGABRT}) signal(each, SIG_DFL); // not the test library's handlers
        body();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

} // namespace

TEST_CASE("a forgotten event wait is found", "[stand-in]") {
    auto& on = stand_in(0);
    CHECK(rounds_that_miss(on, true) == 0);
    CHECK(rounds_that_miss(on, false) > 0);
}

TEST_CASE("memory that is used after its release is found, and the device is lost", "[stand-in]") {
    auto& on = stand_in(1);
    float* freed = nullptr;
    {
        const OnAccelerator<float> memory(on, 16);
        freed = memory.data();
    }
    on.compute_stream().fill_zero(freed, 16 * sizeof(float));
    bool lost = false;
    try {
        testing::wait_for(on.compute_stream());
    } catch (const device::DeviceError& error) {
        lost = error.lost();
    }
    CHECK(lost);
    CHECK_THROWS_AS(on.allocate(16), device::DeviceError); // from now on
}

TEST_CASE("memory that is used beyond its end is found", "[stand-in]") {
    auto& on = stand_in(2);
    const OnAccelerator<float> memory(on, 16);
    on.compute_stream().fill_zero(memory.data(), 17 * sizeof(float));
    CHECK_THROWS_AS(testing::wait_for(on.compute_stream()), device::DeviceError);
}

TEST_CASE("memory that a stream still has to give is not for others", "[stand-in]") {
    auto& on = stand_in(3);
    const auto never = on.make_event();
    bool found = false;
    for (int round = 0; round < 200 && !found; ++round) {
        void* const scratch = on.compute_stream().allocate(64);
        on.communication_stream().fill_zero(scratch, 64); // without an event
        try {
            testing::wait_for(on.communication_stream());
        } catch (const device::DeviceError&) {
            found = true;
        }
    }
    CHECK(found);
}

TEST_CASE("a forgotten dependency in a graph is found", "[stand-in]") {
    auto& on = stand_in(0);
    CHECK(launches_that_miss(on, true) == 0);
    CHECK(launches_that_miss(on, false) > 0);
}

TEST_CASE("a graph whose memory was freed is found when it runs", "[stand-in]") {
    auto& on = stand_in(4);
    std::unique_ptr<device::Graph> graph;
    {
        const OnAccelerator<float> memory(on, 16);
        on.compute_stream().begin_recording();
        on.compute_stream().fill_zero(memory.data(), 16 * sizeof(float));
        graph = on.compute_stream().end_recording();
        on.compute_stream().launch(*graph);
        testing::wait_for(on.compute_stream());
        CHECK(memory.values() == std::vector<float>(16));
    }
    on.compute_stream().launch(*graph);
    CHECK(error_of([&] { testing::wait_for(on.compute_stream()); }).find("illegal memory access") != std::string::npos);
}

TEST_CASE("what a graph cannot have breaks its recording, and the stream goes on", "[stand-in]") {
    auto& on = stand_in(0);
    auto& stream = on.compute_stream();
    auto& other = on.communication_stream();
    const OnAccelerator<float> memory(on, 16);
    const auto outside = on.make_event();
    const auto event = on.make_event();
    stream.record(*outside);
    const auto recorded = [&](auto&& body) {
        stream.begin_recording();
        body();
        stream.fill_zero(memory.data(), 16 * sizeof(float));
        return error_of([&] { static_cast<void>(stream.end_recording()); });
    };
    const std::string invalid = "operation failed due to a previous error during capture";
    CHECK(recorded([] {}).empty());
    CHECK(recorded([&] { CHECK(!error_of([&] { static_cast<void>(stream.idle()); }).empty()); }).find(invalid) !=
          std::string::npos);
    CHECK(recorded([&] { CHECK(!error_of([&] { static_cast<void>(outside->reached()); }).empty()); }).find(invalid) !=
          std::string::npos);
    CHECK(recorded([&] { CHECK(!error_of([&] { static_cast<void>(on.allocate(16)); }).empty()); }).find(invalid) !=
          std::string::npos);
    CHECK(recorded([&] { CHECK(!error_of([&] { stream.wait(*outside); }).empty()); }).find(invalid) !=
          std::string::npos);
    CHECK(recorded([&] {
              stream.record(*event);
              other.wait(*event);
              other.fill_zero(memory.data(), 4);
          }).find("capturing stream has unjoined work") != std::string::npos);
    CHECK(error_of([&] { static_cast<void>(event->reached()); }).find("an event last recorded in a capturing") !=
          std::string::npos);
    for (const char* const call : {"begin", "end", "instantiate"}) {
        setenv("RANKTUNE_STAND_IN_CAPTURE", call, 1);
        std::string told;
        told += error_of([&] { told = recorded([] {}); }); // the first one throws at once
        CHECK(!told.empty());
        unsetenv("RANKTUNE_STAND_IN_CAPTURE");
    }
    stream.fill_zero(memory.data(), 16 * sizeof(float));
    testing::wait_for(stream);
    testing::wait_for(other);
    CHECK(memory.values() == std::vector<float>(16));
}

TEST_CASE("the host cannot access memory of a device", "[stand-in]") {
    auto& on = stand_in(0);
    const OnAccelerator<float> memory(on, std::vector<float>{1.0F});
    volatile float* const address = memory.data();
    CHECK(signal_of([&] { static_cast<void>(*address); }) == SIGSEGV);
    CHECK(signal_of([&] { *address = 2.0F; }) == SIGSEGV);
    CHECK(signal_of([] {}) == 0);
    CHECK(memory.values() == std::vector<float>{1.0F});
}

TEST_CASE("pinned memory is read when the copy runs, and undefined until a copy has written it", "[stand-in]") {
    auto& on = stand_in(0);
    const auto source = on.allocate_pinned(sizeof(float));
    const auto target = on.allocate_pinned(sizeof(float));
    auto* const from = static_cast<float*>(source.get());
    auto* const to = static_cast<float*>(target.get());
    const OnAccelerator<float> memory(on, 1);
    int overwritten = 0;
    int undefined = 0;
    for (int round = 0; round < 200; ++round) {
        *from = 1.0F;
        on.compute_stream().upload(memory.data(), from, sizeof(float));
        *from = 2.0F; // too early
        *to = 3.0F;
        on.compute_stream().download(to, memory.data(), sizeof(float));
        undefined += std::isnan(*to) ? 1 : 0; // too early
        testing::wait_for(on.compute_stream());
        overwritten += *to == 2.0F ? 1 : 0;
    }
    CHECK(overwritten > 0);
    CHECK(undefined > 0);
}

TEST_CASE("pinned memory that is freed before its copy has run is found, also in a graph", "[stand-in]") {
    auto* const free_pinned = testing::stand_in_function<int(void*)>("cudaFreeHost");
    for (const bool in_graph : {false, true}) {
        auto& on = stand_in(in_graph ? 5 : 6);
        auto& stream = on.compute_stream();
        const OnAccelerator<float> memory(on, 1);
        const auto pinned = on.allocate_pinned(sizeof(float));
        const testing::With slow("TAKES", "cudaMemcpyAsync to the device:100000");
        if (in_graph) stream.begin_recording();
        stream.upload(memory.data(), pinned.get(), sizeof(float));
        if (!in_graph) free_pinned(pinned.get());
        if (in_graph) {
            const auto graph = stream.end_recording();
            stream.launch(*graph);
            testing::wait_for(stream);
            free_pinned(pinned.get());
            stream.launch(*graph);
        }
        CHECK(error_of([&] { testing::wait_for(stream); }).find("illegal memory access") != std::string::npos);
    }
}

TEST_CASE("a group of NCCL that is not ended is found at the next call", "[stand-in]") {
    auto& runtime = testing::runtime_or_skip();
    static_cast<void>(stand_in(0));
    void* const library = dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) return; // a build without NCCL
    const auto call = [&](const char* name) { reinterpret_cast<int (*)()>(dlsym(library, name))(); };
    CHECK(signal_of([&] {
              call("ncclGroupStart");
              static_cast<void>(runtime.make_id());
          }) == SIGABRT);
    CHECK(signal_of([&] {
              call("ncclGroupStart");
              call("ncclGroupEnd");
              static_cast<void>(runtime.make_id());
          }) == 0);
    dlclose(library);
}

} // namespace sabotage_test
