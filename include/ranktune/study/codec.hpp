// SPDX-License-Identifier: Apache-2.0
#pragma once
// The versioned codec of messages and journal: little-endian, varints, length before every item.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ranktune/base/error.hpp"
#include "ranktune/space/configuration.hpp"
#include "ranktune/study/objective.hpp"
#include "ranktune/study/record.hpp"

namespace ranktune::study {

/// Version of all encodings below. A reader refuses another major and skips
/// unknown trailing fields of a larger minor.
inline constexpr std::uint16_t codec_major = 6;
inline constexpr std::uint16_t codec_minor = 0;

using Bytes = std::vector<std::byte>;

/// The longest varint.
inline constexpr std::size_t max_varint_bytes = 10;

/// Writes values to a sink for bytes. A sink has `byte(std::byte)`, `write(const void*, std::size_t)` and `size()`. A
/// sink in memory also has `room(n)`: a reference to the write position, with room for n bytes; the caller advances it
/// by the bytes written.
template <class Sink>
class BasicEncoder {
  public:
    template <class To>
    requires std::constructible_from<Sink, To>
    // NOLINTNEXTLINE(bugprone-forwarding-reference-overload): no sink is made from an encoder
    explicit BasicEncoder(To&& to) : sink_(std::forward<To>(to)) {}

    [[gnu::always_inline]] void u8(std::uint8_t value) { sink_.byte(static_cast<std::byte>(value)); }
    void u32(std::uint32_t value) { sink_.write(&value, sizeof value); }
    void u64(std::uint64_t value) { sink_.write(&value, sizeof value); }
    void f64(double value) { sink_.write(&value, sizeof value); }
    void varint(std::uint64_t value) {
        if constexpr (requires { sink_.room(max_varint_bytes); }) {
            std::byte*& to = sink_.room(max_varint_bytes);
            std::byte* at = to; // a local stays in a register; `to` could alias the bytes written
            for (; value >= 0x80; value >>= 7) *at++ = static_cast<std::byte>(value | 0x80);
            *at++ = static_cast<std::byte>(value);
            to = at;
        } else {
            for (; value >= 0x80; value >>= 7) u8(static_cast<std::uint8_t>(value | 0x80));
            u8(static_cast<std::uint8_t>(value));
        }
    }
    void svarint(std::int64_t value) {
        varint((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
    }
    void string(std::string_view value) {
        varint(value.size());
        sink_.write(value.data(), value.size());
    }
    void bytes(std::span<const std::byte> value) {
        varint(value.size());
        append(value);
    }
    void boolean(bool value) { u8(value ? 1 : 0); }
    /// Raw bytes, without their length.
    void append(std::span<const std::byte> value) { sink_.write(value.data(), value.size()); }

    /// Bytes in the sink.
    [[nodiscard]] std::size_t size() const { return sink_.size(); }

  private:
    Sink sink_;
};

/// Appends to a buffer that it does not own.
class BytesSink {
  public:
    explicit BytesSink(Bytes& out) : out_(out) {}
    void byte(std::byte value) { out_.push_back(value); }
    void write(const void* from, std::size_t size) {
        const auto* at = static_cast<const std::byte*>(from);
        out_.insert(out_.end(), at, at + size);
    }
    [[nodiscard]] std::size_t size() const { return out_.size(); }

  private:
    Bytes& out_;
};

using Encoder = BasicEncoder<BytesSink>;

/// Reads from bytes that outlive it. Every read is bounded: throws base::FormatError at the end of the bytes.
class Decoder {
  public:
    explicit Decoder(std::span<const std::byte> in) : in_(in) {}

    [[nodiscard]] std::uint8_t u8() { return static_cast<std::uint8_t>(take(1)[0]); }
    [[nodiscard]] std::uint32_t u32() { return fixed<std::uint32_t>(); }
    [[nodiscard]] std::uint64_t u64() { return fixed<std::uint64_t>(); }
    [[nodiscard]] double f64() { return fixed<double>(); }
    [[nodiscard]] std::uint64_t varint() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            const std::uint8_t byte = u8();
            value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
            if (byte < 0x80) return value;
        }
        throw base::FormatError("a number of a message or journal record is longer than 64 bits");
    }
    [[nodiscard]] std::int64_t svarint() {
        const std::uint64_t value = varint();
        return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
    }
    [[nodiscard]] std::string string() {
        const auto view = bytes();
        return {reinterpret_cast<const char*>(view.data()), view.size()};
    }
    [[nodiscard]] std::span<const std::byte> bytes() { return take(varint()); }
    [[nodiscard]] bool boolean() { return u8() != 0; }
    /// A count of items of at least one byte each. Refuses a count that exceeds the bytes left, so that damaged input
    /// cannot allocate memory.
    [[nodiscard]] std::size_t count() {
        const std::uint64_t value = varint();
        if (value > in_.size())
            throw base::FormatError("a list of a message or journal record is longer than its bytes");
        return static_cast<std::size_t>(value);
    }

    [[nodiscard]] bool empty() const { return in_.empty(); }
    [[nodiscard]] std::size_t left() const { return in_.size(); }

  private:
    std::span<const std::byte> take(std::uint64_t size) {
        if (size > in_.size()) throw base::FormatError("a message or journal record ends too early");
        const auto taken = in_.first(static_cast<std::size_t>(size));
        in_ = in_.subspan(static_cast<std::size_t>(size));
        return taken;
    }
    template <class T>
    T fixed() {
        T value;
        std::memcpy(&value, take(sizeof value).data(), sizeof value);
        return value;
    }
    std::span<const std::byte> in_;
};

/// Appends `varint length, u8 kind, fields`. A Reported of one metric takes at most 64 bytes (below 2^21 attempts and
/// 2^49 iterations), mostly 35 to 40, and 9 per further metric when their numbers ascend by one.
void encode(const Record& record, Bytes& out);
/// The same bytes as with one call for each, but faster.
void encode(std::span<const Record> records, Bytes& out);
/// Reads one record and moves on. Throws base::FormatError for unknown kinds and truncated bytes.
[[nodiscard]] Record decode_record(Decoder& in);

} // namespace ranktune::study
