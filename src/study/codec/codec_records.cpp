// SPDX-License-Identifier: Apache-2.0
// Records: `varint length, u8 kind, fields`. A reader skips fields that a newer minor version appended.
#include <algorithm>
#include <cstring>
#include <utility>

#include "ranktune/study/codec.hpp"
#include "ranktune/study/schema.hpp"

namespace ranktune::study {
namespace {

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

// ---- frame

/// Reported and ReportHeld are by far the most frequent records, and written without a check per byte: kind, trial,
/// attempt, time, iteration, seconds, count and verdict at their longest; then the same per metric.
constexpr std::size_t max_reported_bytes = 1 + 5 + 5 + 8 + max_varint_bytes + 8 + max_varint_bytes + max_verdict_bytes;
constexpr std::size_t max_metric_bytes = 3 + 8;

/// Writes the length of the bytes after `start` to `start`, where one byte is reserved: enough for up to 127 bytes.
void close_frame(GrowingSink& out, std::size_t start) {
    const std::size_t size = out.size() - start - 1;
    if (size < 0x80) {
        *out.at(start) = static_cast<std::byte>(size);
        return;
    }
    std::byte length[max_varint_bytes];
    ByteWriter writer(length);
    writer.varint(size);
    const std::size_t more = writer.size() - 1;
    out.room(more) += more;
    std::memmove(out.at(start + 1 + more), out.at(start + 1), size);
    std::memcpy(out.at(start), length, 1 + more);
}

/// Writes a report where there is room for the longest one, and returns its size. All in one function, so that the
/// write position stays in a register: the bytes written could alias it.
template <class Report>
[[gnu::flatten]] std::size_t write_report(const Report& report, std::uint8_t kind, std::byte* to) {
    ByteWriter writer(to);
    writer.u8(kind);
    put(writer, report);
    return writer.size();
}

template <class Report>
void encode_report(const Report& report, std::uint8_t kind, GrowingSink& out) {
    std::byte*& to = out.room(1 + max_reported_bytes + report.metrics.size() * max_metric_bytes);
    const std::size_t start = out.size();
    const std::size_t size = write_report(report, kind, to + 1);
    *to = static_cast<std::byte>(size);
    to += 1 + size;
    if (size >= 0x80) close_frame(out, start);
}

void encode_record(const Record& record, GrowingSink& out) {
    const auto kind = static_cast<std::uint8_t>(record.index());
    if (const auto* reported = std::get_if<Reported>(&record)) return encode_report(*reported, kind, out);
    if (const auto* held = std::get_if<ReportHeld>(&record)) return encode_report(*held, kind, out);
    const std::size_t start = out.size();
    RecordEncoder encoder(out);
    encoder.u8(0); // for the length
    encoder.u8(kind);
    std::visit(
        [&]<class T>(const T& r) {
            if constexpr (!std::is_same_v<T, Reported> && !std::is_same_v<T, ReportHeld>) put(encoder, r);
        },
        record);
    close_frame(out, start);
}

template <std::size_t Kind>
Record decode_as(Decoder& in) {
    Record record{std::in_place_index<Kind>};
    auto& fields = *std::get_if<Kind>(&record);
    get(in, fields);
    if constexpr (std::is_same_v<std::remove_reference_t<decltype(fields)>, Reported>)
        if (fields.verdict.verb == Verb::discard)
            throw base::FormatError("a record has the verdict discard, which only messages may have");
    return record;
}

template <std::size_t... Kinds>
Record decode_kind(std::size_t kind, Decoder& in, std::index_sequence<Kinds...>) {
    using Decode = Record (*)(Decoder&);
    static constexpr Decode table[] = {&decode_as<Kinds>...};
    return table[kind](in);
}

} // namespace

void encode(const Record& record, Bytes& out) { encode(std::span(&record, 1), out); }

void encode(std::span<const Record> records, Bytes& out) {
    constexpr std::size_t usual_record = 128;
    GrowingSink sink(out, usual_record * std::clamp<std::size_t>(records.size(), 2, 32));
    for (const Record& record : records) encode_record(record, sink);
}

Record decode_record(Decoder& in) {
    Decoder fields(in.bytes());
    const std::uint8_t kind = fields.u8();
    constexpr std::size_t kinds = std::variant_size_v<Record>;
    if (kind >= kinds)
        throw base::FormatError("unknown kind of record " + std::to_string(kind) + ", of a newer version");
    return decode_kind(kind, fields, std::make_index_sequence<kinds>());
}

} // namespace ranktune::study
