// SPDX-License-Identifier: Apache-2.0
#pragma once
// The table of keys: one row says all about a key. The parser, the resolved file, the check of changes and the
// reference read it.

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/joined.hpp"
#include "study/parse/checker.hpp"
#include "study/toml_text.hpp"

namespace ranktune::study {

/// Whether a later start of a study may have another value.
enum class Later : std::uint8_t {
    fixed, ///< results depend on it
    may,   ///< a limit, or how trials are started: other decisions can follow
    aside  ///< nothing is decided by it
};

/// Of integers and numbers inclusive, as the kind of the member asks for.
struct Limits {
    std::int64_t least = 0;
    std::int64_t most = std::numeric_limits<std::int64_t>::max();
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
    bool above = false;        ///< `low` itself is too small
    base::Duration shortest{}; ///< of a duration; zero: longer than zero
    std::string_view why = {}; ///< the reason for `shortest`
};

inline constexpr std::int64_t most_trials = std::numeric_limits<std::int32_t>::max();
inline constexpr Word<Bind> bind_words[] = {{"auto", Bind::automatic}, {"cores", Bind::cores}, {"none", Bind::none}};

/// `meaning`, and what KeyInfo has beside it. A key whose value is that of one member (`read` is not null) needs no
/// more; the parser has code of its own for the others, and they say themselves what they take.
struct KeyRow {
    std::string_view key; ///< `table.key`
    std::string_view takes;
    std::string_view standard; ///< empty: the member's initial value
    std::string_view meaning;
    Later later = Later::fixed;
    Limits limits{};
    void (*read)(TableReader& table, const KeyRow& row, StudySpec& spec) = nullptr;
    std::string (*write)(const StudySpec& spec) = nullptr; ///< as TOML; empty: left out
    void (*copy)(StudySpec& to, const StudySpec& from) = nullptr;
    std::string (*kind)(const Limits& limits) = nullptr; ///< KeyInfo::takes

