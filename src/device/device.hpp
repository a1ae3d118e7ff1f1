// SPDX-License-Identifier: Apache-2.0
#pragma once
// Accelerator, Stream, Event: a GPU as the rest of ranktune sees it. Implemented by the module libranktune-cuda
// (device/cuda), which is opened at run time: device/module.hpp.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ranktune/base/buffer.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::device {

class Compute;
class Communicator;
class GradientKernels;
struct CommunicatorId;

/// A GPU, or a library on it, refused a call.
class DeviceError : public base::Error {
  public:
    /// `lost`: the GPU answers every later call of this process with the same error ("sticky").
    DeviceError(const std::string& message, bool lost) : base::Error(message), lost_(lost) {}
    [[nodiscard]] bool lost() const { return lost_; }

  private:
    bool lost_;
};

/// The memory of a GPU is full. The GPU goes on.
class DeviceMemoryError : public DeviceError {
  public:
    explicit DeviceMemoryError(const std::string& message) : DeviceError(message, false) {}
};

/// What a GPU is. Numbers of a device count from 0 among those that this process sees (CUDA_VISIBLE_DEVICES).
struct DeviceFacts {
    std::string name; ///< "NVIDIA H200"
    std::string uuid; ///< "GPU-5ca1ab1e-..."
    std::string bus;  ///< PCI address, "0000:1B:00.0"
    std::uint64_t memory_bytes = 0;
    int major = 0; ///< compute capability
    int minor = 0;
};

/// A point in the work of a stream. Owns its handle.
class Event {
  public:
    virtual ~Event() = default;
    /// Whether the work before the last `Stream::record` is complete; true when it was never recorded. Does not wait.
    /// Throws DeviceError.
    [[nodiscard]] virtual bool reached() const = 0;
    /// Seconds from the last record of `earlier` to that of this event, on any streams of the device; negative when
    /// this one was first. Both come from Accelerator::make_timed_event and are reached. Throws DeviceError.
    [[nodiscard]] virtual double seconds_since(const Event& earlier) const = 0;
};

/// Work of a stream that was recorded once, to be issued again as a whole (a CUDA graph). Its operations keep their
/// arguments, so their memory must stay where it is. Owns its handle; may be destroyed while its work runs.
class Graph {
  public:
    virtual ~Graph() = default;
};

/// A queue of work of one device: its operations run in order, and beside those of other streams. All functions only
/// issue work and return; memory must stay valid until the work is complete. They throw DeviceError, which may also
/// report an earlier operation. Destroy a stream only when it is idle. Used by one thread at a time.
class Stream {
  public:
    virtual ~Stream() = default;
    virtual void record(Event& event) = 0;
    /// Later work of this stream begins after the last record of `event` that was issued before this call.
    virtual void wait(const Event& event) = 0;
    /// Whether all work is complete. Does not wait.
    [[nodiscard]] virtual bool idle() = 0;
    /// The cudaStream_t, for libraries that issue work of their own to this stream. Owned by the stream.
    [[nodiscard]] virtual void* native() const = 0;

    /// Host memory is pinned (Accelerator::allocate_pinned): it is read and written when the operation runs.
    virtual void upload(void* to, const void* pinned, std::size_t bytes) = 0;
    virtual void download(void* pinned, const void* from, std::size_t bytes) = 0;
    /// Within the memory of the device.
    virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
    virtual void fill_zero(void* memory, std::size_t bytes) = 0;
    /// Widens float16 or bfloat16 to float32 (`count` numbers), and back, rounded to nearest even.
    virtual void widen(float* to, const void* from, std::size_t count, base::DType from_type) = 0;
    virtual void narrow(void* to, base::DType to_type, const float* from, std::size_t count) = 0;
    /// to[i] += from[i].
    virtual void add(float* to, const float* from, std::size_t count) = 0;
    /// Doubles of device memory that clip needs; after it, the first one is the norm.
    static constexpr std::size_t clip_numbers = 1 + 256;
    /// Scales all numbers by min(1, most / (norm + 1e-6)); norm: their 2-norm, added in double in a fixed order.
    virtual void clip(float* values, std::size_t count, double most, double* numbers) = 0;

    /// Device memory, usable by this stream at once and by others after an event; nullptr for 0 bytes.
    [[nodiscard]] virtual void* allocate(std::size_t bytes) = 0;
    /// The memory may be used by this stream's earlier work until that is complete.
    virtual void release(void* memory) noexcept = 0;

