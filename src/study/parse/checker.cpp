// SPDX-License-Identifier: Apache-2.0
#include "study/parse/checker.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <tuple>

#include "ranktune/base/text.hpp"
#include "ranktune/base/utf8.hpp"
#include "ranktune/space/value.hpp"

namespace ranktune::study {
namespace {

/// A mistake in an override quotes it in place of a position.
std::string with_override(const Node& node, std::string message) {
    if (!node.override_by.empty()) message += "  (override " + in_quotes(node.override_by) + ")";
    return message;
}

/// "an integer from 1 to 8", "an integer >= 1": without the upper limit if it is irrelevant.
std::string range_text(const std::string& what, double low, double high, bool bounded) {
    if (!std::isfinite(low)) return bounded ? what + " <= " + space::number_text(high) : what;
    if (bounded) return what + " from " + space::number_text(low) + " to " + space::number_text(high);
    return what + " >= " + space::number_text(low);
}

std::string range_text(std::int64_t low, std::int64_t high, bool bounded) {
    const std::string what = "an integer";
    if (low == std::numeric_limits<std::int64_t>::min()) return bounded ? what + " <= " + std::to_string(high) : what;
    if (bounded) return what + " from " + std::to_string(low) + " to " + std::to_string(high);
    return what + " >= " + std::to_string(low);
}

std::string value_text(const Node& node) {
    switch (node.kind) {
        case Node::Kind::boolean:
            return node.boolean ? "true" : "false";
        case Node::Kind::integer:
            return std::to_string(node.integer);
        case Node::Kind::real:
            return space::float_text(node.real);
        case Node::Kind::string:
            return in_quotes(node.text);
        case Node::Kind::time:
            return node.text;
        default:
            return "";
    }
}

struct ByteUnit {
    std::string_view name;
    double bytes;
};
constexpr std::array<ByteUnit, 8> byte_units = {{{"KB", 1e3},
                                                 {"MB", 1e6},
                                                 {"GB", 1e9},
                                                 {"TB", 1e12},
                                                 {"KiB", 0x1p10},
                                                 {"MiB", 0x1p20},
                                                 {"GiB", 0x1p30},
                                                 {"TiB", 0x1p40}}};

/// `500GB`, `1.5 TiB`.
std::optional<std::uint64_t> bytes_of(std::string_view text) {
    double number = 0.0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) return std::nullopt;
    std::string_view name(end, static_cast<std::size_t>(text.data() + text.size() - end));
    while (name.starts_with(' ')) name.remove_prefix(1);
    for (const ByteUnit& unit : byte_units) {
        const double bytes = std::floor(number * unit.bytes);
        if (name == unit.name && bytes >= 1.0 && bytes < 0x1p63) return static_cast<std::uint64_t>(bytes);
    }
    return std::nullopt;
}

std::string unit_names() {
    std::vector<std::string_view> names;
    for (const ByteUnit& unit : byte_units) names.push_back(unit.name);
    return base::join(names);
}

} // namespace

std::string in_quotes(std::string_view text) {
    constexpr std::size_t longest = 60;
    std::size_t end = std::min(text.size(), longest);
    // The cut must not split a UTF-8 character.
    while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    return '"' + base::printable(text.substr(0, end)) + (end < text.size() ? "...\"" : "\"");
}

std::string text_or_kind(const Node& node) {
    return node.is(Node::Kind::string) ? in_quotes(node.text) : std::string(kind_text(node));
}

std::string either(std::span<const std::string_view> texts) {
    std::string out;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        if (i > 0) out += i + 1 == texts.size() ? " or " : ", ";
        out += "\"" + std::string(texts[i]) + "\"";
    }
    return out;
}

void Mistakes::add(Position at, std::string key, std::string message) {
    // A key may hold anything between quotes; the message is one line per mistake.
    for (std::size_t i = 0; (i = key.find_first_of("\n\t", i)) != std::string::npos; i += 2)
        key.replace(i, 1, key[i] == '\n' ? "\\n" : "\\t");
    mistakes_.push_back({at.line, at.column, std::move(key), std::move(message)});
}
void Mistakes::value(const Node& node, std::string key, std::string message) {
    add(node.at, std::move(key), with_override(node, std::move(message)));
}
void Mistakes::key(const Node& node, std::string key, std::string message) {
    if (node.key_at.line == 0) message = with_override(node, std::move(message));
    add(node.key_at, std::move(key), std::move(message));
}
void Mistakes::missing(const Node* table, std::string key, std::string message) {
    add(table == nullptr ? Position{} : table->at, std::move(key), std::move(message));
}

