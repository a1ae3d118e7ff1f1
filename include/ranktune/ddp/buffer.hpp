// SPDX-License-Identifier: Apache-2.0
#pragma once
// Buffer: memory for parameters, gradients and activations.

#include <cstddef>
#include <vector>

namespace ranktune::ddp {

/// At least `bytes` bytes, aligned to 64; from 2 MiB on aligned to 2 MiB and, where the kernel allows it
/// (transparent_hugepage = madvise or always), in huge pages: matrix products walk over such arrays with strides of
/// many pages, and copies between processes pin them page by page. Throws std::bad_alloc.
[[nodiscard]] void* allocate_buffer(std::size_t bytes);
void free_buffer(void* memory) noexcept;

/// The allocator of Buffer.
template <class T>
struct BufferAllocator {
    using value_type = T;
    BufferAllocator() = default;
    template <class U>
    BufferAllocator(const BufferAllocator<U>&) noexcept {} // NOLINT(google-explicit-constructor): required
    [[nodiscard]] T* allocate(std::size_t count) { return static_cast<T*>(allocate_buffer(count * sizeof(T))); }
    void deallocate(T* memory, std::size_t) noexcept { free_buffer(memory); }
    template <class U>
    friend bool operator==(const BufferAllocator&, const BufferAllocator<U>&) {
        return true;
    }
};

using Buffer = std::vector<float, BufferAllocator<float>>;

} // namespace ranktune::ddp
