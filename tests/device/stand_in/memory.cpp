// SPDX-License-Identifier: Apache-2.0
// Device memory of the stand-in. Two ranges of addresses of equal size: the code under test sees addresses of the
// first, which is never accessible, so that the host cannot use them by mistake; the contents lie at the same offset of
// the second, which only the stand-in knows. Addresses are not used again, and every allocation ends at a page that
// is not accessible.

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "machine.hpp"

namespace stand_in {

namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t range = std::size_t{1} << 37U;
constexpr std::size_t alignment = 256;

struct Allocation {
    std::size_t bytes = 0;
    std::size_t first_page = 0; ///< offset
    std::size_t pages = 0;      ///< bytes
    int device = 0;
    bool pooled = false; ///< of cudaMallocAsync
    enum class State { promised, live, freed } state = State::live;
};

std::size_t rounded(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

struct Memory {
    Memory();
    std::mutex mutex;
    std::byte* visible = nullptr;
    std::byte* content = nullptr;
    std::size_t next = page;
    std::map<std::size_t, Allocation> allocations; ///< by offset of the address; freed ones too
    std::map<int, std::size_t> used;
    std::map<int, std::size_t> pool; ///< what cudaMallocAsync keeps; also used
};

struct sigaction before;

/// Says what happened, then lets the previous handler see the same fault.
void explain(int signal, siginfo_t* info, void* context);

Memory& memory() {
    static auto* const all = new Memory;
    return *all;
}

Memory::Memory() {
    void* const both = mmap(nullptr, 2 * range, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (both == MAP_FAILED) {
        std::perror("stand-in: mmap");
        std::abort();
    }
    visible = static_cast<std::byte*>(both);
    content = visible + range;
    struct sigaction action {};
    action.sa_sigaction = explain;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &before);
}

void explain(int, siginfo_t* info, void*) {
    const auto* const at = static_cast<std::byte*>(info->si_addr);
    const char* text = nullptr;
    if (at >= memory().visible && at < memory().content)
        text = "stand-in: the host accessed memory of a device\n";
    else if (at >= memory().content && at < memory().content + range)
        text = "stand-in: a kernel or a library accessed memory beyond its allocation\n";
    if (text != nullptr) static_cast<void>(!write(STDERR_FILENO, text, std::strlen(text)));
    sigaction(SIGSEGV, &before, nullptr);
}

void fill_with_nan(std::size_t first_page, std::size_t pages) {
    mprotect(memory().content + first_page, pages, PROT_READ | PROT_WRITE);
    std::memset(memory().content + first_page, 0xFF, pages);
}

std::string described(const void* address) {
    char text[32];
    std::snprintf(text, sizeof text, "%p", address);
    return text;
}

/// The allocation that contains `address`, in locked memory.
std::map<std::size_t, Allocation>::iterator containing(const void* address) {
    Memory& all = memory();
    const auto* const at = static_cast<const std::byte*>(address);
    if (at < all.visible || at >= all.content) return all.allocations.end();
    const auto offset = static_cast<std::size_t>(at - all.visible);
    auto next = all.allocations.upper_bound(offset);
    if (next == all.allocations.begin()) return all.allocations.end();
    --next;
    return offset <= next->first + next->second.bytes ? next : all.allocations.end();
}

} // namespace

std::size_t capacity() { return std::stoull(setting("MEMORY", "2097152")) << 10U; }

void* reserve(int device, std::size_t bytes, bool live) {
    Memory& all = memory();
    const std::lock_guard lock(all.mutex);
    const std::size_t again = live ? 0 : std::min(bytes, all.pool[device]);
    if (all.used[device] + bytes - again > capacity()) return nullptr;
    all.used[device] += bytes - again;
    all.pool[device] -= again;
    Allocation allocation{bytes,  all.next, rounded(bytes, page),
                          device, !live,    live ? Allocation::State::live : Allocation::State::promised};
    all.next += allocation.pages + page;
    if (all.next > range) {
        std::fprintf(stderr, "stand-in: out of addresses\n");
        std::abort();
    }
    const std::size_t offset = allocation.first_page + allocation.pages - rounded(bytes, alignment);
    if (live) fill_with_nan(allocation.first_page, allocation.pages);
    all.allocations[offset] = allocation;
    return all.visible + offset;
}

void give(void* address) {
    Memory& all = memory();
    const std::lock_guard lock(all.mutex);
    Allocation& allocation = containing(address)->second;
    fill_with_nan(allocation.first_page, allocation.pages);
    allocation.state = Allocation::State::live;
}

void take_back(void* address) {
    Memory& all = memory();
    const std::lock_guard lock(all.mutex);
    const auto found = containing(address);
    if (found == all.allocations.end() || all.visible + found->first != static_cast<std::byte*>(address))
        throw Fault("freed " + described(address) + ", which is no allocation");
    Allocation& allocation = found->second;
    if (allocation.state != Allocation::State::live)
        throw Fault("freed " + described(address) + " twice, or too early");
    allocation.state = Allocation::State::freed;
    if (allocation.pooled)
        all.pool[allocation.device] += allocation.bytes;
    else
        all.used[allocation.device] -= allocation.bytes;
    madvise(all.content + allocation.first_page, allocation.pages, MADV_DONTNEED);
    mprotect(all.content + allocation.first_page, allocation.pages, PROT_NONE);
}

void trim_pool(int device) {
    Memory& all = memory();
    const std::lock_guard lock(all.mutex);
    all.used[device] -= std::exchange(all.pool[device], 0);
}

std::byte* contents(const void* address, std::size_t bytes, int device, const std::string& user) {
    Memory& all = memory();
    const std::lock_guard lock(all.mutex);
    const auto found = containing(address);
    if (found == all.allocations.end())
        throw Fault(user + " was given " + described(address) + ", which is no memory of a device");
    const auto& [begin, allocation] = *found;
    if (allocation.state == Allocation::State::freed)
        throw Fault(user + " used memory of a device that was freed (" + described(address) + ")");
    if (allocation.state == Allocation::State::promised)
        throw Fault(user + " used memory before cudaMallocAsync gave it (" + described(address) + ")");
    if (allocation.device != device) throw Fault(user + " used memory of another device");
    const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - all.visible);
    if (bytes > begin + allocation.bytes - offset) throw Fault(user + " used memory beyond its allocation");
    return all.content + offset;
}

std::size_t live_allocations() {
    Memory& all = memory();
    const std::lock_guard lock(all.mutex);
    std::size_t count = 0;
    for (const auto& [offset, allocation] : all.allocations)
        count += allocation.state != Allocation::State::freed ? 1 : 0;
    return count;
}

namespace {

/// RANKTUNE_STAND_IN_LIVE=FILE: when a process ends by itself, it adds a line with the number of allocations of devices
/// that it did not free.
struct Ending {
    ~Ending() {
        const std::string file = setting("LIVE", "");
        if (file.empty()) return;
        const std::string line = std::to_string(live_allocations()) + "\n";
        const int to = open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (to < 0 || write(to, line.data(), line.size()) < 0) std::perror("stand-in: RANKTUNE_STAND_IN_LIVE");
        if (to >= 0) close(to);
    }
} ending;

} // namespace

} // namespace stand_in