std::vector<Mistake> Mistakes::sorted() const {
    std::vector<Mistake> sorted = mistakes_;
    std::ranges::stable_sort(sorted, [](const Mistake& a, const Mistake& b) {
        return std::tuple(a.line == 0, a.line, a.column) < std::tuple(b.line == 0, b.line, b.column);
    });
    return sorted;
}

TableReader::TableReader(const Node* table, std::string name, const KeyTable& keys, Mistakes& mistakes)
    : table_(table), name_(std::move(name)), keys_(keys), mistakes_(mistakes) {
    if (table_ == nullptr || table_->is(Node::Kind::table)) return;
    mistakes_.value(*table_, name_, "needs a table, not " + std::string(kind_text(*table_)));
    table_ = nullptr;
    wrong_ = true;
}

const Node* TableReader::take(std::string_view key) {
    taken_.push_back(key);
    return table_ == nullptr ? nullptr : table_->find(key);
}

void TableReader::wrong_kind(const Node& node, std::string_view key, const std::string& wanted) {
    const std::string shown = value_text(node);
    mistakes_.value(
        node, dotted(key),
        "needs " + wanted + ", not " + std::string(kind_text(node)) + (shown.empty() ? "" : " (" + shown + ")"));
}

std::optional<std::string> TableReader::string(std::string_view key) {
    const Node* node = take(key);
    if (node == nullptr) return std::nullopt;
    const bool scalar = !node->is(Node::Kind::array) && !node->is(Node::Kind::table);
    // On the command line quotes are for the shell: study.name=$SLURM_JOB_ID is a string.
    if (node->is(Node::Kind::string) || (scalar && !node->override_by.empty())) return node->text;
    const std::string shown = scalar ? " (" + node->text + "); put it in quotes: \"" + node->text + "\"" : "";
    mistakes_.value(*node, dotted(key), "needs a string, not " + std::string(kind_text(*node)) + shown);
    return std::nullopt;
}

std::optional<bool> TableReader::boolean(std::string_view key) {
    const Node* node = take(key);
    if (node == nullptr) return std::nullopt;
    if (node->is(Node::Kind::boolean)) return node->boolean;
    wrong_kind(*node, key, "true or false");
    return std::nullopt;
}

