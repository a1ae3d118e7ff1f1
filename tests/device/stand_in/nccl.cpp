// SPDX-License-Identifier: Apache-2.0
// The functions of libnccl.so.2 that libranktune-cuda imports. Ranks are processes of one node, or threads: they share
// memory that the maker of the id owns, and open it through its entry in /proc, so that nothing is left behind.

#include <fcntl.h>
#include <nccl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "machine.hpp"
#include "ranktune/base/half.hpp"

using namespace stand_in;

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t chunk = 65536; ///< bytes of a rank that are summed at a time
constexpr std::size_t most_ranks = 64;

/// At the beginning of the shared memory; the chunks of the ranks follow.
struct Meeting {
    std::atomic<int> joined{0};
    std::atomic<unsigned long long> arrived{0}; ///< at all barriers together
    std::atomic<unsigned long long> counts[most_ranks];
};
struct Id {
    char magic[16];
    pid_t process;
    int file;
    unsigned long long number; ///< the same file number may be used again
};
constexpr char magic_text[16] = "stand-in, no id";

/// What RANKTUNE_STAND_IN_NCCL, "RANK:CALL:WHAT", says of that call of that rank.
std::string fault_of(int rank, const std::string& call) {
    const std::string text = setting("NCCL", "");
    const std::string wanted = std::to_string(rank) + ":" + call + ":";
    return text.starts_with(wanted) ? text.substr(wanted.size()) : "";
}
/// The CALL-th operation of a rank in this process, from 1, or "next": every one. 0: forming the communicator.
std::string fault_of(int rank, unsigned long call) {
    const std::string fault = fault_of(rank, std::to_string(call));
    return fault.empty() && call > 0 ? fault_of(rank, "next") : fault;
}
std::atomic<unsigned long> calls_of[most_ranks];
std::atomic<unsigned long> sent_bytes{0}; ///< by all ranks of this process; of a sum what any algorithm has to send
std::atomic<const char*> last_warning{""};

} // namespace

struct ncclComm {
    int rank = 0;
    int size = 0;
    Id id{};
    std::shared_ptr<std::byte> memory; ///< Meeting and chunks
    std::atomic<bool> aborted{false};
    std::atomic<ncclResult_t> state{ncclInProgress};
    std::atomic<Clock::time_point> settles{Clock::now()}; ///< until then a call is "in progress"
    Delays delays{0};
    unsigned long long barriers = 0; ///< passed; of the stream's thread
    bool finalized = false;
    std::thread forming;
    std::shared_ptr<void> buffers; ///< of the device

    [[nodiscard]] Meeting& meeting() const { return *reinterpret_cast<Meeting*>(memory.get()); }
    [[nodiscard]] std::byte* chunk_of(int r) const {
        return memory.get() + (sizeof(Meeting) + 63) / 64 * 64 + static_cast<std::size_t>(r) * chunk;
    }
    [[nodiscard]] bool in_progress() const { return state == ncclInProgress || Clock::now() < settles.load(); }
    void settle_later() { settles = Clock::now() + std::chrono::microseconds(delays.next()); }
    bool take_buffers();
    bool barrier();
    void form();
    bool agree(unsigned long long what, std::size_t bytes);
    void sum(std::byte* values, std::size_t bytes, ncclDataType_t type);
    /// What does not complete until this rank aborts it.
    void hang();
    void exchange(const std::byte* parts, std::byte* to, std::size_t bytes);
    void gather(const std::byte* mine, std::byte* to, std::size_t bytes);
    void broadcast(std::byte* values, std::size_t bytes);
};

namespace {

std::shared_ptr<ncclComm>& shared(ncclComm_t communicator) {
    return *reinterpret_cast<std::shared_ptr<ncclComm>*>(communicator);
}

using Brain = ranktune::base::BFloat16;
Brain operator+(Brain a, Brain b) { return Brain(static_cast<float>(a) + static_cast<float>(b)); }

/// Calls `body` with a number of the C++ type.
template <class Body>
void with_type(ncclDataType_t type, Body&& body) {
    if (type == ncclFloat64) return body(double{});
    type == ncclBfloat16 ? body(Brain{}) : body(float{});
}

/// Every addition rounds.
template <class Number>
void add_ranks(const ncclComm& all, std::byte* to, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes / sizeof(Number); ++i) {
        auto sum = reinterpret_cast<const Number*>(all.chunk_of(0))[i];
        for (int r = 1; r < all.size; ++r) sum = Number(sum + reinterpret_cast<const Number*>(all.chunk_of(r))[i]);
        reinterpret_cast<Number*>(to)[i] = sum;
    }
}

} // namespace

