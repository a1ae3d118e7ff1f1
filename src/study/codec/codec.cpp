// SPDX-License-Identifier: Apache-2.0
// Reading of what is written in a way of its own.
#include <array>
#include <bit>
#include <limits>
#include <span>
#include <utility>

#include "ranktune/study/schema.hpp"

namespace ranktune::study {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie in memory");

namespace {

/// Deeper lists are refused: damaged bytes must not exhaust the stack.
constexpr int max_list_depth = 32;

space::Value value_in(Decoder& in, int depth) {
    const std::uint8_t tag = in.u8();
    switch (static_cast<ValueTag>(tag)) {
        case ValueTag::no:
            return false;
        case ValueTag::none:
            return space::Value::none();
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
            for (std::size_t i = 0; i < size; ++i) list.push_back(value_in(in, depth + 1));
            return list;
        }
    }
    throw base::FormatError("unknown kind of value " + std::to_string(tag));
}

double compact_number(Decoder& in, unsigned form) {
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

} // namespace

void get(Decoder& in, space::Value& value) { value = value_in(in, 0); }

void get(Decoder& in, space::Configuration& configuration) {
    const std::size_t size = in.count();
    std::vector<std::pair<std::string, space::Value>> entries;
    for (std::size_t i = 0; i < size; ++i) {
        std::string name = in.string();
        entries.emplace_back(std::move(name), value_in(in, 0));
    }
    configuration = space::Configuration(std::move(entries));
}

void get(Decoder& in, Verdict& verdict) {
    const std::uint8_t head = in.u8();
    verdict.verb = static_cast<Verb>(head & 7U);
    if (!is_known(verdict.verb)) throw base::FormatError("unknown verdict " + std::to_string(head & 7U));
    get(in, verdict.reason);
    verdict.a = compact_number(in, (head >> 3) & 3U);
    verdict.b = compact_number(in, (head >> 5) & 3U);
}

void get(Decoder& in, Score& score) {
    const bool feasible = in.boolean();
    const double violation = feasible ? 0.0 : in.f64();
    std::array<double, Score::max_objectives> values{};
    const std::size_t size = in.u8();
    if (size > values.size()) throw base::FormatError("a score has too many objectives");
    for (std::size_t i = 0; i < size; ++i) values[i] = in.f64();
    score = Score(std::span<const double>(values).first(size), feasible);
    score.violation = violation;
}

void get(Decoder& in, StartFrom& from) {
    const std::uint8_t kind = in.u8();
    if (kind == 0)
        from = Fresh{};
    else if (kind == 1)
        get(in, from.emplace<CheckpointRef>());
    else if (kind == 2)
        get(in, from.emplace<Donor>());
    else
        throw base::FormatError("unknown origin of an attempt " + std::to_string(kind));
}

void get(Decoder& in, std::vector<Rank>& ranks) {
    ranks.resize(in.count());
    std::uint64_t before = 0;
    for (Rank& rank : ranks) {
        before += static_cast<std::uint64_t>(in.svarint());
        if (before > std::numeric_limits<Rank::rep>::max()) throw base::FormatError("a rank is out of range");
        rank = Rank(static_cast<Rank::rep>(before));
    }
}

void get(Decoder& in, std::vector<MetricValue>& metrics) {
    const std::size_t size = in.count();
    if (size > in.left() / 9) throw base::FormatError("a list of metrics is longer than its bytes");
    metrics.clear();
    metrics.reserve(size);
    std::int64_t expected = 0;
    for (std::size_t i = 0; i < size; ++i) {
        const std::int64_t id = in.svarint();
        if (id < -expected || id > std::numeric_limits<MetricId::rep>::max() - expected)
            throw base::FormatError("the number of a metric is out of range");
        metrics.push_back({MetricId(static_cast<MetricId::rep>(expected + id)), in.f64()});
        expected += id + 1;
    }
}

void get(Decoder& in, std::string& text) {
    const auto view = in.bytes();
    text.assign(reinterpret_cast<const char*>(view.data()), view.size());
}

void get(Decoder& in, Fixed<std::uint64_t> fixed) { fixed.value = in.u64(); }

void get(Decoder& in, Fixed<std::vector<std::uint64_t>> fixed) {
    const std::size_t size = in.count();
    if (size > in.left() / sizeof(std::uint64_t)) throw base::FormatError("a list is longer than its bytes");
    fixed.value.resize(size);
    for (std::uint64_t& each : fixed.value) each = in.u64();
}

} // namespace ranktune::study
