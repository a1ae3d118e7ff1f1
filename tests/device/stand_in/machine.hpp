// SPDX-License-Identifier: Apache-2.0
#pragma once
// The stand-in's machine: device memory, streams and faults, behind the stand-ins for cudart, cuBLAS and NCCL. The
// rules are in README.md.

#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

namespace stand_in {

/// A mistake of the code under test. On a stream it makes the device answer every later call with an error.
class Fault : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// ---- memory ----

/// Memory of device `device`, at an address that the host cannot access. `live`: at once, filled with NaN; otherwise
/// from `give` on, and of the pool, to which it returns. nullptr: the device has no room.
void* reserve(int device, std::size_t bytes, bool live);
void give(void* memory);
/// Throws Fault for anything but the beginning of live memory.
void take_back(void* memory);
/// What the pool keeps is free again.
void trim_pool(int device);
/// The device of the machine that is current on this thread.
[[nodiscard]] int device_in_use();
/// Where the stand-in itself finds the contents. Throws Fault unless all of it is live memory of `device`. `bytes` 0:
/// only the address is checked.
[[nodiscard]] std::byte* contents(const void* memory, std::size_t bytes, int device, const std::string& user);
[[nodiscard]] std::size_t live_allocations();
/// Bytes of a device; RANKTUNE_STAND_IN_MEMORY: KiB.
[[nodiscard]] std::size_t capacity();

// ---- streams ----

struct Stream;
[[nodiscard]] Stream* make_stream(int device);
/// After its work.
void destroy(Stream* stream);
/// `work` runs on the stream's thread, after a random delay, unless the device has failed. `issue` (may be empty) runs
/// on the calling thread when the work is issued. A stream that is captured keeps both for its graph instead.
void enqueue(Stream* stream, const std::string& name, std::function<void()> work, std::function<void()> issue = {});
[[nodiscard]] int device_of(const Stream* stream);
[[nodiscard]] bool is_captured(const Stream* stream);
[[nodiscard]] bool is_idle(const Stream* stream);
void drain(const Stream* stream);
/// Grows whenever an operation is issued or ends. If it stands still, all that is left waits for ever.
[[nodiscard]] unsigned long long progress();

// ---- settings, from the environment ----

/// RANKTUNE_STAND_IN_`name`, read at every call; `otherwise` when it is not set.
[[nodiscard]] std::string setting(const char* name, const char* otherwise);
/// RANKTUNE_STAND_IN_TAKES=NAME:MICROSECONDS,...: how much longer the operation `name` takes than it does.
[[nodiscard]] unsigned extra_time(const std::string& name);
/// Microseconds by which something is late: often none. Seeded by RANKTUNE_STAND_IN_SEED and the number of the caller.
class Delays {
  public:
    explicit Delays(unsigned number);
    [[nodiscard]] unsigned next();
    /// Any number.
    [[nodiscard]] unsigned chance();

  private:
    unsigned long long state_;
    unsigned most_;
};

// ---- kernels ----

/// A kernel's arguments, copied at launch; a call runs one thread of the grid.
using BoundKernel = std::function<std::function<void()>(int device)>;
/// The host form of a kernel: copies arguments. `name`: with its namespaces, without parameters.
void add_kernel(const std::string& name, BoundKernel (*bind)(void** arguments, const std::string& name));

} // namespace stand_in
