// SPDX-License-Identifier: Apache-2.0
#pragma once
// Handles of C libraries, each closed once by its owner: UniqueHandle, FileDescriptor.

#include <unistd.h>

#include <utility>

namespace ranktune::storage {

/// Owns a handle. `Traits` gives `Value` (the handle's type, trivially copyable), `null()` (the value for "none") and
/// `close(Value)`, which must not throw. Move-only; a moved-from handle is null.
template <class Traits>
class UniqueHandle {
  public:
    using Value = typename Traits::Value;

    UniqueHandle() noexcept = default;
    /// Takes ownership.
    explicit UniqueHandle(Value value) noexcept : value_(value) {}
    UniqueHandle(UniqueHandle&& other) noexcept : value_(other.release()) {}
    UniqueHandle& operator=(UniqueHandle&& other) noexcept {
        if (this != &other) reset(other.release());
        return *this;
    }
    UniqueHandle(const UniqueHandle&) = delete;
    UniqueHandle& operator=(const UniqueHandle&) = delete;
    ~UniqueHandle() { reset(); }

    [[nodiscard]] Value get() const noexcept { return value_; }
    [[nodiscard]] explicit operator bool() const noexcept { return value_ != Traits::null(); }
    /// Gives ownership away.
    [[nodiscard]] Value release() noexcept { return std::exchange(value_, Traits::null()); }
    void reset(Value value = Traits::null()) noexcept {
        const Value old = std::exchange(value_, value);
        if (old != Traits::null()) Traits::close(old);
    }

  private:
    Value value_ = Traits::null();
};

struct FileDescriptorTraits {
    using Value = int;
    static constexpr int null() noexcept { return -1; }
    /// Errors of close(2) are ignored: a sync has reported them before.
    static void close(int fd) noexcept { ::close(fd); }
};
/// An owned POSIX file descriptor.
using FileDescriptor = UniqueHandle<FileDescriptorTraits>;

} // namespace ranktune::storage
