// SPDX-License-Identifier: Apache-2.0
// The functions of libcudart.so.13 that libranktune-cuda imports, on the stand-in's machine. What they promise is from
// the CUDA Runtime API's documentation; what CUDA leaves open is decided against the caller.

#include <cuda_runtime_api.h>
#include <cxxabi.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "capture.hpp"
#include "failures.hpp"
#include "grid.hpp"
#include "machine.hpp"

namespace stand_in {
namespace {

constexpr int most_devices = 16;
std::atomic<bool> failed[most_devices];
thread_local int current_device = 0;

/// RANKTUNE_STAND_IN_STICKY=DEVICE:LAUNCH: that launch of a kernel on that device of the machine, counted from 1 in
/// this process, breaks the device.
bool breaks_device(int device) {
    static std::atomic<int> launches[most_devices];
    const int launch = ++launches[device];
    const std::string wanted = setting("STICKY", "");
    return !wanted.empty() && wanted == std::to_string(device) + ":" + std::to_string(launch);
}

thread_local cudaError_t last_error = cudaSuccess;

/// The numbers on the machine of the devices that this process sees.
std::vector<int> visible_devices() {
    const int count = std::min(std::stoi(setting("DEVICES", "4")), most_devices);
    std::vector<int> all;
    const char* const list = std::getenv("CUDA_VISIBLE_DEVICES");
    if (list == nullptr) {
        for (int i = 0; i < count; ++i) all.push_back(i);
        return all;
    }
    for (const char* at = list; *at != '\0';) {
        char* end = nullptr;
        const long number = std::strtol(at, &end, 10);
        if (end == at || number < 0 || number >= count) break; // CUDA ignores the rest of the list then
        all.push_back(static_cast<int>(number));
        at = *end == ',' ? end + 1 : end;
    }
    return all;
}

const std::vector<int>& devices() {
    static const std::vector<int> all = visible_devices();
    return all;
}

/// The sticky error of a device, or what `call` returns.
template <class Call>
cudaError_t on_device(int device, Call&& call) {
    if (has_failed(device)) return answer(cudaErrorIllegalAddress);
    try {
        return answer(call());
    } catch (const Fault& fault) {
        fail_device(device, fault.what());
        return answer(cudaErrorIllegalAddress);
    }
}

/// Name and text, as CUDA has them.
const std::map<cudaError_t, std::pair<const char*, const char*>>& error_texts() {
    static const std::map<cudaError_t, std::pair<const char*, const char*>> all{
        {cudaErrorIllegalAddress, {"cudaErrorIllegalAddress", "an illegal memory access was encountered"}},
        {cudaErrorMemoryAllocation, {"cudaErrorMemoryAllocation", "out of memory"}},
        {cudaErrorStreamCaptureUnsupported,
         {"cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"}},
        {cudaErrorStreamCaptureInvalidated,
         {"cudaErrorStreamCaptureInvalidated", "operation failed due to a previous error during capture"}},
        {cudaErrorStreamCaptureUnjoined, {"cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"}},
        {cudaErrorStreamCaptureIsolation,
         {"cudaErrorStreamCaptureIsolation", "dependency created on uncaptured work in another stream"}},
        {cudaErrorCapturedEvent,
         {"cudaErrorCapturedEvent", "operation not permitted on an event last recorded in a capturing stream"}}};
    return all;
}

/// The default stream of a device, as CUDA has it beside streams that do not synchronise with it: one more stream.
Stream* default_stream(int device) {
    static std::mutex mutex;
    static std::map<int, Stream*> all;
    const std::lock_guard lock(mutex);
    Stream*& stream = all[device];
    if (stream == nullptr) stream = make_stream(device);
    return stream;
}

Stream* native(cudaStream_t stream) {
    if (stream != nullptr) return reinterpret_cast<Stream*>(stream);
    if (setting("DEFAULT_STREAM", "") == "1")
        return default_stream(devices()[static_cast<std::size_t>(current_device)]);
    std::fprintf(stderr, "stand-in: the default stream is used without RANKTUNE_STAND_IN_DEFAULT_STREAM=1\n");
    std::abort();
}

// ---- pinned memory ----

/// Copies keep it until they have run, so that they find out that it was freed.
struct PinnedBlock {
    explicit PinnedBlock(std::size_t size)
        : bytes(size), memory(static_cast<std::byte*>(std::aligned_alloc(4096, (size + 4095) / 4096 * 4096))) {
        poison();
    }
    ~PinnedBlock() { std::free(memory); }
    PinnedBlock(const PinnedBlock&) = delete;
    PinnedBlock& operator=(const PinnedBlock&) = delete;
    void poison() const { std::memset(memory, 0xFF, bytes); }

