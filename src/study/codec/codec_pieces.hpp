// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the source files of the codec share: sinks in memory, and the pieces of records.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <variant>

#include "ranktune/study/codec.hpp"

namespace ranktune::study {

/// Writes without checks to memory that the caller has sized for the worst case.
class UncheckedSink {
  public:
    explicit UncheckedSink(std::byte* to) : begin_(to), to_(to) {}
    void byte(std::byte value) { *to_++ = value; }
    [[nodiscard]] std::byte*& room(std::size_t) { return to_; }
    void write(const void* from, std::size_t size) {
        if (size > 0) std::memcpy(to_, from, size);
        to_ += size;
    }
    [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(to_ - begin_); }

  private:
    std::byte* begin_;
    std::byte* to_;
};

/// Appends to a buffer that grows in steps and is cut to size by the destructor, so that a byte costs a comparison and
/// a store, not a call. Nobody else may use the buffer until then.
class GrowingSink {
  public:
    /// Grows by at least `step` bytes at a time. They are zeroed, so a much larger step is a waste.
    GrowingSink(Bytes& out, std::size_t step) : out_(out), step_(step), at_(out.data() + out.size()), end_(at_) {}
    ~GrowingSink() { out_.resize(size()); }
    GrowingSink(const GrowingSink&) = delete;
    GrowingSink& operator=(const GrowingSink&) = delete;

    [[gnu::always_inline]] void byte(std::byte value) { *room(1)++ = value; }
    void write(const void* from, std::size_t size) {
        std::byte*& to = room(size);
        if (size > 0) std::memcpy(to, from, size);
        to += size;
    }
    /// The write position, with room for `most` bytes; the caller advances it by the bytes written.
    [[nodiscard, gnu::always_inline]] std::byte*& room(std::size_t most) {
        if (static_cast<std::size_t>(end_ - at_) < most) grow(most);
        return at_;
    }
    /// A byte that is written already.
    [[nodiscard]] std::byte* at(std::size_t position) { return out_.data() + position; }
    [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(at_ - out_.data()); }

