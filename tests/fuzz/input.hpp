// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads choices and texts from a fuzzer's bytes, and reports violated rules.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace ranktune::fuzz {

/// Not an assert: active in every build type, and the test that replays the corpus reports it as a failed check.
inline void require(bool holds, const std::string& rule) {
    if (!holds) throw std::logic_error(rule);
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

/// Takes values from the front of the bytes; after their end all values are zero.
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
