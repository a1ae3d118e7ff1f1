// SPDX-License-Identifier: Apache-2.0
#pragma once
// An accelerator for tests whose memory is the host's, and whose streams do nothing but keep vector clocks: which work
// comes after which.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "device/communicator.hpp"
#include "device/compute.hpp"
#include "device/device.hpp"
#include "device/gradient_kernels.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::testing {

/// By stream: the number of its operations that have to be complete.
using StreamClock = std::map<const void*, int>;

class ClockedEvent final : public device::Event {
  public:
    [[nodiscard]] bool reached() const override { return true; }
    [[nodiscard]] double seconds_since(const device::Event&) const override { return 0.0; }
    StreamClock clock;
};

/// Work is done when it is issued. `native` is the address of the clock.
class ClockedStream final : public device::Stream {
  public:
    explicit ClockedStream(StreamClock& clock) : clock_(clock) {}
    void record(device::Event& event) override { static_cast<ClockedEvent&>(event).clock = clock_; }
    void wait(const device::Event& event) override {
        for (const auto& [stream, count] : static_cast<const ClockedEvent&>(event).clock)
            clock_[stream] = std::max(clock_[stream], count);
    }
    [[nodiscard]] bool idle() override { return true; }
    [[nodiscard]] void* native() const override { return &clock_; }
    void upload(void* to, const void* pinned, std::size_t bytes) override { copy(to, pinned, bytes); }
    void download(void* pinned, const void* from, std::size_t bytes) override { copy(pinned, from, bytes); }
    void copy(void* to, const void* from, std::size_t bytes) override {
        tick();
        std::memcpy(to, from, bytes);
    }
    void fill_zero(void* memory, std::size_t bytes) override {
        tick();
        std::memset(memory, 0, bytes);
    }
    void widen(float*, const void*, std::size_t, base::DType) override { refuse(); }
    void narrow(void*, base::DType, const float*, std::size_t) override { refuse(); }
    void add(float* to, const float* from, std::size_t count) override {
        tick();
        for (std::size_t i = 0; i < count; ++i) to[i] += from[i];
    }
    void clip(float*, std::size_t, double, double*) override { refuse(); }
    [[nodiscard]] void* allocate(std::size_t bytes) override { return std::malloc(bytes); }
    void release(void* memory) noexcept override { std::free(memory); }
    void begin_recording() override { refuse(); }
    [[nodiscard]] std::unique_ptr<device::Graph> end_recording() override { refuse(); }
    void drop_recording() noexcept override {}
    void launch(device::Graph&) override { refuse(); }

  private:
    void tick() { ++clock_[&clock_]; }
    [[noreturn]] static void refuse() { throw base::Error("not on this device"); }

    StreamClock& clock_;
};

class ClockedAccelerator final : public device::Accelerator {
  public:
    [[nodiscard]] std::string name() const override { return "clocked device"; }
    [[nodiscard]] void* allocate(std::size_t bytes) override { return std::malloc(bytes); }
    void release(void* memory) noexcept override { std::free(memory); }
    void copy_from_host(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
    void copy_to_host(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
    [[nodiscard]] const device::DeviceFacts& facts() const override { return facts_; }
    void limit_memory(std::uint64_t) override {}
    [[nodiscard]] device::Stream& compute_stream() override { return compute_; }
    [[nodiscard]] device::Stream& communication_stream() override { return communication_; }
    [[nodiscard]] device::Stream& copy_stream() override { return copies_; }
    [[nodiscard]] std::unique_ptr<device::Stream> borrow(void* native) override {
        return std::make_unique<ClockedStream>(*static_cast<StreamClock*>(native));
    }
    [[nodiscard]] std::unique_ptr<device::Event> make_event() override { return std::make_unique<ClockedEvent>(); }
    [[nodiscard]] std::unique_ptr<device::Event> make_timed_event() override { return make_event(); }
    [[nodiscard]] std::shared_ptr<void> allocate_pinned(std::size_t bytes) override {
        return {std::malloc(bytes), &std::free};
    }
    [[nodiscard]] std::unique_ptr<device::Compute> make_compute(device::Stream&) override { return nullptr; }
    [[nodiscard]] std::unique_ptr<device::GradientKernels> make_gradient_kernels(device::Stream&) override {
        return nullptr;
    }
    [[nodiscard]] std::unique_ptr<device::Communicator> make_communicator(const device::CommunicatorId&, int, int,
                                                                          const std::string&) override {
        return nullptr;
    }

    StreamClock compute_clock;
    StreamClock communication_clock;
    StreamClock copy_clock;

  private:
    void trim() noexcept override {}
    device::DeviceFacts facts_;
    ClockedStream compute_{compute_clock};
    ClockedStream communication_{communication_clock};
    ClockedStream copies_{copy_clock};
};

} // namespace ranktune::testing