    const std::size_t bytes;
    std::byte* const memory;
    std::atomic<bool> freed{false};
};

struct Pinned {
    std::mutex mutex;
    std::map<const std::byte*, std::shared_ptr<PinnedBlock>> blocks;
    std::size_t used = 0;
    /// The block that holds these bytes; null: they are pageable.
    std::shared_ptr<PinnedBlock> find(const void* address, std::size_t bytes) {
        const auto* const at = static_cast<const std::byte*>(address);
        const std::lock_guard lock(mutex);
        const auto next = blocks.upper_bound(at);
        if (next == blocks.begin()) return nullptr;
        const auto& [begin, block] = *std::prev(next);
        return at + bytes <= begin + block->bytes ? block : nullptr;
    }
};
Pinned& pinned() {
    static auto* const all = new Pinned;
    return *all;
}

// ---- events ----

/// One record of an event; waits refer to it, whatever is recorded later.
struct Record {
    std::mutex mutex;
    std::condition_variable changed;
    bool reached = false;
    std::chrono::steady_clock::time_point at; ///< when it was reached
    void reach() {
        {
            const std::lock_guard lock(mutex);
            reached = true;
            at = std::chrono::steady_clock::now();
        }
        changed.notify_all();
    }
};
struct EventState {
    std::shared_ptr<Record> last;           ///< empty: never recorded, counts as reached
    std::optional<CapturedRecord> captured; ///< the last record was in a capture
    bool timed = false;
};
EventState* native(cudaEvent_t event) { return reinterpret_cast<EventState*>(event); }

// ---- kernels ----

struct Kernel {
    std::string name; ///< with namespaces, without parameters
};
std::map<std::string, BoundKernel (*)(void**, const std::string&)>& host_forms() {
    static auto* const all = new std::map<std::string, BoundKernel (*)(void**, const std::string&)>;
    return *all;
}
std::map<const void*, Kernel*>& kernels() {
    static auto* const all = new std::map<const void*, Kernel*>;
    return *all;
}

std::string demangled(const char* name) {
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                           &std::free);
    const std::string whole = status == 0 ? text.get() : name;
    constexpr std::string_view result = "void "; // that of a template is part of its name
    const std::size_t begin = whole.starts_with(result) ? result.size() : 0;
    return whole.substr(begin, whole.find('(') - begin);
}

struct Configuration {
    dim3 grid;
    dim3 block;
    std::size_t shared = 0;
    void* stream = nullptr;
};
thread_local Configuration configuration;

} // namespace

void add_kernel(const std::string& name, BoundKernel (*bind)(void**, const std::string&)) { host_forms()[name] = bind; }

void fail_device(int device, const std::string& why) {
    if (failed[device].exchange(true)) return;
    std::fprintf(stderr, "stand-in: device %d failed: %s\n", device, why.c_str());
}
bool has_failed(int device) { return failed[device]; }
int device_in_use() { return devices()[static_cast<std::size_t>(current_device)]; }

/// Also after cudaErrorNotReady: whether a query leaves it behind depends on the version of CUDA.
cudaError_t answer(cudaError_t code) {
    if (code != cudaSuccess) last_error = code;
    return code;
}

} // namespace stand_in

using namespace stand_in;