    [[nodiscard]] std::string_view name() const { return key.substr(key.rfind('.') + 1); }
};
/// In the order of the file.
[[nodiscard]] std::span<const KeyRow> key_rows();
/// Null: there is none, as for options of algorithms and for names in [space].
[[nodiscard]] const KeyRow* find_row(std::string_view key);

/// Reads the keys of a table that one member each holds. `trusted`: a file that ranktune wrote; its durations may be
/// shorter than a user's.
void read_members(TableReader& table, StudySpec& spec, bool trusted);

namespace rows {

template <class T>
struct Plain {
    using Type = T;
};
template <class T>
struct Plain<std::optional<T>> {
    using Type = T;
};

std::string bounded(std::string_view kind, const Limits& limits, bool whole);

template <class T>
std::optional<T> take(TableReader& table, const KeyRow& row) {
    const std::string_view key = row.name();
    const Limits& limits = row.limits;
    if constexpr (std::is_same_v<T, bool>) {
        return table.boolean(key);
    } else if constexpr (std::is_same_v<T, std::string>) {
        return table.string(key);
    } else if constexpr (std::is_same_v<T, base::Duration>) {
        return table.duration(key, limits.shortest, limits.why);
    } else if constexpr (std::is_same_v<T, Bind>) {
        return table.word(key, bind_words);
    } else if constexpr (std::is_same_v<T, std::vector<std::uint32_t>>) {
        return table.integers(key, limits.least, limits.most);
    } else if constexpr (std::is_floating_point_v<T>) {
        const auto value = table.number(key, limits.low, limits.high);
        if (!value || !limits.above || *value > limits.low) return value;
        table.complain(key, "needs a " + bounded("number", limits, false));
        return std::nullopt;
    } else {
        const auto value = table.integer(key, limits.least, limits.most);
        return value ? std::optional(static_cast<T>(*value)) : std::nullopt;
    }
}

template <class T>
std::string kind(const Limits& limits) {
    if constexpr (std::is_same_v<T, bool>) {
        return "boolean";
    } else if constexpr (std::is_same_v<T, std::string>) {
        return "string";
    } else if constexpr (std::is_same_v<T, base::Duration>) {
        return limits.shortest == base::Duration::zero() ? "duration"
                                                         : "duration, " + text_of(limits.shortest) + " at least";
    } else if constexpr (std::is_same_v<T, Bind>) {
        return base::joined(bind_words, [](const auto& word) { return "`\"" + std::string(word.text) + "\"`"; });
    } else if constexpr (std::is_same_v<T, std::vector<std::uint32_t>>) {
        return "list of " + bounded("integers", limits, true);
    } else {
        return bounded(std::is_floating_point_v<T> ? "number" : "integer", limits, !std::is_floating_point_v<T>);
    }
}

/// The part of a study that has such members; null: it has none.
template <class Part>
auto* part_of(auto& spec) {
    const auto there = [](auto& optional) { return optional ? &*optional : nullptr; };
    if constexpr (std::is_same_v<Part, StudySpec>)
        return &spec;
    else if constexpr (std::is_same_v<Part, ProgramSpec>)
        return there(spec.trainable.program);
    else if constexpr (std::is_same_v<Part, StagingSpec>)
        return &spec.staging;
    else if constexpr (std::is_same_v<Part, ResourceSpec>)
        return &spec.resources;
    else if constexpr (std::is_same_v<Part, SearcherSpec>)
        return &spec.searcher;
    else if constexpr (std::is_same_v<Part, StopSpec>)
        return &spec.stop;
    else if constexpr (std::is_same_v<Part, StudyStop>)
        return &spec.stop.study;
    else if constexpr (std::is_same_v<Part, PlateauStop>)
        return there(spec.stop.plateau);
    else if constexpr (std::is_same_v<Part, FailureSpec>)
        return &spec.failure;
    else if constexpr (std::is_same_v<Part, CheckpointSpec>)
        return &spec.checkpoint;
    else if constexpr (std::is_same_v<Part, OutputSpec>)
        return &spec.output;
    else if constexpr (std::is_same_v<Part, SlurmSpec>)
        return &spec.slurm;
    else if constexpr (std::is_same_v<Part, PredictSpec>)
        return &spec.predict;
    else if constexpr (std::is_same_v<Part, HookSpec>)
        return &spec.hooks;
}

/// A key whose value `Access` finds in a study; null: the study has no such part. `standard`: of one that may be absent
/// and is worked out then.
template <auto Access>
constexpr KeyRow row_of(std::string_view key, Later later, Limits limits, std::string_view meaning,
                        std::string_view standard) {
    using Held = std::remove_pointer_t<decltype(Access(std::declval<StudySpec&>()))>;
    using Type = typename Plain<Held>::Type;
    KeyRow row{.key = key, .takes = {}, .standard = standard, .meaning = meaning, .later = later, .limits = limits};
    row.read = [](TableReader& table, const KeyRow& of, StudySpec& spec) {
        if (const auto value = take<Type>(table, of)) *Access(spec) = *value;
    };
    row.write = [](const StudySpec& spec) -> std::string {
        const Held* found = Access(spec);
        if (found == nullptr) return {};
        const Held& held = *found;
        if constexpr (!std::is_same_v<Held, Type>)
            return held ? text_of(*held) : std::string();
        else if constexpr (std::is_same_v<Held, std::string> || std::is_same_v<Held, std::vector<std::uint32_t>>)
            return held.empty() ? std::string() : text_of(held);
        else
            return text_of(held);
    };
    row.copy = [](StudySpec& to, const StudySpec& from) {
        Held* held = Access(to);
        const Held* other = Access(from);
        if (held != nullptr && other != nullptr) *held = *other;
    };
    row.kind = &kind<Type>;
    return row;
}
template <class Part, class Held>
Part class_of(Held Part::*);
/// A key that this member holds.
template <auto Member>
constexpr KeyRow of(std::string_view key, Later later, Limits limits, std::string_view meaning,
                    std::string_view standard = {}) {
    constexpr auto access = [](auto& spec) {
        auto* part = part_of<decltype(class_of(Member))>(spec);
        return part == nullptr ? nullptr : &(part->*Member);
    };
    return row_of<access>(key, later, limits, meaning, standard);
}
/// The same, of a table whose members others have, too.
template <auto Table, auto Member>
constexpr KeyRow in(std::string_view key, Later later, std::string_view meaning, std::string_view standard = {}) {
    constexpr auto access = [](auto& spec) { return &((spec.*Table).*Member); };
    return row_of<access>(key, later, {}, meaning, standard);
}

/// A key with a parser of its own.
constexpr KeyRow own(std::string_view key, Later later, std::string_view takes, std::string_view standard,
                     std::string_view meaning) {
    return {.key = key, .takes = takes, .standard = standard, .meaning = meaning, .later = later};
}

} // namespace rows
} // namespace ranktune::study
