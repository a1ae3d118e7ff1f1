// SPDX-License-Identifier: Apache-2.0
#include "ranktune/space/value.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "ranktune/base/error.hpp"
#include "ranktune/base/utf8.hpp"

namespace ranktune::space {
namespace {

[[noreturn]] void wrong_kind(std::string_view wanted, const Value& actual) {
    throw base::UsageError("wanted " + std::string(wanted) + ", got the " + std::string(actual.kind()) + " " +
                           actual.literal());
}

std::string int_text(std::int64_t value) {
    std::array<char, 24> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
    return {buffer.data(), end.ptr};
}

/// In single quotes if nothing has to be escaped, otherwise as a TOML basic string.
std::string quoted(std::string_view text) {
    bool plain = true;
    std::string out = "\"";
    for (std::string_view left = text; !left.empty();) {
        const base::Rune rune = base::first_rune(left);
        const bool is_escaped = rune.valid && base::is_unseen(rune);
        plain = plain && rune.code != '\'' && !is_escaped;
        if (rune.code == '"' || rune.code == '\\') {
            out += '\\';
            out += left.front();
        } else if (rune.code == '\n') {
            out += "\\n";
        } else if (rune.code == '\t') {
            out += "\\t";
        } else if (is_escaped) {
            out += base::toml_escape(rune.code);
        } else {
            out += left.substr(0, rune.bytes);
        }
        left.remove_prefix(rune.bytes);
    }
    return plain ? "'" + std::string(text) + "'" : out + '"';
}

template <class Text>
std::string list_text(const Value::List& list, std::string_view separator, Text text) {
    std::string out = "[";
    for (std::size_t i = 0; i < list.size(); ++i) {
        if (i > 0) out += separator;
        out += text(list[i]);
    }
    return out + ']';
}

} // namespace

bool Value::as_bool() const {
    if (!is_bool()) wrong_kind("a bool", *this);
    return std::get<bool>(data_);
}

std::int64_t Value::as_int() const {
    if (!is_int()) wrong_kind("an integer", *this);
    return std::get<std::int64_t>(data_);
}

double Value::as_double() const {
    if (is_int()) return static_cast<double>(std::get<std::int64_t>(data_));
    if (!is_double()) wrong_kind("a number", *this);
    return std::get<double>(data_);
}

const std::string& Value::as_string() const {
    if (!is_string()) wrong_kind("a string", *this);
    return *std::get<Shared<std::string>>(data_).at;
}

const Value::List& Value::as_list() const {
    if (!is_list()) wrong_kind("a list", *this);
    return *std::get<Shared<List>>(data_).at;
}

std::string_view Value::kind() const {
    constexpr std::array<std::string_view, 6> kinds = {"bool", "integer", "float", "string", "list", "none"};
    return kinds[data_.index()];
}

std::string Value::text() const {
    if (is_string()) return as_string();
    if (is_list()) return list_text(as_list(), ",", [](const Value& v) { return v.text(); });
    return literal();
}

std::string Value::literal() const {
    if (is_none()) return "None";
    if (is_bool()) return std::get<bool>(data_) ? "true" : "false";
    if (is_int()) return int_text(std::get<std::int64_t>(data_));
    if (is_double()) return float_text(std::get<double>(data_));
    if (is_string()) return quoted(as_string());
    return list_text(as_list(), ", ", [](const Value& v) { return v.literal(); });
}

std::string float_text(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
    std::array<char, 64> buffer{};
    char* const begin = buffer.data();
    char* const end = begin + buffer.size();
    const double size = std::abs(value);
    if (size != 0.0 && (size < 1e-4 || size >= 1e16))
        return {begin, std::to_chars(begin, end, value, std::chars_format::scientific).ptr};
    std::string text(begin, std::to_chars(begin, end, value, std::chars_format::fixed).ptr);
    if (text.find('.') == std::string::npos) text += ".0";
    return text;
}

std::string number_text(double value) {
    return value == std::trunc(value) && std::abs(value) < 1e15 ? std::to_string(static_cast<std::int64_t>(value))
                                                                : float_text(value);
}

} // namespace ranktune::space