    /// From here to the end of the recording, work that is issued to this stream does not run. Meanwhile this thread
    /// only issues work to it: it allocates, frees and asks nothing. Throws DeviceError when the device records
    /// nothing.
    virtual void begin_recording() = 0;
    /// Throws DeviceError when something could not be recorded. The recording has ended in any case.
    [[nodiscard]] virtual std::unique_ptr<Graph> end_recording() = 0;
    /// Ends a recording without a result; nothing to do without one.
    virtual void drop_recording() noexcept = 0;
    /// Issues the work of `graph`, which was recorded on a stream of the same device.
    virtual void launch(Graph& graph) = 0;
};

/// A GPU of this process. As a base::Device its copies are ordered after all work that was issued on its streams, and
/// complete when they return. Used by one thread at a time; lives until the process ends.
class Accelerator : public base::Device {
  public:
    [[nodiscard]] virtual const DeviceFacts& facts() const = 0;
    /// Frees memory of this device that somebody only keeps for later; returns whether there was some.
    using Freeing = std::function<bool()>;
    /// `cache` is called between attempts, and when memory is short; `idle` frees what takes long to make again, and is
    /// called only when memory is short. Both by the thread that uses the device, while the pointer lives.
    void add_cache(std::weak_ptr<const Freeing> cache) { caches_.push_back(std::move(cache)); }
    void add_idle(std::weak_ptr<const Freeing> idle) { idle_.push_back(std::move(idle)); }
    /// Calls what add_cache got, and gives back what this device's own pools keep; waits up to a second for work that
    /// still uses it.
    void free_caches() {
        static_cast<void>(call_all(caches_));
        trim();
    }
    /// Frees everything that is only kept for later; returns whether something of `idle` was. Every allocation without
    /// room does this, and is tried once more.
    bool relieve() {
        const bool any = call_all(idle_);
        free_caches();
        return any;
    }
    /// From now on, allocations beyond so many bytes at a time throw DeviceMemoryError: other processes share the GPU.
    /// Workspaces of libraries do not count. Call before the first allocation.
    virtual void limit_memory(std::uint64_t bytes) = 0;
    /// The two streams that gradient steps use: the trainable computes on the first, and groups reduce on the second.
    [[nodiscard]] virtual Stream& compute_stream() = 0;
    [[nodiscard]] virtual Stream& communication_stream() = 0;
    /// For samples that are uploaded while the other two work. This device's own copies use it, too.
    [[nodiscard]] virtual Stream& copy_stream() = 0;
    /// A stream of this device that another library owns, by its cudaStream_t; null: the default stream. It outlives
    /// the result.
    [[nodiscard]] virtual std::unique_ptr<Stream> borrow(void* native) = 0;
    [[nodiscard]] virtual std::unique_ptr<Event> make_event() = 0;
    /// One that keeps its time, which makes it slower.
    [[nodiscard]] virtual std::unique_ptr<Event> make_timed_event() = 0;
    /// Page-locked host memory, which must be freed before the process ends.
    [[nodiscard]] virtual std::shared_ptr<void> allocate_pinned(std::size_t bytes) = 0;
    /// The mathematics of networks, issued to `on`, a stream of this device.
    [[nodiscard]] virtual std::unique_ptr<Compute> make_compute(Stream& on) = 0;
    /// The arithmetic of compressed gradients, issued to `on`.
    [[nodiscard]] virtual std::unique_ptr<GradientKernels> make_gradient_kernels(Stream& on) = 0;
    /// Rank `rank` of `size` of the communicator `id`; `name` shows in NCCL's log. Starts only: it may be used when
    /// Communicator::settled() is true. Throws base::UsageError in a build without NCCL.
    [[nodiscard]] virtual std::unique_ptr<Communicator> make_communicator(const CommunicatorId& id, int size, int rank,
                                                                          const std::string& name) = 0;

  private:
    using Freeings = std::vector<std::weak_ptr<const Freeing>>;
    virtual void trim() noexcept = 0;
    static bool call_all(const Freeings& all) {
        bool any = false;
        for (const auto& one : all)
            if (const auto freeing = one.lock()) any = (*freeing)() || any;
        return any;
    }

    Freeings caches_;
    Freeings idle_;
};

/// The accelerator of a place, or nullptr for the host and for devices of tests.
[[nodiscard]] inline Accelerator* accelerator_of(const base::Place& place) {
    return place.is_host() ? nullptr : dynamic_cast<Accelerator*>(&place.device());
}

} // namespace ranktune::device