std::optional<std::int64_t> TableReader::integer(std::string_view key, std::int64_t low, std::int64_t high) {
    const Node* node = take(key);
    if (node == nullptr) return std::nullopt;
    const bool too_large = node->is(Node::Kind::integer) && node->integer > high;
    const std::string wanted = range_text(low, high, too_large || high < 1'000'000'000);
    if (!node->is(Node::Kind::integer)) {
        wrong_kind(*node, key, wanted);
    } else if (node->integer < low || node->integer > high) {
        mistakes_.value(*node, dotted(key), "needs " + wanted + ", not " + std::to_string(node->integer));
    } else {
        return node->integer;
    }
    return std::nullopt;
}

std::optional<std::uint64_t> TableReader::bytes(std::string_view key) {
    const Node* node = take(key);
    if (node == nullptr) return std::nullopt;
    if (node->is(Node::Kind::integer)) {
        const auto whole = integer(key, 1, std::numeric_limits<std::int64_t>::max());
        return whole ? std::optional(static_cast<std::uint64_t>(*whole)) : std::nullopt;
    }
    auto bytes = node->is(Node::Kind::string) ? bytes_of(node->text) : std::nullopt;
    if (!bytes)
        complain(key, "needs a number of bytes, or text with one of the units " + unit_names() +
                          ", as in \"500GB\", not " + text_or_kind(*node));
    return bytes;
}

std::optional<std::vector<std::uint32_t>> TableReader::integers(std::string_view key, std::int64_t low,
                                                                std::int64_t high) {
    const Node* node = take(key);
    if (node == nullptr) return std::nullopt;
    const auto fits = [&](const Node& item) {
        return item.is(Node::Kind::integer) && item.integer >= low && item.integer <= high;
    };
    if (!node->is(Node::Kind::array) || node->items.empty() || !std::ranges::all_of(node->items, fits)) {
        mistakes_.value(*node, dotted(key),
                        "needs a list of integers from " + std::to_string(low) + " to " + std::to_string(high) +
                            ", as in [" + std::to_string(low) + ", " + std::to_string(high) + "]");
        return std::nullopt;
    }
    std::vector<std::uint32_t> numbers;
    for (const Node& item : node->items) numbers.push_back(static_cast<std::uint32_t>(item.integer));
    return numbers;
}

std::optional<double> TableReader::number(std::string_view key, double low, double high) {
    const Node* node = take(key);
    if (node == nullptr) return std::nullopt;
    const std::string wanted = range_text("a number", low, high, high < 1e15);
    if (!node->is_number()) {
        wrong_kind(*node, key, wanted);
        return std::nullopt;
    }
    const double value = node->is(Node::Kind::integer) ? static_cast<double>(node->integer) : node->real;
    if (std::isfinite(value) && value >= low && value <= high) return value;
    mistakes_.value(*node, dotted(key), "needs " + wanted + ", not " + value_text(*node));
    return std::nullopt;
}

std::optional<base::Duration> TableReader::duration(std::string_view key, base::Duration low, std::string_view why) {
    const Node* node = take(key);
    if (node == nullptr) return std::nullopt;
    if (!node->is(Node::Kind::string)) {
        wrong_kind(*node, key, "a duration in quotes, as in \"90m\" or \"02:30:00\"");
        return std::nullopt;
    }
    try {
        const base::Duration duration = parse_duration(node->text);
        if (duration > base::Duration::zero() && duration >= low) return duration;
        const std::string wanted =
            low > base::Duration::zero() ? "of at least " + duration_text(low) : "longer than zero";
        mistakes_.value(*node, dotted(key),
                        "needs a duration " + wanted + ", not " + in_quotes(node->text) +
                            (why.empty() ? "" : "; " + std::string(why)));
    } catch (const base::UsageError& error) {
        mistakes_.value(*node, dotted(key), error.what());
    }
    return std::nullopt;
}

std::optional<std::size_t> TableReader::one_of(std::string_view key, std::span<const std::string_view> texts) {
    const Node* node = take(key);
    if (node == nullptr) return std::nullopt;
    if (!node->is(Node::Kind::string)) {
        wrong_kind(*node, key, either(texts));
        return std::nullopt;
    }
    const auto found = std::ranges::find(texts, node->text);
    if (found != texts.end()) return static_cast<std::size_t>(found - texts.begin());
    std::string why = keys_.explain_unknown_word(dotted(key), node->text);
    if (why.empty()) {
        const std::string_view best = base::nearest(node->text, texts);
        if (!best.empty()) why = "did you mean \"" + std::string(best) + "\"?";
    }
    mistakes_.value(
        *node, dotted(key),
        "unknown value " + in_quotes(node->text) + "; accepted: " + either(texts) + (why.empty() ? "" : "; " + why));
    return std::nullopt;
}

void TableReader::require(std::string_view key, const std::string& what) {
    if (!has(key) && !wrong_) mistakes_.missing(table_, dotted(key), "missing; " + what);
}

void TableReader::complain(std::string_view key, const std::string& message) {
    if (const Node* node = take(key); node != nullptr) {
        mistakes_.value(*node, dotted(key), message);
    } else if (!wrong_) {
        mistakes_.missing(table_, dotted(key), message);
    }
}

void TableReader::refuse(std::string_view key, const std::string& message) {
    if (const Node* node = take(key); node != nullptr) mistakes_.key(*node, dotted(key), message);
}

void TableReader::finish() {
    if (table_ == nullptr) return;
    for (const auto& [key, node] : table_->members) {
        if (std::ranges::find(taken_, key) != taken_.end()) continue;
        mistakes_.key(node, dotted(key), keys_.explain_unknown_key(name_, key));
    }
}

} // namespace ranktune::study
