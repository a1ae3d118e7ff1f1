// SPDX-License-Identifier: Apache-2.0
#include "grid.hpp"

#include <setjmp.h>
#include <ucontext.h>

#include <cstring>
#include <memory>
#include <vector>

#include "cuda_words.hpp"
#include "machine.hpp"

thread_local stand_in::Extent threadIdx;
thread_local stand_in::Extent blockIdx;
thread_local stand_in::Extent blockDim;
thread_local stand_in::Extent gridDim;

namespace stand_in {

namespace {

constexpr std::size_t stack_bytes = 65536;
constexpr std::size_t shared_bytes = 48U << 10U; ///< of a block, as GPUs give without being asked

/// Runs threads of block after block.
struct Fibre {
    ucontext_t begin{}; ///< used once
    jmp_buf state{};
    std::unique_ptr<char[]> stack{new char[stack_bytes]};
    Extent index{0, 0, 0};
    bool begun = false;
    bool waits = false; ///< at a barrier
};

/// The block that a thread of the host runs.
struct Block {
    const std::function<void()>* body = nullptr;
    unsigned threads = 0;
    unsigned started = 0;
    bool reversed = false;
    jmp_buf scheduler{};
    std::vector<std::unique_ptr<Fibre>> fibres; ///< kept from block to block
    Fibre* current = nullptr;
    std::vector<std::byte> shared = std::vector<std::byte>(shared_bytes);
    std::vector<std::pair<unsigned, std::size_t>> arrays; ///< key and offset
    std::size_t shared_used = 0;
};

thread_local Block* active = nullptr;

Extent thread_index(unsigned number) {
    const Extent& extent = blockDim;
    return {number % extent.x, number / extent.x % extent.y, number / extent.x / extent.y};
}

/// Not swapcontext: that makes two system calls, and kernels with barriers switch ten thousands of times.
[[gnu::noinline]] void jump(jmp_buf& from, jmp_buf& to) {
    if (_setjmp(from) == 0) _longjmp(to, 1);
}

/// A fibre runs one thread of the block after the other, until one waits; then those of the next block.
void fibre_main() {
    Block& block = *active;
    Fibre* const me = block.current;
    for (;;) {
        while (block.started < block.threads) {
            const unsigned number = block.started++;
            me->index = thread_index(block.reversed ? block.threads - 1 - number : number);
            threadIdx = me->index;
            (*block.body)();
        }
        me->waits = false;
        jump(me->state, block.scheduler);
    }
}

[[gnu::noinline]] void begin(jmp_buf& from, Fibre& fibre) {
    getcontext(&fibre.begin);
    fibre.begin.uc_stack.ss_sp = fibre.stack.get();
    fibre.begin.uc_stack.ss_size = stack_bytes;
    fibre.begin.uc_link = nullptr;
    makecontext(&fibre.begin, fibre_main, 0);
    fibre.begun = true;
    if (_setjmp(from) == 0) setcontext(&fibre.begin);
}

void resume(Block& block, Fibre& fibre) {
    block.current = &fibre;
    threadIdx = fibre.index;
    if (!fibre.begun) return begin(block.scheduler, fibre);
    jump(block.scheduler, fibre.state);
}

/// One whose threads have ended.
Fibre& free_fibre(Block& block, std::size_t number) {
    if (number == block.fibres.size()) block.fibres.push_back(std::make_unique<Fibre>());
    return *block.fibres[number];
}

void run_block(Block& block, unsigned& chance) {
    block.started = 0;
    block.reversed = (chance = chance * 1664525U + 1013904223U) >> 31U != 0;
    block.arrays.clear();
    block.shared_used = 0;
    std::memset(block.shared.data(), 0xFF, shared_bytes);
    std::size_t waiting = 0; // the first fibres wait, the others have ended
    while (block.started < block.threads) {
        Fibre& fibre = free_fibre(block, waiting);
        resume(block, fibre);
        if (fibre.waits) ++waiting;
    }
    while (waiting > 0) {
        if (waiting < block.threads) {
            block.fibres.clear(); // some are in the middle of a thread
            throw Fault("some threads of a block wait at a barrier that others do not reach");
        }
        const bool back = (chance = chance * 1664525U + 1013904223U) >> 31U != 0;
        const std::size_t count = waiting;
        waiting = 0;
        for (std::size_t i = 0; i < count; ++i) {
            Fibre& fibre = *block.fibres[back ? count - 1 - i : i];
            resume(block, fibre);
            if (fibre.waits) ++waiting;
        }
    }
}

} // namespace

void wait_for_block() {
    Block& block = *active;
    Fibre* const me = block.current;
    me->waits = true;
    jump(me->state, block.scheduler);
    me->waits = false;
}

void* shared_by_block(unsigned key, std::size_t bytes) {
    Block& block = *active;
    for (const auto& [known, offset] : block.arrays)
        if (known == key) return block.shared.data() + offset;
    const std::size_t offset = (block.shared_used + 15) / 16 * 16;
    block.shared_used = offset + bytes;
    if (block.shared_used > shared_bytes) std::abort(); // nvcc would refuse it
    block.arrays.emplace_back(key, offset);
    return block.shared.data() + offset;
}

void run_grid(const Extent& grid, const Extent& extent, const std::function<void()>& thread_body, unsigned seed) {
    static thread_local Block block;
    active = &block;
    block.body = &thread_body;
    block.threads = extent.x * extent.y * extent.z;
    blockDim = extent;
    gridDim = grid;
    unsigned chance = seed;
    const bool reversed = (chance = chance * 1664525U + 1013904223U) >> 31U != 0;
    const unsigned blocks = grid.x * grid.y * grid.z;
    for (unsigned i = 0; i < blocks; ++i) {
        const unsigned b = reversed ? blocks - 1 - i : i;
        blockIdx = {b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y};
        run_block(block, chance);
    }
}

} // namespace stand_in