  private:
    void grow(std::size_t most) {
        const std::size_t used = size();
        out_.resize(used + std::max(most, step_));
        at_ = out_.data() + used;
        end_ = out_.data() + out_.size();
    }
    Bytes& out_;
    std::size_t step_;
    std::byte* at_;
    std::byte* end_;
};

using ByteWriter = BasicEncoder<UncheckedSink>;
using RecordEncoder = BasicEncoder<GrowingSink&>;

/// Head byte (verb, forms of a and b), reason, and two numbers of at most eight bytes.
inline constexpr std::size_t max_verdict_bytes = 2 + 8 + 8;

/// The numbers of a verdict are mostly 0 or small integers (rungs, places, counts): two bits encode the form of each.
enum CompactForm : unsigned { compact_zero = 0, compact_integer = 1, compact_double = 2 };

[[nodiscard]] inline unsigned compact_form(double value) {
    if (std::bit_cast<std::uint64_t>(value) == 0) return compact_zero;
    // Below 2^49 a varint takes at most seven bytes. The comparisons refuse NaN; -0.0 < 1 keeps its bits as a double.
    if (value >= 1.0 && value < 562949953421312.0 && value == static_cast<double>(static_cast<std::uint64_t>(value)))
        return compact_integer;
    return compact_double;
}

template <class Sink>
void put_compact(double value, unsigned form, BasicEncoder<Sink>& out) {
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

template <class Sink>
void put(const Verdict& verdict, BasicEncoder<Sink>& out) {
    const unsigned a = compact_form(verdict.a);
    const unsigned b = compact_form(verdict.b);
    out.u8(static_cast<std::uint8_t>(static_cast<unsigned>(verdict.verb) | (a << 3) | (b << 5)));
    out.u8(static_cast<std::uint8_t>(verdict.reason));
    put_compact(verdict.a, a, out);
    put_compact(verdict.b, b, out);
}

// The pieces of records, over any sink.
template <class Sink>
void put(const Failure& failure, BasicEncoder<Sink>& out) {
    out.boolean(failure.rank.has_value());
    if (failure.rank) out.varint(*failure.rank);
    out.string(failure.message);
}

enum class ValueTag : std::uint8_t { no = 0, yes = 1, integer = 2, real = 3, string = 4, list = 5 };
/// Which optional fields a reference to a checkpoint has.
inline constexpr unsigned with_value = 1;
inline constexpr unsigned in_shards = 2;
inline constexpr unsigned of_a_generation = 4;
enum class StartTag : std::uint8_t { fresh = 0, checkpoint = 1, donor = 2 };

template <class Sink>
void put(const space::Value& value, BasicEncoder<Sink>& out) {
    const auto tag = [&](ValueTag t) { out.u8(static_cast<std::uint8_t>(t)); };
    if (value.is_bool()) {
        tag(value.as_bool() ? ValueTag::yes : ValueTag::no);
    } else if (value.is_int()) {
        tag(ValueTag::integer);
        out.svarint(value.as_int());
    } else if (value.is_double()) {
        tag(ValueTag::real);
        out.f64(value.as_double());
    } else if (value.is_string()) {
        tag(ValueTag::string);
        out.string(value.as_string());
    } else {
        tag(ValueTag::list);
        out.varint(value.as_list().size());
        for (const space::Value& item : value.as_list()) put(item, out);
    }
}

template <class Sink>
void put(const space::Configuration& configuration, BasicEncoder<Sink>& out) {
    const auto entries = configuration.entries();
    out.varint(entries.size());
    for (const auto& entry : entries) {
        out.string(entry.name);
        put(entry.value, out);
    }
}

template <class Sink>
void put(const CheckpointRef& checkpoint, BasicEncoder<Sink>& out) {
    out.varint(checkpoint.iteration);
    out.string(checkpoint.path);
    out.varint(checkpoint.bytes);
    out.u64(checkpoint.digest);
    out.u8(static_cast<std::uint8_t>((checkpoint.value ? with_value : 0) | (checkpoint.shards.empty() ? 0 : in_shards) |
                                     (checkpoint.generation == 0 ? 0 : of_a_generation)));
    if (checkpoint.generation > 0) out.varint(checkpoint.generation);
    if (checkpoint.value) out.f64(*checkpoint.value);
    if (checkpoint.shards.empty()) return;
    out.varint(checkpoint.shards.size());
    for (const std::uint64_t digest : checkpoint.shards) out.u64(digest);
}

template <class Sink>
void put(const Donor& donor, BasicEncoder<Sink>& out) {
    out.varint(donor.trial.value());
    put(donor.checkpoint, out);
}

template <class Sink>
void put(const StartFrom& from, BasicEncoder<Sink>& out) {
    if (const auto* checkpoint = std::get_if<CheckpointRef>(&from)) {
        out.u8(static_cast<std::uint8_t>(StartTag::checkpoint));
        put(*checkpoint, out);
    } else if (const auto* donor = std::get_if<Donor>(&from)) {
        out.u8(static_cast<std::uint8_t>(StartTag::donor));
        put(*donor, out);
    } else {
        out.u8(static_cast<std::uint8_t>(StartTag::fresh));
    }
}

/// Reads an identifier; refuses numbers that its type cannot hold.
template <class IdType>
[[nodiscard]] IdType decode_id(Decoder& in) {
    const std::uint64_t value = in.varint();
    if (value > std::numeric_limits<typename IdType::rep>::max())
        throw base::FormatError("identifier " + std::to_string(value) + " is out of range");
    return IdType(static_cast<typename IdType::rep>(value));
}

/// Reads an enumeration without gaps; refuses unknown values.
template <class Enum>
[[nodiscard]] Enum checked_enum(std::uint8_t value, Enum last, const char* what) {
    if (value > static_cast<std::uint8_t>(last))
        throw base::FormatError(std::string("unknown ") + what + " " + std::to_string(value));
    return static_cast<Enum>(value);
}

inline void put_time(StudyTime time, RecordEncoder& out) { out.u64(static_cast<std::uint64_t>(base::to_ns(time))); }
[[nodiscard]] inline StudyTime decode_time(Decoder& in) { return base::from_ns(static_cast<std::int64_t>(in.u64())); }

// codec_suggestions.cpp
void put(const TicketOpened& r, RecordEncoder& out);
void get(TicketOpened& r, Decoder& in);
void put(const TicketPrepared& r, RecordEncoder& out);
void get(TicketPrepared& r, Decoder& in);
void put(const WarmStarted& r, RecordEncoder& out);
void get(WarmStarted& r, Decoder& in);

} // namespace ranktune::study