extern "C" {

// ---- what nvcc's host code calls ----

void** __cudaRegisterFatBinary(void* binary) {
    static void* handle[1];
    handle[0] = binary;
    return handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char* stub, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
    kernels()[stub] = new Kernel{demangled(name)};
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
    *kernel = reinterpret_cast<cudaKernel_t>(kernels().at(stub));
    return cudaSuccess;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, void* stream) {
    configuration = {grid, block, shared, stream};
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
    *grid = configuration.grid;
    *block = configuration.block;
    *shared = configuration.shared;
    *static_cast<void**>(stream) = configuration.stream;
    return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t handle, dim3 grid, dim3 block, void** arguments, std::size_t,
                               cudaStream_t stream) {
    Stream* const on = native(stream);
    const int device = device_of(on);
    if (device != devices()[static_cast<std::size_t>(current_device)]) return answer(cudaErrorInvalidResourceHandle);
    const Kernel& kernel = *reinterpret_cast<Kernel*>(handle);
    const auto form = host_forms().find(kernel.name);
    if (form == host_forms().end()) {
        std::fprintf(stderr, "stand-in: no host form of the kernel %s (host_kernels.cpp)\n", kernel.name.c_str());
        return answer(cudaErrorInvalidDeviceFunction);
    }
    if (block.x * block.y * block.z > 1024 || grid.x == 0) return answer(cudaErrorInvalidConfiguration);
    return on_device(device, [&] {
        enqueue(
            on, kernel.name,
            [=, bound = form->second(arguments, kernel.name)] {
                static std::atomic<unsigned> runs{0};
                run_grid({grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, bound(device), ++runs * 2654435761U);
            },
            [device] {
                if (breaks_device(device)) throw Fault("RANKTUNE_STAND_IN_STICKY");
            });
        return cudaSuccess;
    });
}

// ---- devices ----

cudaError_t cudaGetDeviceCount(int* count) {
    *count = static_cast<int>(devices().size());
    return *count == 0 ? answer(cudaErrorNoDevice) : cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
    if (device < 0 || device >= static_cast<int>(devices().size())) return answer(cudaErrorInvalidDevice);
    current_device = device;
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    *properties = {};
    std::snprintf(properties->name, sizeof properties->name, "stand-in (no GPU)");
    properties->totalGlobalMem = capacity();
    const std::string capability = setting("CAPABILITY", "8.0");
    properties->major = std::stoi(capability);
    properties->minor = std::stoi(capability.substr(capability.find('.') + 1));
    for (int i = 0; i < 16; ++i) properties->uuid.bytes[i] = static_cast<char>(i);
    properties->uuid.bytes[0] = static_cast<char>(devices()[static_cast<std::size_t>(device)]);
    return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
    std::snprintf(text, static_cast<std::size_t>(length), "0000:%02X:00.0",
                  static_cast<unsigned>(devices()[static_cast<std::size_t>(device)]));
    return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 13000, cudaSuccess; }

// ---- errors ----

cudaError_t cudaGetLastError() {
    const cudaError_t code = last_error;
    last_error = has_failed(devices().empty() ? 0 : devices()[static_cast<std::size_t>(current_device)])
                     ? cudaErrorIllegalAddress
                     : cudaSuccess;
    return code;
}
const char* cudaGetErrorName(cudaError_t code) {
    const auto known = error_texts().find(code);
    return known != error_texts().end() ? known->second.first : "an error of the stand-in";
}
const char* cudaGetErrorString(cudaError_t code) {
    const auto known = error_texts().find(code);
    return known != error_texts().end() ? known->second.second : "see its name";
}

// ---- memory ----

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
    if (forbidden_by_capture()) return answer(cudaErrorStreamCaptureUnsupported);
    const int device = devices()[static_cast<std::size_t>(current_device)];
    return on_device(device, [&] {
        *memory = reserve(device, bytes, true);
        return *memory != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
    });
}
/// CUDA may wait for the device's work here, but does not promise it: this one does not.
cudaError_t cudaFree(void* memory) {
    if (forbidden_by_capture()) return answer(cudaErrorStreamCaptureUnsupported);
    const int device = devices()[static_cast<std::size_t>(current_device)];
    return on_device(device, [&] {
        if (memory != nullptr) take_back(memory);
        return cudaSuccess;
    });
}
cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t stream) {
    Stream* const on = native(stream);
    if (is_captured(on)) return answer(break_capture(on, cudaErrorStreamCaptureUnsupported));
    return on_device(device_of(on), [&] {
        *memory = reserve(device_of(on), bytes, false);
        if (*memory == nullptr) return cudaErrorMemoryAllocation;
        enqueue(on, "cudaMallocAsync", [address = *memory] { give(address); });
        return cudaSuccess;
    });
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
    Stream* const on = native(stream);
    if (is_captured(on)) return answer(break_capture(on, cudaErrorStreamCaptureUnsupported));
    return on_device(device_of(on), [&] {
        enqueue(on, "cudaFreeAsync", [memory] { take_back(memory); });
        return cudaSuccess;
    });
}
/// It has one pool, named by the device.
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
    *pool = reinterpret_cast<cudaMemPool_t>(static_cast<std::uintptr_t>(devices()[static_cast<std::size_t>(device)]));
    return cudaSuccess;
}
/// CUDA trims by itself when a stream, an event or a device is synchronised: the module never does that.
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t kept) {
    if (kept != 0) return answer(cudaErrorInvalidValue);
    trim_pool(static_cast<int>(reinterpret_cast<std::uintptr_t>(pool)));
    return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
    if (forbidden_by_capture()) return answer(cudaErrorStreamCaptureUnsupported);
    const std::lock_guard lock(pinned().mutex);
    if (pinned().used + bytes > std::stoull(setting("PINNED", "2097152")) << 10U)
        return answer(cudaErrorMemoryAllocation);
    const auto block = std::make_shared<PinnedBlock>(bytes);
    pinned().used += bytes;
    pinned().blocks[block->memory] = block;
    *memory = block->memory;
    return cudaSuccess;
}
/// CUDA may wait for copies here, but does not promise to.
cudaError_t cudaFreeHost(void* memory) {
    if (forbidden_by_capture()) return answer(cudaErrorStreamCaptureUnsupported);
    const std::lock_guard lock(pinned().mutex);
    const auto found = pinned().blocks.find(static_cast<std::byte*>(memory));
    if (found == pinned().blocks.end()) return answer(cudaErrorInvalidValue);
    found->second->freed = true;
    found->second->poison();
    pinned().used -= found->second->bytes;
    pinned().blocks.erase(found);
    return cudaSuccess;
}

