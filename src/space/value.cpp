// SPDX-License-Identifier: Apache-2.0
#include "ranktune/space/value.hpp"

#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/joined.hpp"
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

} // namespace

template <class T>
struct Value::Shared {
    explicit Shared(T of) : value(std::move(of)) {}
    std::atomic<std::uint32_t> users = 1;
    const T value;
    /// Whether the last user has left.
    [[nodiscard]] bool left() { return users.fetch_sub(1, std::memory_order_acq_rel) == 1; }
};

Value::Value(std::string value) : kind_(Kind::string) { data_.string = new Shared<std::string>(std::move(value)); }
Value::Value(List value) : kind_(Kind::list) { data_.list = new Shared<List>(std::move(value)); }

void Value::share() const {
    (is_string() ? data_.string->users : data_.list->users).fetch_add(1, std::memory_order_relaxed);
}

void Value::release() {
    if (is_string()) {
        if (data_.string->left()) delete data_.string;
    } else if (data_.list->left()) {
        delete data_.list;
    }
}

bool operator==(const Value& a, const Value& b) {
    if (a.kind_ != b.kind_) return false;
    switch (a.kind_) {
        case Value::Kind::boolean:
            return a.data_.boolean == b.data_.boolean;
        case Value::Kind::integer:
            return a.data_.integer == b.data_.integer;
        case Value::Kind::real:
            return a.data_.real == b.data_.real;
        case Value::Kind::string:
            return a.data_.string->value == b.data_.string->value;
        case Value::Kind::list:
            return a.data_.list->value == b.data_.list->value;
        case Value::Kind::none:
            break;
    }
    return true;
}

bool Value::as_bool() const {
    if (!is_bool()) wrong_kind("a bool", *this);
    return data_.boolean;
}

std::int64_t Value::as_int() const {
    if (!is_int()) wrong_kind("an integer", *this);
    return data_.integer;
}

double Value::as_double() const {
    if (is_int()) return static_cast<double>(data_.integer);
    if (!is_double()) wrong_kind("a number", *this);
    return data_.real;
}

const std::string& Value::as_string() const {
    if (!is_string()) wrong_kind("a string", *this);
    return data_.string->value;
}

const Value::List& Value::as_list() const {
    if (!is_list()) wrong_kind("a list", *this);
    return data_.list->value;
}

std::string_view Value::kind() const {
    constexpr std::array<std::string_view, 6> kinds = {"bool", "integer", "float", "string", "list", "none"};
    return kinds[static_cast<std::size_t>(kind_)];
}

std::string Value::text() const {
    if (is_string()) return as_string();
    if (is_list()) return "[" + base::joined(as_list(), &Value::text, ",") + "]";
    return literal();
}

std::string Value::literal() const {
    if (is_none()) return "None";
    if (is_bool()) return data_.boolean ? "true" : "false";
    if (is_int()) return int_text(data_.integer);
    if (is_double()) return float_text(data_.real);
    if (is_string()) return quoted(as_string());
    return "[" + base::joined(as_list(), &Value::literal) + "]";
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
