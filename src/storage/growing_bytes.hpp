// SPDX-License-Identifier: Apache-2.0
#pragma once
// A buffer that grows by many small appends to many megabytes.

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>

namespace ranktune::storage {

/// Grows by realloc: the C library moves the pages of large blocks instead of copying them into new ones, and touching
/// new pages is most of what a large std::vector costs while it grows.
class GrowingBytes {
  public:
    /// Throws std::bad_alloc; nothing is changed then. `bytes` lie elsewhere.
    void append(std::span<const std::byte> bytes) {
        if (bytes.empty()) return;
        if (room_ - size_ < bytes.size()) grow(size_ + bytes.size());
        std::memcpy(memory_.get() + size_, bytes.data(), bytes.size());
        size_ += bytes.size();
    }
    /// Keeps the memory.
    void clear() { size_ = 0; }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] bool empty() const { return size_ == 0; }
    /// Valid until the next append. Implicit: whoever reads bytes need not know where they lie.
    // NOLINTNEXTLINE(google-explicit-constructor)
    operator std::span<const std::byte>() const { return {memory_.get(), size_}; }

  private:
    struct Free {
        void operator()(std::byte* memory) const noexcept { std::free(memory); }
    };
    void grow(std::size_t least) {
        const std::size_t room = std::max({least, 2 * room_, std::size_t{4096}});
        auto* const moved = static_cast<std::byte*>(std::realloc(memory_.get(), room));
        if (moved == nullptr) throw std::bad_alloc();
        static_cast<void>(memory_.release()); // realloc has freed it, or it is the same
        memory_.reset(moved);
        room_ = room;
    }

    std::unique_ptr<std::byte, Free> memory_;
    std::size_t size_ = 0;
    std::size_t room_ = 0;
};

} // namespace ranktune::storage
