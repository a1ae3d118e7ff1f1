// SPDX-License-Identifier: Apache-2.0
#pragma once
// One list of fields for each record, message and value of a snapshot: writing and reading follow from it.
//
// A struct lists its fields in the order in which they are written:
//
//   struct CheckpointReleased {
//       TrialId trial;
//       std::string path;
//       static void fields(auto&& each, auto& r) { each(r.trial, r.path); }
//   };
//
// `put` writes a value, `get` reads it into memory that is there already. Numbers without sign and identifiers are
// varints, durations signed varints, points in time and what is in `fixed` eight bytes; an enumeration is its code, a
// list its length and its items, an optional value whether it is there. `get` throws base::FormatError for codes and
// numbers that the type does not have (`last_of`), and for lists that are longer than their bytes.

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "ranktune/base/error.hpp"
#include "ranktune/study/codec.hpp"
#include "ranktune/study/fixed.hpp"

namespace ranktune::study {

/// The largest code of an enumeration without gaps. Others may have any code: a reason of a newer version is kept as a
/// number, since it only explains.
template <class Enum>
inline constexpr Enum last_of = static_cast<Enum>(std::numeric_limits<std::uint8_t>::max());
template <>
inline constexpr Verb last_of<Verb> = last_verb;
template <>
inline constexpr StateLoss last_of<StateLoss> = last_state_loss;
template <>
inline constexpr Asker last_of<Asker> = last_asker;
template <>
inline constexpr AttemptOutcome last_of<AttemptOutcome> = last_attempt_outcome;
template <>
inline constexpr Origin::Kind last_of<Origin::Kind> = last_origin;
template <>
inline constexpr SideTask::Kind last_of<SideTask::Kind> = last_side_task;
template <>
inline constexpr SteerVerb last_of<SteerVerb> = last_steer_verb;
template <>
inline constexpr TrialPhase last_of<TrialPhase> = TrialPhase::failed;

template <class Enum>
[[nodiscard]] constexpr bool is_known(Enum code) {
    return code <= last_of<Enum>;
}
[[nodiscard]] constexpr bool is_known(StudyOutcome code) {
    return code <= StudyOutcome::no_success || code == StudyOutcome::resumable;
}

template <class T>
inline constexpr bool is_id = false;
template <class Tag, class Rep>
inline constexpr bool is_id<base::Id<Tag, Rep>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_list = false;
template <class T, class Allocator>
inline constexpr bool is_list<std::vector<T, Allocator>> = true;
template <class T>
inline constexpr bool is_list<std::deque<T>> = true;
/// In `fields`, of decltype(r): whether the value is read, and not written.
template <class Reference>
inline constexpr bool is_read = !std::is_const_v<std::remove_reference_t<Reference>>;

// ---- writing

// What is written in a way of its own.
template <class Sink>
void put(BasicEncoder<Sink>& out, const space::Value& value);
template <class Sink>
void put(BasicEncoder<Sink>& out, const space::Configuration& configuration);
template <class Sink>
void put(BasicEncoder<Sink>& out, const Verdict& verdict);
template <class Sink>
void put(BasicEncoder<Sink>& out, const Score& score);
template <class Sink>
void put(BasicEncoder<Sink>& out, const StartFrom& from);
/// As differences: ascending ranks lie close together.
template <class Sink>
void put(BasicEncoder<Sink>& out, const std::vector<Rank>& ranks);
/// Numbers of metrics mostly ascend by one: as differences from that.
template <class Sink>
void put(BasicEncoder<Sink>& out, const std::vector<MetricValue>& metrics);

template <class Sink, class T>
void put(BasicEncoder<Sink>& out, Fixed<T> fixed) {
    if constexpr (is_list<std::remove_const_t<T>>) {
        out.varint(fixed.value.size());
        for (const std::uint64_t each : fixed.value) out.u64(each);
    } else {
        out.u64(fixed.value);
    }
}

template <class Sink, class T>
void put(BasicEncoder<Sink>& out, const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
        out.boolean(value);
    } else if constexpr (std::is_enum_v<T>) {
        out.u8(static_cast<std::uint8_t>(value));
    } else if constexpr (std::is_unsigned_v<T>) {
        out.varint(value);
    } else if constexpr (std::is_same_v<T, double>) {
        out.f64(value);
    } else if constexpr (std::is_same_v<T, std::string>) {
        out.string(value);
    } else if constexpr (std::is_same_v<T, StudyTime>) {
        out.u64(static_cast<std::uint64_t>(base::to_ns(value)));
    } else if constexpr (std::is_same_v<T, Duration>) {
        out.svarint(value.count());
    } else if constexpr (is_id<T>) {
        out.varint(value.value());
    } else if constexpr (is_optional<T>) {
        out.boolean(value.has_value());
        if (value) put(out, *value);
    } else if constexpr (is_list<T>) {
        out.varint(value.size());
        for (const auto& each : value) put(out, each);
    } else {
        T::fields([&out](auto&&... each) { (put(out, each), ...); }, value);
    }
}

// ---- writing what is special

enum class ValueTag : std::uint8_t { no = 0, yes = 1, integer = 2, real = 3, string = 4, list = 5, none = 6 };

/// The numbers of a verdict are mostly 0 or small integers (rungs, places, counts): two bits encode the form of each.
enum CompactForm : unsigned { compact_zero = 0, compact_integer = 1, compact_double = 2 };
/// Head byte (verb, forms of a and b), reason, and two numbers of at most eight bytes.
inline constexpr std::size_t max_verdict_bytes = 2 + 8 + 8;

