// SPDX-License-Identifier: Apache-2.0
#include "study/parse/foreign/foreign_text.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/number_in.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/space/domain.hpp"
#include "study/parse/foreign/foreign_range.hpp"

namespace ranktune::study {
namespace {

using View = std::string_view;
using space::Value;

std::optional<Value> number_in(View text) {
    if (const auto whole = base::number_in<std::int64_t>(text)) return Value(*whole);
    if (const auto real = base::number_in<double>(text)) return Value(*real);
    return std::nullopt;
}

/// A number, or a word without blanks, in quotes or not.
std::optional<Value> item_in(std::string text) {
    if (text.size() > 1 && text.front() == text.back() && (text.front() == '\'' || text.front() == '"'))
        text = text.substr(1, text.size() - 2);
    if (const auto number = number_in(text)) return number;
    const auto in_words = [](unsigned char c) { return std::isalnum(c) != 0 || View("_.+-").find(c) != View::npos; };
    if (text.empty() || !std::ranges::all_of(text, in_words)) return std::nullopt;
    return Value(text);
}

std::vector<std::string> split(View text, View separator) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at != View::npos;) {
        const std::size_t next = text.find(separator, at);
        parts.emplace_back(base::trimmed(text.substr(at, next == View::npos ? next : next - at)));
        at = next == View::npos ? next : next + separator.size();
    }
    return parts;
}

/// All of them, or nothing.
std::vector<Value> read_all(const std::vector<std::string>& parts, std::optional<Value> (*read)(std::string)) {
    std::vector<Value> values;
    for (const std::string& part : parts)
        if (auto value = read(part)) values.push_back(*std::move(value));
    if (values.size() != parts.size()) values.clear();
    return values;
}

/// What the text has instead of a domain.
struct Meant {
    std::vector<Value> values; ///< of a list; of a range, its bounds
    bool is_list = false;
    bool is_call = false; ///< a distribution with numbers
};

/// `uniform[0:1]`, `~loguniform(1, 2)`, `uniform 0 1`: a distribution, and then nothing but numbers.
bool is_like_a_call(const std::string& text) {
    const auto begin = std::ranges::find_if(text, [](unsigned char c) { return std::isalpha(c) != 0; });
    const auto end = std::find_if(begin, text.end(), [](char c) { return View(" ([:=,").find(c) != View::npos; });
    const std::string rest(end, text.end());
    const bool brackets = rest.find_first_of("([") < 2 && (text.back() == ')' || text.back() == ']');
    std::string numbers = rest;
    std::ranges::replace_if(
        numbers, [](char c) { return View("()[]:;,=").find(c) != View::npos; }, ' ');
    std::size_t count = 0;
    std::size_t others = 0;
    for (const std::string& word : split(numbers, " "))
        if (!word.empty()) ++(number_in(word) ? count : others);
    return is_distribution(plain_word(std::string(begin, end))) && (brackets || (count >= 2 && others == 0));
}

std::optional<Meant> meant_by(View written) {
    std::string text(base::trimmed(written));
    if (text.empty()) return std::nullopt;
    if (is_like_a_call(text)) return Meant{.values = {}, .is_list = false, .is_call = true};
    constexpr View opening = "([{";
    constexpr View closing = ")]}";
    const auto bracket = opening.find(text.front());
    if (bracket != View::npos && text.size() > 1 && text.back() == closing[bracket])
        text = std::string(base::trimmed(View(text).substr(1, text.size() - 2)));
    for (const View separator : {",", ";", "|"})
        if (auto values = read_all(split(text, separator), item_in); values.size() > 1)
            return Meant{.values = std::move(values), .is_list = true, .is_call = false};
    const auto number = [](std::string part) { return number_in(part); };
    for (const View separator : {"...", "..", ":", " to ", "-", "\u2013"})
        if (auto bounds = read_all(split(text, separator), number);
            bounds.size() == 2 || (bounds.size() == 3 && separator == ":"))
            return Meant{.values = std::move(bounds), .is_list = false, .is_call = false};
    return std::nullopt;
}

/// What is proposed is never refused.
std::string proposals(const Meant& meant, const std::string& name) {
    std::string lines;
    if (meant.is_list && space::problem(space::Choice{meant.values, false}).empty())
        lines = "to choose among values write " + name + " = " + Value(meant.values).literal();
    if (meant.values.size() == 2) {
        const std::string call = "uniform(" + meant.values[0].text() + ", " + meant.values[1].text() + ")";
        if (is_domain(call))
            lines += std::string(lines.empty() ? "to draw between bounds write " : ", to draw between bounds ") + name +
                     " = \"" + call + "\"";
    }
    return lines.empty() ? "a domain is written as a call, \"uniform(0, 1)\" or \"loguniform(1e-4, 1)\"" : lines;
}

} // namespace

std::string foreign_text(const std::string& text, const std::string& name) {
    const auto meant = space::looks_like_call(text) ? std::nullopt : meant_by(text);
    if (!meant) return "";
    return "would be a constant text here; " + proposals(*meant, name) + "; if the text is meant, " + name +
           " = { value = " + Value(text).literal() + " }";
}

} // namespace ranktune::study
