// SPDX-License-Identifier: Apache-2.0
#pragma once
// One order for the work of LibTorch and of ranktune on a GPU.

#include <memory>

#include "device/stream_turn.hpp"
#include "ranktune/libtorch/data_parallel.hpp"

namespace ranktune::libtorch {

/// The streams to which LibTorch issues work of the calling thread. Tests without CUDA have some of their own.
class CurrentStreams {
  public:
    class Guard {
      public:
        virtual ~Guard() = default;
    };
    virtual ~CurrentStreams() = default;
    /// The current stream of device `ordinal` of this process, a cudaStream_t.
    [[nodiscard]] virtual void* current(int ordinal) = 0;
    /// `stream` is the current one while the result lives.
    [[nodiscard]] virtual std::unique_ptr<Guard> make_current(void* stream, int ordinal) = 0;
};

/// LibTorch's, or those that were set. Throws base::UsageError if ranktune-torch was built without CUDA.
[[nodiscard]] CurrentStreams& current_streams();
/// `streams` outlives its use; null: LibTorch's again. Not for threads at the same time.
void set_current_streams(CurrentStreams* streams);
/// Throws base::UsageError without CUDA. Two files: cuda_stream.cpp, no_cuda_stream.cpp.
[[nodiscard]] CurrentStreams& streams_of_libtorch();

/// While it lives, work of LibTorch on the calling thread is issued to the accelerator's compute stream, in the place
/// of the stream that was current before: see device::StreamTurn. May be nested.
class StreamScope {
  public:
    StreamScope(device::Accelerator& on, int ordinal)
        : turn_(on, current_streams().current(ordinal)),
          guard_(current_streams().make_current(on.compute_stream().native(), ordinal)) {}

  private:
    device::StreamTurn turn_;
    std::unique_ptr<CurrentStreams::Guard> guard_; // last: the stream of before is current again when the turn ends
};

/// Null on the host.
[[nodiscard]] std::unique_ptr<StreamScope> stream_scope(const Where& where);

} // namespace ranktune::libtorch
