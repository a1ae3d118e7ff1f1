// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory for large arrays: aligned, and in huge pages where the kernel gives them.

#include <cstddef>
#include <limits>
#include <new>
#include <vector>

namespace ranktune::base {

/// The size on x86-64, and on arm64 with 4 KiB pages.
inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20U;

/// At least `bytes` bytes, uninitialised and aligned to 64. An allocation of `huge_page_bytes` or more is aligned to
/// `huge_page_bytes`, and all of it but the remainder lies in huge pages where the kernel allows that
/// (transparent_hugepage = madvise or always). A page that is never touched takes no memory. Throws std::bad_alloc.
[[nodiscard]] void* allocate_large(std::size_t bytes);
void free_large(void* memory) noexcept;

/// The same for a container.
template <class T>
struct LargeAllocator {
    static_assert(alignof(T) <= 64);
    using value_type = T;
    LargeAllocator() = default;
    template <class U>
    LargeAllocator(const LargeAllocator<U>&) noexcept {} // NOLINT(google-explicit-constructor): required
    [[nodiscard]] T* allocate(std::size_t count) {
        if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
        return static_cast<T*>(allocate_large(count * sizeof(T)));
    }
    void deallocate(T* memory, std::size_t) noexcept { free_large(memory); }
    template <class U>
    friend bool operator==(const LargeAllocator&, const LargeAllocator<U>&) {
        return true;
    }
};

/// A vector for parameters, gradients and activations: matrix products read such arrays with strides of many pages, and
/// copies between processes pin them page by page.
template <class T>
using LargeVector = std::vector<T, LargeAllocator<T>>;

} // namespace ranktune::base
