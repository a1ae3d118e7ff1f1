// SPDX-License-Identifier: Apache-2.0
// The shared pieces of the codec: values, configurations, checkpoints, verdicts.
#include "ranktune/study/codec.hpp"

#include <bit>
#include <type_traits>
#include <utility>
#include <variant>

#include "study/codec_pieces.hpp"

namespace ranktune::study {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie in memory");

namespace {

enum class ValueTag : std::uint8_t { no = 0, yes = 1, integer = 2, real = 3, string = 4, list = 5 };
/// What follows the fields that every reference to a checkpoint has.
constexpr unsigned with_value = 1;
constexpr unsigned in_shards = 2;

enum class StartTag : std::uint8_t { fresh = 0, checkpoint = 1, donor = 2 };

/// Deeper lists are refused: damaged bytes must not exhaust the stack.
constexpr int max_list_depth = 32;

space::Value decode_value(Decoder& in, int depth) {
    const std::uint8_t tag = in.u8();
    switch (static_cast<ValueTag>(tag)) {
        case ValueTag::no:
            return false;
        case ValueTag::yes:
            return true;
        case ValueTag::integer:
            return in.svarint();
        case ValueTag::real:
            return in.f64();
        case ValueTag::string:
            return in.string();
        case ValueTag::list: {
            if (depth >= max_list_depth) throw base::FormatError("a value is a list of lists too deep to be real");
            const std::size_t size = in.count();
            space::Value::List list;
            for (std::size_t i = 0; i < size; ++i) list.push_back(decode_value(in, depth + 1));
            return list;
        }
    }
    throw base::FormatError("unknown kind of value " + std::to_string(tag));
}

} // namespace

void encode(const space::Value& value, Encoder& out) {
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
        for (const space::Value& item : value.as_list()) encode(item, out);
    }
}

space::Value decode_value(Decoder& in) { return decode_value(in, 0); }

void encode(const space::Configuration& configuration, Encoder& out) {
    out.varint(configuration.entries().size());
    for (const auto& entry : configuration.entries()) {
        out.string(entry.name);
        encode(entry.value, out);
    }
}

space::Configuration decode_configuration(Decoder& in) {
    const std::size_t size = in.count();
    std::vector<std::pair<std::string, space::Value>> entries;
    for (std::size_t i = 0; i < size; ++i) {
        std::string name = in.string();
        entries.emplace_back(std::move(name), decode_value(in));
    }
    return space::Configuration(std::move(entries));
}

void encode(const CheckpointRef& checkpoint, Encoder& out) {
    out.varint(checkpoint.iteration);
    out.string(checkpoint.path);
    out.varint(checkpoint.bytes);
    out.u64(checkpoint.digest);
    out.u8(
        static_cast<std::uint8_t>((checkpoint.value ? with_value : 0) | (checkpoint.shards.empty() ? 0 : in_shards)));
    if (checkpoint.value) out.f64(*checkpoint.value);
    if (checkpoint.shards.empty()) return;
    out.varint(checkpoint.shards.size());
    for (const std::uint64_t digest : checkpoint.shards) out.u64(digest);
}

CheckpointRef decode_checkpoint(Decoder& in) {
    CheckpointRef checkpoint;
    checkpoint.iteration = in.varint();
    checkpoint.path = in.string();
    checkpoint.bytes = in.varint();
    checkpoint.digest = in.u64();
    if (in.empty()) return checkpoint; // minor version 1 ended here; in its records nothing followed
    const std::uint8_t more = in.u8();
    if ((more & with_value) != 0) checkpoint.value = in.f64();
    if ((more & in_shards) == 0) return checkpoint;
    const std::size_t shards = in.count();
    if (shards > in.left() / sizeof(std::uint64_t))
        throw base::FormatError("a list of shards is longer than its bytes");
    for (std::size_t i = 0; i < shards; ++i) checkpoint.shards.push_back(in.u64());
    return checkpoint;
}

void encode(const StartFrom& from, Encoder& out) {
    if (const auto* checkpoint = std::get_if<CheckpointRef>(&from)) {
        out.u8(static_cast<std::uint8_t>(StartTag::checkpoint));
        encode(*checkpoint, out);
    } else if (const auto* donor = std::get_if<Donor>(&from)) {
        out.u8(static_cast<std::uint8_t>(StartTag::donor));
        out.varint(donor->trial.value());
        out.varint(donor->attempt.value());
        out.varint(donor->iteration);
    } else {
        out.u8(static_cast<std::uint8_t>(StartTag::fresh));
    }
}

StartFrom decode_start_from(Decoder& in) {
    const std::uint8_t tag = in.u8();
    switch (static_cast<StartTag>(tag)) {
        case StartTag::fresh:
            return Fresh{};
        case StartTag::checkpoint:
            return decode_checkpoint(in);
        case StartTag::donor: {
            Donor donor;
            donor.trial = decode_id<TrialId>(in);
            donor.attempt = decode_id<Attempt>(in);
            donor.iteration = in.varint();
            return donor;
        }
    }
    throw base::FormatError("unknown origin of an attempt " + std::to_string(tag));
}

void encode(const Verdict& verdict, Encoder& out) {
    std::byte buffer[max_verdict_bytes];
    ByteWriter writer(buffer);
    put(verdict, writer);
    out.append(std::span(buffer, writer.at()));
}

Verdict decode_verdict(Decoder& in) {
    const std::uint8_t head = in.u8();
    Verdict verdict;
    verdict.verb = static_cast<Verb>(head & 3U);
    verdict.reason = static_cast<Reason>(in.u8()); // a reason of a newer version is kept as a number
    verdict.a = decode_compact(in, (head >> 2) & 3U);
    verdict.b = decode_compact(in, (head >> 4) & 3U);
    return verdict;
}

} // namespace ranktune::study
