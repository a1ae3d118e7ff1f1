// SPDX-License-Identifier: Apache-2.0
#pragma once
// LibTorch's current streams for tests without CUDA: they keep vector clocks.

#include "libtorch/streams.hpp"
#include "models.hpp"
#include "support/clocked_accelerator.hpp"

namespace ranktune::libtorch_test {

using testing::StreamClock;

/// A thread's current stream, as LibTorch has it.
class ClockedStreams : public libtorch::CurrentStreams {
  public:
    ClockedStreams() { libtorch::set_current_streams(this); }
    ~ClockedStreams() override { libtorch::set_current_streams(nullptr); }
    [[nodiscard]] void* current(int) override { return now; }
    [[nodiscard]] std::unique_ptr<Guard> make_current(void* stream, int) override {
        return std::make_unique<Changed>(*this, static_cast<StreamClock*>(stream));
    }
    /// Work of LibTorch on the current stream.
    void work() { ++(*now)[now]; }

    StreamClock before; ///< of the caller, as LibTorch's default stream
    StreamClock* now = &before;

  private:
    class Changed final : public Guard {
      public:
        Changed(ClockedStreams& owner, StreamClock* stream) : owner_(owner), before_(owner.now) { owner_.now = stream; }
        ~Changed() override { owner_.now = before_; }

      private:
        ClockedStreams& owner_;
        StreamClock* before_;
    };
};

/// Whether all work of `earlier` so far comes before what is issued on `later` now.
inline bool follows(StreamClock& later, StreamClock& earlier) { return later[&earlier] == earlier[&earlier]; }

} // namespace ranktune::libtorch_test