/// Pinned sources are read when the copy runs, pageable ones now. Pinned destinations are undefined until then; a copy
/// to pageable memory has run when this returns. Captures take no pageable memory.
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    Stream* const on = native(stream);
    const int device = device_of(on);
    return on_device(device, [&] {
        const bool on_host = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToHost;
        const auto block = on_host ? pinned().find(kind == cudaMemcpyHostToDevice ? from : to, bytes) : nullptr;
        if (on_host && is_captured(on) && !block) return break_capture(on, cudaErrorStreamCaptureUnsupported);
        const auto require_block = [block] { // before the copy, and after it
            if (block && block->freed) throw Fault("pinned memory was freed before a copy had used it");
        };
        if (kind == cudaMemcpyHostToDevice) {
            std::shared_ptr<std::vector<std::byte>> copy;
            if (!block) {
                const auto* const begin = static_cast<const std::byte*>(from);
                copy = std::make_shared<std::vector<std::byte>>(begin, begin + bytes);
            }
            enqueue(on, "cudaMemcpyAsync to the device", [=] {
                require_block();
                std::memcpy(contents(to, bytes, device, "the copy"), copy ? copy->data() : from, bytes);
                require_block();
            });
            return cudaSuccess;
        }
        if (kind == cudaMemcpyDeviceToDevice) {
            enqueue(on, "cudaMemcpyAsync within the device", [=] {
                std::memcpy(contents(to, bytes, device, "the copy"), contents(from, bytes, device, "the copy"), bytes);
            });
            return cudaSuccess;
        }
        if (kind != cudaMemcpyDeviceToHost) return cudaErrorInvalidMemcpyDirection;
        enqueue(
            on, "cudaMemcpyAsync to the host",
            [=] {
                require_block();
                std::memcpy(to, contents(from, bytes, device, "the copy"), bytes);
                require_block();
            },
            [=] {
                if (block) std::memset(to, 0xFF, bytes);
            });
        if (!block) drain(on);
        return cudaSuccess;
    });
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
    Stream* const on = native(stream);
    const int device = device_of(on);
    return on_device(device, [&] {
        enqueue(on, "cudaMemsetAsync", [=] { std::memset(contents(memory, bytes, device, "the call"), value, bytes); });
        return cudaSuccess;
    });
}

