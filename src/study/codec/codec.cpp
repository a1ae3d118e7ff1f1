// SPDX-License-Identifier: Apache-2.0
// The shared pieces of the codec: values, configurations, checkpoints, verdicts.
#include "ranktune/study/codec.hpp"

#include <array>
#include <bit>
#include <limits>
#include <span>
#include <utility>

#include "study/codec/codec_pieces.hpp"

namespace ranktune::study {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie in memory");

namespace {

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

void encode(const space::Value& value, Encoder& out) { put(value, out); }
space::Value decode_value(Decoder& in) { return decode_value(in, 0); }

void encode(const space::Configuration& configuration, Encoder& out) { put(configuration, out); }

space::Configuration decode_configuration(Decoder& in) {
    const std::size_t size = in.count();
    std::vector<std::pair<std::string, space::Value>> entries;
    for (std::size_t i = 0; i < size; ++i) {
        std::string name = in.string();
        entries.emplace_back(std::move(name), decode_value(in));
    }
    return space::Configuration(std::move(entries));
}

void encode(const CheckpointRef& checkpoint, Encoder& out) { put(checkpoint, out); }

CheckpointRef decode_checkpoint(Decoder& in) {
    CheckpointRef checkpoint;
    checkpoint.iteration = in.varint();
    checkpoint.path = in.string();
    checkpoint.bytes = in.varint();
    checkpoint.digest = in.u64();
    const std::uint8_t more = in.u8();
    if ((more & of_a_generation) != 0) {
        const std::uint64_t generation = in.varint();
        if (generation > std::numeric_limits<std::uint32_t>::max())
            throw base::FormatError("the generation of a checkpoint is out of range");
        checkpoint.generation = static_cast<std::uint32_t>(generation);
    }
    if ((more & with_value) != 0) checkpoint.value = in.f64();
    if ((more & in_shards) == 0) return checkpoint;
    const std::size_t shards = in.count();
    if (shards > in.left() / sizeof(std::uint64_t))
        throw base::FormatError("a list of shards is longer than its bytes");
    for (std::size_t i = 0; i < shards; ++i) checkpoint.shards.push_back(in.u64());
    return checkpoint;
}

void encode(const Donor& donor, Encoder& out) { put(donor, out); }

Donor decode_donor(Decoder& in) {
    const auto trial = decode_id<TrialId>(in);
    return {trial, decode_checkpoint(in)};
}

void encode(const StartFrom& from, Encoder& out) { put(from, out); }

StartFrom decode_start_from(Decoder& in) {
    const std::uint8_t tag = in.u8();
    switch (static_cast<StartTag>(tag)) {
        case StartTag::fresh:
            return Fresh{};
        case StartTag::checkpoint:
            return decode_checkpoint(in);
        case StartTag::donor:
            return decode_donor(in);
    }
    throw base::FormatError("unknown origin of an attempt " + std::to_string(tag));
}

void encode(const Failure& failure, Encoder& out) { put(failure, out); }

Failure decode_failure(Decoder& in) {
    Failure failure;
    if (in.boolean()) failure.rank = decode_id<Rank>(in).value();
    failure.message = in.string();
    return failure;
}

void encode(const Verdict& verdict, Encoder& out) { put(verdict, out); }

Verdict decode_verdict(Decoder& in) {
    const std::uint8_t head = in.u8();
    Verdict verdict;
    verdict.verb = checked_enum(head & 7U, last_verb, "verdict");
    verdict.reason = static_cast<Reason>(in.u8()); // a reason of a newer version is kept as a number
    verdict.a = decode_compact(in, (head >> 3) & 3U);
    verdict.b = decode_compact(in, (head >> 5) & 3U);
    return verdict;
}

void encode(const Score& score, Encoder& out) {
    out.boolean(score.feasible);
    if (!score.feasible) out.f64(score.violation);
    out.u8(static_cast<std::uint8_t>(score.values().size()));
    for (const double value : score.values()) out.f64(value);
}

Score decode_score(Decoder& in) {
    const bool feasible = in.boolean();
    const double violation = feasible ? 0.0 : in.f64();
    std::array<double, Score::max_objectives> values{};
    const std::size_t size = in.u8();
    if (size > values.size()) throw base::FormatError("a score has too many objectives");
    for (std::size_t i = 0; i < size; ++i) values[i] = in.f64();
    Score score(std::span<const double>(values).first(size), feasible);
    score.violation = violation;
    return score;
}

} // namespace ranktune::study
