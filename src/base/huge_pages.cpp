// SPDX-License-Identifier: Apache-2.0
#include "ranktune/base/huge_pages.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <new>

namespace ranktune::base {
namespace {

constexpr std::size_t cache_line = 64;

} // namespace

void* allocate_large(std::size_t bytes) {
    const bool huge = bytes >= huge_page_bytes;
    const std::size_t unit = huge ? huge_page_bytes : cache_line;
    if (bytes > std::numeric_limits<std::size_t>::max() - unit) throw std::bad_alloc();
    const std::size_t whole = (std::max<std::size_t>(bytes, 1) + unit - 1) / unit * unit;
    void* const memory = std::aligned_alloc(unit, whole);
    if (memory == nullptr) throw std::bad_alloc();
    // Advice only: a kernel without huge pages, or with none free, gives small ones.
    if (huge) static_cast<void>(::madvise(memory, bytes / unit * unit, MADV_HUGEPAGE));
    return memory;
}

void free_large(void* memory) noexcept { std::free(memory); }

} // namespace ranktune::base