// ---- streams and events ----

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
    if (flags != cudaStreamNonBlocking) return answer(cudaErrorInvalidValue);
    *stream = reinterpret_cast<cudaStream_t>(make_stream(devices()[static_cast<std::size_t>(current_device)]));
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    destroy(native(stream));
    return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
    Stream* const on = native(stream);
    if (is_captured(on)) return answer(break_capture(on, cudaErrorStreamCaptureUnsupported));
    const bool idle = is_idle(on); // asked first: an operation that fails has done so before its stream is idle
    return on_device(device_of(on), [&] { return idle ? cudaSuccess : cudaErrorNotReady; });
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
    *event = reinterpret_cast<cudaEvent_t>(new EventState{{}, {}, (flags & cudaEventDisableTiming) == 0});
    return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
    if (!native(begin)->timed || !native(end)->timed || !native(begin)->last || !native(end)->last)
        return answer(cudaErrorInvalidResourceHandle);
    std::chrono::steady_clock::time_point at[2];
    for (const auto& [event, time] : {std::pair{begin, &at[0]}, std::pair{end, &at[1]}}) {
        const auto record = native(event)->last;
        const std::lock_guard lock(record->mutex);
        if (!record->reached) return answer(cudaErrorNotReady);
        *time = record->at;
    }
    *milliseconds = std::chrono::duration<float, std::milli>(at[1] - at[0]).count();
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete native(event);
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    Stream* const on = native(stream);
    return on_device(device_of(on), [&] {
        native(event)->captured.reset();
        if (is_captured(on)) {
            native(event)->captured = record_in_capture(on);
            return cudaSuccess;
        }
        const auto record = std::make_shared<Record>();
        native(event)->last = record;
        enqueue(on, "cudaEventRecord", [record] { record->reach(); });
        return cudaSuccess;
    });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
    if (forbidden_by_capture()) return answer(cudaErrorStreamCaptureUnsupported);
    if (native(event)->captured) return answer(cudaErrorCapturedEvent);
    const int device = devices()[static_cast<std::size_t>(current_device)];
    return on_device(device, [&] {
        const auto record = native(event)->last;
        if (!record) return cudaSuccess;
        const std::lock_guard lock(record->mutex);
        return record->reached ? cudaSuccess : cudaErrorNotReady;
    });
}
/// Waits for the last record before this call; later ones do not count. In a capture it becomes an edge of the graph.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    Stream* const on = native(stream);
    return on_device(device_of(on), [&] {
        if (native(event)->captured) return wait_in_capture(on, *native(event)->captured);
        const auto record = native(event)->last;
        if (!record) return cudaSuccess;
        if (is_captured(on)) return wait_in_capture(on, {});
        enqueue(on, "cudaStreamWaitEvent", [record, device = device_of(on)] {
            std::unique_lock lock(record->mutex);
            while (!record->reached && !has_failed(device))
                record->changed.wait_for(lock, std::chrono::milliseconds(5));
        });
        return cudaSuccess;
    });
}
}