/// RANKTUNE_STAND_IN_NCCL_MEMORY: KiB of its device that a communicator takes (0). False: the device has no room.
bool ncclComm::take_buffers() {
    const std::size_t bytes = std::stoull(setting("NCCL_MEMORY", "0")) << 10U;
    if (bytes == 0) return true;
    buffers = {reserve(device_in_use(), bytes, true), [](void* taken) {
                   if (taken != nullptr) take_back(taken);
               }};
    if (buffers == nullptr) last_warning = "Cuda failure 2 'out of memory'";
    return buffers != nullptr;
}

/// False: aborted meanwhile.
bool ncclComm::barrier() {
    ++barriers;
    meeting().arrived.fetch_add(1);
    while (meeting().arrived.load() < barriers * static_cast<unsigned long long>(size)) {
        if (aborted) return false;
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    return true;
}

void ncclComm::form() {
    const std::string name = "/proc/" + std::to_string(id.process) + "/fd/" + std::to_string(id.file);
    const int file = open(name.c_str(), O_RDWR | O_CLOEXEC);
    const std::size_t bytes = (sizeof(Meeting) + 63) / 64 * 64 + static_cast<std::size_t>(size) * chunk;
    if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) {
        if (file >= 0) close(file);
        state = ncclSystemError;
        return;
    }
    void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    memory = {static_cast<std::byte*>(mapped), [bytes](std::byte* all) { munmap(all, bytes); }};
    meeting().joined.fetch_add(1);
    while (meeting().joined.load() < size) {
        if (aborted) return;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    if (getpid() == id.process && rank == 0) close(id.file); // all have opened it
    state = ncclSuccess;
}

/// All ranks are in the same operation. False: aborted meanwhile.
bool ncclComm::agree(unsigned long long what, std::size_t bytes) {
    meeting().counts[rank] = bytes * 4 + what;
    if (!barrier()) return false;
    for (int r = 0; r < size; ++r)
        if (meeting().counts[r] != bytes * 4 + what)
            throw Fault("the ranks of a communicator are in different operations, or sum different numbers of values");
    return true;
}

/// "RANK:now:async": what hangs at this moment gets an error of another rank.
void ncclComm::hang() {
    while (!aborted) {
        if (fault_of(rank, "now") == "async") state = ncclRemoteError;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
}

/// On the stream's thread. In the order of ranks, so that all compute the same.
void ncclComm::sum(std::byte* values, std::size_t bytes, ncclDataType_t type) {
    if (!agree(0, bytes)) return;
    sent_bytes += 2 * bytes * static_cast<std::size_t>(size - 1) / static_cast<std::size_t>(size);
    for (std::size_t done = 0; done < bytes; done += chunk) {
        const std::size_t part = std::min(bytes - done, chunk);
        std::memcpy(chunk_of(rank), values + done, part);
        if (!barrier()) return;
        with_type(type, [&]<class Number>(Number) { add_ranks<Number>(*this, values + done, part); });
        if (!barrier()) return;
    }
    static_cast<void>(barrier()); // nobody writes the next count before all have read this one
}

/// A chunk has a piece for every rank.
void ncclComm::exchange(const std::byte* parts, std::byte* to, std::size_t bytes) {
    if (!agree(1, bytes)) return;
    sent_bytes += bytes * static_cast<std::size_t>(size - 1);
    const std::size_t most = chunk / static_cast<std::size_t>(size);
    const auto place = [&](int from, int for_rank) {
        return chunk_of(from) + static_cast<std::size_t>(for_rank) * most;
    };
    for (std::size_t done = 0; done < bytes; done += most) {
        const std::size_t piece = std::min(bytes - done, most);
        for (int r = 0; r < size; ++r)
            std::memcpy(place(rank, r), parts + static_cast<std::size_t>(r) * bytes + done, piece);
        if (!barrier()) return;
        for (int r = 0; r < size; ++r)
            std::memcpy(to + static_cast<std::size_t>(r) * bytes + done, place(r, rank), piece);
        if (!barrier()) return;
    }
    static_cast<void>(barrier());
}

void ncclComm::gather(const std::byte* mine, std::byte* to, std::size_t bytes) {
    if (!agree(2, bytes)) return;
    sent_bytes += bytes * static_cast<std::size_t>(size - 1);
    for (std::size_t done = 0; done < bytes; done += chunk) {
        const std::size_t piece = std::min(bytes - done, chunk);
        std::memcpy(chunk_of(rank), mine + done, piece);
        if (!barrier()) return;
        for (int r = 0; r < size; ++r) std::memcpy(to + static_cast<std::size_t>(r) * bytes + done, chunk_of(r), piece);
        if (!barrier()) return;
    }
    static_cast<void>(barrier());
}

void ncclComm::broadcast(std::byte* values, std::size_t bytes) {
    if (!agree(3, bytes)) return;
    if (rank == 0) sent_bytes += bytes;
    for (std::size_t done = 0; done < bytes; done += chunk) {
        const std::size_t part = std::min(bytes - done, chunk);
        if (rank == 0) std::memcpy(chunk_of(0), values + done, part);
        if (!barrier()) return;
        if (rank != 0) std::memcpy(values + done, chunk_of(0), part);
        if (!barrier()) return;
    }
    static_cast<void>(barrier());
}

namespace {

/// The calls of an exchange of equal parts, the only group here.
struct Exchange {
    ncclComm_t communicator = nullptr;
    cudaStream_t stream = nullptr;
    std::size_t bytes = 0;
    const std::byte* parts = nullptr; ///< of rank 0
    std::byte* to = nullptr;
    int sends = 0;
    int receives = 0;
    /// Whether the next call is what an exchange of equal parts, rank by rank, would call.
    bool takes(ncclComm_t c, cudaStream_t s, std::size_t count, ncclDataType_t type, int peer, int number) {
        if (communicator == nullptr) communicator = c, stream = s, bytes = count;
        return c == communicator && s == stream && count == bytes && type == ncclInt8 && peer == number;
    }
};
/// What a thread has called since ncclGroupStart.
struct Group {
    ~Group() { require_closed("the end of a thread"); }
    /// NCCL would put off whatever a thread calls in a group that it has forgotten to end.
    void require_closed(const char* call) const {
        if (!open) return;
        std::fprintf(stderr, "stand-in: %s between ncclGroupStart and ncclGroupEnd\n", call);
        std::abort();
    }
    bool open = false;
    Exchange calls;
};
thread_local Group group;

/// Checks, counts and issues an operation.
template <class Work>
ncclResult_t issue(const char* name, ncclComm_t communicator, cudaStream_t stream, Work&& work) {
    auto* const on = reinterpret_cast<Stream*>(stream);
    if (is_captured(on)) return ncclInvalidUsage; // the module captures no sums
    group.require_closed(name);
    const auto all = shared(communicator);
    if (all->in_progress() || all->state != ncclSuccess || all->finalized) {
        std::fprintf(stderr, "stand-in: %s before the communicator has settled\n", name);
        return ncclInvalidUsage;
    }
    const std::string fault = fault_of(all->rank, ++calls_of[all->rank]);
    if (fault == "fail") return ncclSystemError;
    if (fault == "async") all->state = ncclRemoteError;
    enqueue(on, name, [all, fault, work, device = device_of(on)] {
        if (fault == "hang" || fault == "async") all->hang();
        if (!all->aborted) work(*all, device, fault == "wrong");
    });
    all->settle_later();
    return ncclInProgress;
}

} // namespace

extern "C" {

unsigned long stand_in_sent_bytes() { return sent_bytes; }

ncclResult_t ncclGetVersion(int* version) { return *version = NCCL_VERSION_CODE, ncclSuccess; }
const char* ncclGetErrorString(ncclResult_t result) {
    return result == ncclRemoteError          ? "remote process exited or there was a network error"
           : result == ncclSystemError        ? "unhandled system error"
           : result == ncclUnhandledCudaError ? "unhandled cuda error"
                                              : "an error of the stand-in";
}

/// The text of the last warning in this process.
const char* ncclGetLastError(ncclComm_t) { return last_warning.load(); }

ncclResult_t ncclGetUniqueId(ncclUniqueId* result) {
    group.require_closed("ncclGetUniqueId");
    static std::atomic<unsigned long long> number{0};
    Id id{};
    std::memcpy(id.magic, magic_text, sizeof id.magic);
    id.process = getpid();
    id.file = memfd_create("stand-in", MFD_CLOEXEC);
    id.number = ++number;
    if (id.file < 0) return ncclSystemError;
    *result = {};
    std::memcpy(result, &id, sizeof id);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
    group.require_closed("ncclCommInitRankConfig");
    auto made = std::make_shared<ncclComm>();
    std::memcpy(&made->id, &id, sizeof made->id);
    if (std::memcmp(made->id.magic, magic_text, sizeof magic_text) != 0 || rank < 0 || rank >= size ||
        size > static_cast<int>(most_ranks) || config == nullptr || config->blocking != 0)
        return ncclInvalidArgument;
    made->rank = rank;
    made->size = size;
    made->delays = Delays(static_cast<unsigned>(100 + rank));
    const bool room = made->take_buffers();
    const std::string fault = fault_of(rank, 0);
    if (fault == "fail") return ncclSystemError;
    if (fault == "async") made->state = ncclRemoteError;
    made->settle_later();
    if (!room)
        made->state = ncclUnhandledCudaError; // found by the thread that forms it
    else if (fault.empty())
        made->forming = std::thread([all = made.get()] { all->form(); });
    *communicator = reinterpret_cast<ncclComm_t>(new std::shared_ptr<ncclComm>(made));
    return made->state == ncclRemoteError ? ncclRemoteError : ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* state) {
    group.require_closed("ncclCommGetAsyncError");
    const auto& all = shared(communicator);
    *state = all->in_progress() ? ncclInProgress : all->state.load();
    return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t communicator, cudaStream_t stream) {
    const bool known = type == ncclFloat32 || type == ncclFloat64 || type == ncclBfloat16;
    if (from != to || operation != ncclSum || !known) return ncclInvalidArgument;
    std::size_t bytes = 0;
    with_type(type, [&]<class Number>(Number) { bytes = count * sizeof(Number); });
    return issue("ncclAllReduce", communicator, stream, [=](ncclComm& all, int device, bool wrong) {
        std::byte* const values = contents(to, bytes, device, "ncclAllReduce");
        all.sum(values, bytes, type);
        if (!wrong) return;
        with_type(type, [&]<class Number>(Number) {
            auto& first = *reinterpret_cast<Number*>(values);
            first = Number(first + Number(1.0F));
        });
    });
}

ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclComm_t communicator,
                           cudaStream_t stream) {
    if (type != ncclInt8) return ncclInvalidArgument;
    return issue("ncclAllGather", communicator, stream, [=](ncclComm& all, int device, bool) {
        all.gather(contents(from, count, device, "ncclAllGather"),
                   contents(to, count * static_cast<std::size_t>(all.size), device, "ncclAllGather"), count);
    });
}

ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t communicator, cudaStream_t stream) {
    if (from != to || type != ncclInt8 || root != 0) return ncclInvalidArgument;
    return issue("ncclBroadcast", communicator, stream, [=](ncclComm& all, int device, bool) {
        all.broadcast(contents(to, count, device, "ncclBroadcast"), count);
    });
}

ncclResult_t ncclGroupStart() {
    group.require_closed("ncclGroupStart");
    group.open = true;
    return ncclSuccess;
}
ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
    const auto* const part = static_cast<const std::byte*>(from);
    if (!group.open || !group.calls.takes(communicator, stream, count, type, peer, group.calls.sends))
        return ncclInvalidArgument;
    if (peer == 0) group.calls.parts = part;
    if (part != group.calls.parts + static_cast<std::size_t>(peer) * count) return ncclInvalidArgument;
    const auto& all = shared(communicator);
    if (peer + 1 == all->size && fault_of(all->rank, calls_of[all->rank] + 1) == "send") return ncclSystemError;
    ++group.calls.sends;
    return ncclSuccess;
}
ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
    auto* const part = static_cast<std::byte*>(to);
    if (!group.open || !group.calls.takes(communicator, stream, count, type, peer, group.calls.receives))
        return ncclInvalidArgument;
    if (peer == 0) group.calls.to = part;
    if (part != group.calls.to + static_cast<std::size_t>(peer) * count) return ncclInvalidArgument;
    ++group.calls.receives;
    return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
    const auto done = std::exchange(group.calls, {});
    if (!std::exchange(group.open, false) || done.communicator == nullptr) return ncclInvalidUsage;
    const int size = shared(done.communicator)->size;
    if (done.sends != size || done.receives != size) return ncclInvalidUsage;
    return issue("ncclSend and ncclRecv", done.communicator, done.stream, [done](ncclComm& all, int device, bool) {
        const std::size_t bytes = done.bytes * static_cast<std::size_t>(all.size);
        all.exchange(contents(done.parts, bytes, device, "ncclSend"), contents(done.to, bytes, device, "ncclRecv"),
                     done.bytes);
    });
}

ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
    group.require_closed("ncclCommFinalize");
    const auto& all = shared(communicator);
    if (all->in_progress() || all->finalized) return ncclInvalidUsage;
    all->finalized = true;
    all->settle_later();
    return ncclInProgress;
}

static void end_communicator(ncclComm_t communicator) {
    auto* const all = &shared(communicator);
    if ((*all)->forming.joinable()) (*all)->forming.join();
    delete all;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
    group.require_closed("ncclCommDestroy");
    const auto& all = shared(communicator);
    if (all->in_progress() || !all->finalized) return ncclInvalidUsage;
    end_communicator(communicator);
    return ncclSuccess;
}

/// Of this rank alone: others wait until they abort, too.
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
    group.require_closed("ncclCommAbort");
    const auto& all = shared(communicator);
    all->aborted = true;
    const bool forming = all->state == ncclInProgress || all->state == ncclUnhandledCudaError;
    if (forming && getpid() == all->id.process && all->rank == 0) close(all->id.file);
    end_communicator(communicator);
    return ncclSuccess;
}
}
