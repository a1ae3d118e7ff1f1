// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the source files of the codec share: a writer without bounds checks for short records, compact doubles, ids.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "ranktune/study/codec.hpp"

namespace ranktune::study {

/// Writes to memory that the caller has sized for the worst case; the same encodings as Encoder.
class ByteWriter {
  public:
    explicit ByteWriter(std::byte* to) : begin_(to), to_(to) {}

    void u8(std::uint8_t value) { *to_++ = static_cast<std::byte>(value); }
    void u64(std::uint64_t value) { raw(&value); }
    void f64(double value) { raw(&value); }
    void varint(std::uint64_t value) {
        while (value >= 0x80) {
            u8(static_cast<std::uint8_t>(value | 0x80));
            value >>= 7;
        }
        u8(static_cast<std::uint8_t>(value));
    }
    void svarint(std::int64_t value) {
        varint((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
    }
    /// Bytes written so far.
    [[nodiscard]] std::size_t at() const { return static_cast<std::size_t>(to_ - begin_); }

  private:
    template <class T>
    void raw(const T* value) {
        std::memcpy(to_, value, sizeof(T));
        to_ += sizeof(T);
    }
    std::byte* begin_;
    std::byte* to_;
};

inline constexpr std::size_t max_varint_bytes = 10;
/// Head byte (verb, forms of a and b), reason, and two numbers of at most eight bytes.
inline constexpr std::size_t max_verdict_bytes = 2 + 8 + 8;

/// The numbers of a verdict are mostly 0 or small integers (rungs, places, counts): two bits say how each is written.
enum CompactForm : unsigned { compact_zero = 0, compact_integer = 1, compact_double = 2 };

[[nodiscard]] inline unsigned compact_form(double value) {
    if (std::bit_cast<std::uint64_t>(value) == 0) return compact_zero;
    // Below 2^49 a varint takes at most seven bytes. The comparisons refuse NaN; -0.0 < 1 keeps its bits as a double.
    if (value >= 1.0 && value < 562949953421312.0 && value == static_cast<double>(static_cast<std::uint64_t>(value)))
        return compact_integer;
    return compact_double;
}

inline void put_compact(double value, unsigned form, ByteWriter& out) {
    if (form == compact_integer) out.varint(static_cast<std::uint64_t>(value));
    if (form == compact_double) out.f64(value);
}

[[nodiscard]] inline double decode_compact(Decoder& in, unsigned form) {
    switch (form) {
        case compact_zero:
            return 0.0;
        case compact_integer:
            return static_cast<double>(in.varint());
        case compact_double:
            return in.f64();
        default:
            throw base::FormatError("unknown form of a number in a verdict");
    }
}

inline void put(const Verdict& verdict, ByteWriter& out) {
    const unsigned a = compact_form(verdict.a);
    const unsigned b = compact_form(verdict.b);
    out.u8(static_cast<std::uint8_t>(static_cast<unsigned>(verdict.verb) | (a << 2) | (b << 4)));
    out.u8(static_cast<std::uint8_t>(verdict.reason));
    put_compact(verdict.a, a, out);
    put_compact(verdict.b, b, out);
}

/// An identifier; refuses numbers that its type cannot hold.
template <class IdType>
[[nodiscard]] IdType decode_id(Decoder& in) {
    const std::uint64_t value = in.varint();
    if (value > std::numeric_limits<typename IdType::rep>::max())
        throw base::FormatError("identifier " + std::to_string(value) + " is out of range");
    return IdType(static_cast<typename IdType::rep>(value));
}

/// An enumeration without gaps whose values decide something: unknown ones are refused.
template <class Enum>
[[nodiscard]] Enum checked_enum(std::uint8_t value, Enum last, const char* what) {
    if (value > static_cast<std::uint8_t>(last))
        throw base::FormatError(std::string("unknown ") + what + " " + std::to_string(value));
    return static_cast<Enum>(value);
}

} // namespace ranktune::study
