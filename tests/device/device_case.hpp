// SPDX-License-Identifier: Apache-2.0
#pragma once
// What tests on devices share. They run on a GPU, or on the stand-in; without either they are skipped (exit 77).

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "device/compute.hpp"
#include "device/module.hpp"
#include "support/error_of.hpp"

namespace ranktune::testing {

/// A function of the stand-in by its mangled name; nullptr on a GPU.
template <class Function>
[[nodiscard]] Function* stand_in_function(const char* name, const char* library = "libcudart.so.13") {
    void* const runtime = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (runtime == nullptr) return nullptr;
    auto* const function = reinterpret_cast<Function*>(dlsym(runtime, name));
    dlclose(runtime);
    return function;
}

/// Ends the program when the stand-in does nothing any more: its ranks wait for each other for ever then. By SIGABRT,
/// for which the test library names the test.
inline void watch_for_hangs() {
    auto* const progress = stand_in_function<unsigned long long()>("_ZN8stand_in8progressEv");
    if (progress == nullptr) return;
    std::thread([progress] {
        constexpr int most = 10; // looks, which a busy machine delays as it delays the ranks
        for (int same = 0; same < most;) {
            const unsigned long long before = progress();
            std::this_thread::sleep_for(std::chrono::milliseconds(500));
            same = progress() == before ? same + 1 : 0;
        }
        std::fprintf(stderr, "the stand-in has done nothing for 5 s: a rank waits for what will not come\n");
        std::abort();
    }).detach();
}

/// Ends the program when there is no device.
inline device::Runtime& runtime_or_skip() {
    const device::Opened& opened = device::open_module();
    if (!opened.why.empty()) {
        std::printf("skipped: %s\n", opened.why.c_str());
        std::fflush(stdout);
        _exit(77);
    }
    static const bool watched = (watch_for_hangs(), true);
    static_cast<void>(watched);
    return *opened.runtime;
}

[[nodiscard]] inline bool is_stand_in(device::Runtime& runtime) {
    return runtime.devices().front().name.starts_with("stand-in");
}

/// Allocations of devices in this process that were not freed; nothing on a GPU.
[[nodiscard]] inline std::optional<std::size_t> live_allocations() {
    auto* const count = stand_in_function<std::size_t()>("_ZN8stand_in16live_allocationsEv");
    return count == nullptr ? std::nullopt : std::optional(count());
}

/// Bytes that the ranks of this process have sent by NCCL; on the stand-in only.
[[nodiscard]] inline std::size_t sent_bytes() {
    return stand_in_function<unsigned long()>("stand_in_sent_bytes", "libnccl.so.2")();
}

/// A setting of the stand-in (README.md), while it lives: With("NCCL", "1:next:hang").
class With {
  public:
    With(const char* name, const std::string& value) : name_(std::string("RANKTUNE_STAND_IN_") + name) {
        setenv(name_.c_str(), value.c_str(), 1);
    }
    ~With() { unsetenv(name_.c_str()); }
    With(const With&) = delete;
    With& operator=(const With&) = delete;

  private:
    std::string name_;
};

inline void wait_for(device::Stream& stream) {
    while (!stream.idle()) std::this_thread::sleep_for(std::chrono::microseconds(20));
}

/// What a process holds, to see what is left behind.
struct ProcessEntries {
    std::size_t files = 0;
    std::size_t threads = 0;
    std::size_t mappings = 0;
};
inline ProcessEntries process_entries() {
    const auto entries = [](const char* folder) {
        std::size_t count = 0;
        for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
        return count;
    };
    std::ifstream maps("/proc/self/maps");
    const auto lines = std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
    return {entries("/proc/self/fd"), entries("/proc/self/task"), static_cast<std::size_t>(lines)};
}

/// Numbers in memory of a device; copies are those of base::Device, which wait for all streams.
template <class T>
class OnAccelerator {
  public:
    OnAccelerator(device::Accelerator& on, const std::vector<T>& values) : OnAccelerator(on, values.size()) {
        on_->copy_from_host(memory_.get(), values.data(), values.size() * sizeof(T));
    }
    OnAccelerator(device::Accelerator& on, std::size_t count)
        : on_(&on), count_(count), memory_(base::allocate(base::Place(on), count * sizeof(T))) {}
    [[nodiscard]] T* data() const { return static_cast<T*>(memory_.get()); }
    [[nodiscard]] std::vector<T> values() const {
        std::vector<T> result(count_);
        on_->copy_to_host(result.data(), memory_.get(), count_ * sizeof(T));
        return result;
    }

  private:
    device::Accelerator* on_;
    std::size_t count_;
    std::shared_ptr<void> memory_;
};

} // namespace ranktune::testing
