// SPDX-License-Identifier: Apache-2.0
#include "ranktune/ddp/buffer.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace ranktune::ddp {
namespace {

constexpr std::size_t cache_line = 64;
constexpr std::size_t huge_page = std::size_t{2} << 20U; // x86-64, and arm64 with pages of 4 KiB

} // namespace

void* allocate_buffer(std::size_t bytes) {
    void* memory = nullptr;
    if (posix_memalign(&memory, bytes >= huge_page ? huge_page : cache_line, bytes) != 0) throw std::bad_alloc();
    // Advice only: a kernel without huge pages, or with none free, gives small ones.
    if (bytes >= huge_page) madvise(memory, bytes / huge_page * huge_page, MADV_HUGEPAGE);
    return memory;
}

void free_buffer(void* memory) noexcept { std::free(memory); }

} // namespace ranktune::ddp