[[nodiscard]] inline unsigned compact_form(double value) {
    if (std::bit_cast<std::uint64_t>(value) == 0) return compact_zero;
    // Below 2^49 a varint takes at most seven bytes. The comparisons refuse NaN; -0.0 < 1 keeps its bits as a double.
    if (value >= 1.0 && value < 562949953421312.0 && value == static_cast<double>(static_cast<std::uint64_t>(value)))
        return compact_integer;
    return compact_double;
}

template <class Sink>
void put(BasicEncoder<Sink>& out, const Verdict& verdict) {
    const unsigned a = compact_form(verdict.a);
    const unsigned b = compact_form(verdict.b);
    out.u8(static_cast<std::uint8_t>(static_cast<unsigned>(verdict.verb) | (a << 3) | (b << 5)));
    out.u8(static_cast<std::uint8_t>(verdict.reason));
    const auto compact = [&out](double value, unsigned form) {
        if (form == compact_integer) out.varint(static_cast<std::uint64_t>(value));
        if (form == compact_double) out.f64(value);
    };
    compact(verdict.a, a);
    compact(verdict.b, b);
}

template <class Sink>
void put(BasicEncoder<Sink>& out, const space::Value& value) {
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
    } else if (value.is_none()) {
        tag(ValueTag::none);
    } else {
        tag(ValueTag::list);
        out.varint(value.as_list().size());
        for (const space::Value& item : value.as_list()) put(out, item);
    }
}

template <class Sink>
void put(BasicEncoder<Sink>& out, const space::Configuration& configuration) {
    const auto entries = configuration.entries();
    out.varint(entries.size());
    for (const auto& entry : entries) {
        out.string(entry.name);
        put(out, entry.value);
    }
}

template <class Sink>
void put(BasicEncoder<Sink>& out, const Score& score) {
    out.boolean(score.feasible);
    if (!score.feasible) out.f64(score.violation);
    out.u8(static_cast<std::uint8_t>(score.values().size()));
    for (const double value : score.values()) out.f64(value);
}

template <class Sink>
void put(BasicEncoder<Sink>& out, const StartFrom& from) {
    out.u8(static_cast<std::uint8_t>(from.index()));
    if (const auto* checkpoint = std::get_if<CheckpointRef>(&from)) put(out, *checkpoint);
    if (const auto* donor = std::get_if<Donor>(&from)) put(out, *donor);
}

template <class Sink>
void put(BasicEncoder<Sink>& out, const std::vector<Rank>& ranks) {
    out.varint(ranks.size());
    std::uint32_t before = 0;
    for (const Rank rank : ranks) {
        out.svarint(static_cast<std::int64_t>(rank.value()) - before);
        before = rank.value();
    }
}

template <class Sink>
void put(BasicEncoder<Sink>& out, const std::vector<MetricValue>& metrics) {
    out.varint(metrics.size());
    std::int32_t expected = 0;
    for (const MetricValue& metric : metrics) {
        out.svarint(metric.id.value() - expected);
        out.f64(metric.value);
        expected = metric.id.value() + 1;
    }
}

// ---- reading

void get(Decoder& in, space::Value& value);
void get(Decoder& in, space::Configuration& configuration);
void get(Decoder& in, Verdict& verdict);
void get(Decoder& in, Score& score);
void get(Decoder& in, StartFrom& from);
void get(Decoder& in, std::vector<Rank>& ranks);
void get(Decoder& in, std::vector<MetricValue>& metrics);
void get(Decoder& in, std::string& text);
void get(Decoder& in, Fixed<std::uint64_t> fixed);
void get(Decoder& in, Fixed<std::vector<std::uint64_t>> fixed);

/// A number that fits into T.
template <std::unsigned_integral T>
[[nodiscard]] T number(Decoder& in) {
    const std::uint64_t value = in.varint();
    if (value > std::numeric_limits<T>::max())
        throw base::FormatError("the number " + std::to_string(value) + " of a message or record is out of range");
    return static_cast<T>(value);
}

template <class T>
void get(Decoder& in, T& value) {
    if constexpr (std::is_same_v<T, bool>) {
        value = in.boolean();
    } else if constexpr (std::is_enum_v<T>) {
        value = static_cast<T>(in.u8());
        if (!is_known(value))
            throw base::FormatError("a message or record holds the unknown code " +
                                    std::to_string(static_cast<unsigned>(value)));
    } else if constexpr (std::is_unsigned_v<T>) {
        value = number<T>(in);
    } else if constexpr (std::is_same_v<T, double>) {
        value = in.f64();
    } else if constexpr (std::is_same_v<T, StudyTime>) {
        value = base::from_ns(static_cast<std::int64_t>(in.u64()));
    } else if constexpr (std::is_same_v<T, Duration>) {
        value = Duration(in.svarint());
    } else if constexpr (is_id<T>) {
        value = T(number<typename T::rep>(in));
    } else if constexpr (is_optional<T>) {
        if (in.boolean())
            get(in, value ? *value : value.emplace());
        else
            value.reset();
    } else if constexpr (is_list<T>) {
        value.resize(in.count());
        for (auto& each : value) get(in, each);
    } else {
        T::fields([&in](auto&&... each) { (get(in, each), ...); }, value);
    }
}

template <class T>
[[nodiscard]] T decoded(Decoder& in) {
    T value;
    get(in, value);
    return value;
}

} // namespace ranktune::study
