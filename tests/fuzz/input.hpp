// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reading choices and texts from the bytes of a fuzzer, and the one way to say that a rule does not hold.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace ranktune::fuzz {

/// Not an assert: it holds in every kind of build, and the test that replays the corpus tells it like a failed check.
inline void require(bool holds, const std::string& rule) {
    if (!holds) throw std::logic_error(rule);
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

/// Takes values off the front of the bytes; at their end everything is zero.
class Input {
  public:
    Input(const std::uint8_t* data, std::size_t size) : left_(std::as_bytes(std::span(data, size))) {}

    template <class T>
    T number() {
        T value{};
        const auto from = take(sizeof value);
        if (!from.empty()) std::memcpy(&value, from.data(), from.size());
        return value;
    }
    std::uint8_t u8() { return number<std::uint8_t>(); }
    std::span<const std::byte> take(std::size_t size) {
        const auto taken = left_.first(std::min(size, left_.size()));
        left_ = left_.subspan(taken.size());
        return taken;
    }
    [[nodiscard]] bool empty() const { return left_.empty(); }
    [[nodiscard]] std::size_t left() const { return left_.size(); }

  private:
    std::span<const std::byte> left_;
};

} // namespace ranktune::fuzz
