// SPDX-License-Identifier: Apache-2.0
#pragma once
// UniqueHandle: owns one handle of a C library and closes it once.

#include <utility>

namespace ranktune::storage {

/// Owns a handle. `Traits` gives `Value` (the handle's type, trivially copyable), `null()` (what means "none") and
/// `close(Value)`, which must not throw. Move-only; a moved-from handle is null and closes nothing.
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

} // namespace ranktune::storage
