// SPDX-License-Identifier: Apache-2.0
#include "space/scanner.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace ranktune::space {
namespace {

constexpr int deepest_list = 32; ///< the reader is recursive

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/// Encodes one code point of the basic plane.
void append_utf8(std::string& out, std::uint32_t code) {
    if (code < 0x80) {
        out += static_cast<char>(code);
    } else if (code < 0x800) {
        out += static_cast<char>(0xC0 | (code >> 6));
        out += static_cast<char>(0x80 | (code & 0x3F));
    } else {
        if (code < 0x10000) {
            out += static_cast<char>(0xE0 | (code >> 12));
        } else {
            out += static_cast<char>(0xF0 | (code >> 18));
            out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
        }
        out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
        out += static_cast<char>(0x80 | (code & 0x3F));
    }
}

/// The whole token as a number; false if it is none. Digits alone are an integer, unless they do not fit 64 bits.
bool read_number(const std::string& token, Value& out) {
    const char* const begin = token.data() + (token.starts_with('+') ? 1 : 0);
    const char* const end = token.data() + token.size();
    std::int64_t whole = 0;
    const auto as_int = std::from_chars(begin, end, whole);
    if (as_int.ec == std::errc() && as_int.ptr == end) {
        out = whole;
        return true;
    }
    double real = 0.0;
    const auto as_real = std::from_chars(begin, end, real);
    out = real;
    return as_real.ec == std::errc() && as_real.ptr == end;
}

} // namespace

bool Scanner::is_name_part(char c) const {
    return is_letter(c) || is_digit(c) || c == '.' || c == '-' || more_.find(c) != std::string_view::npos;
}

void Scanner::skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
}

bool Scanner::at_end() {
    skip_space();
    return at_ == text_.size();
}

bool Scanner::sees(std::string_view token) {
    skip_space();
    return text_.substr(at_).starts_with(token);
}

bool Scanner::take(std::string_view token) {
    if (!sees(token)) return false;
    at_ += token.size();
    return true;
}

void Scanner::expect(std::string_view token) {
    if (!take(token)) fail("'" + std::string(token) + "'");
}

std::string_view Scanner::peek_name() {
    skip_space();
    if (at_ == text_.size() || !is_letter(text_[at_])) return {};
    std::size_t end = at_;
    while (end < text_.size() && is_name_part(text_[end])) ++end;
    return text_.substr(at_, end - at_);
}

std::string_view Scanner::name() {
    const std::string_view found = peek_name();
    at_ += found.size();
    return found;
}

std::string_view Scanner::argument() {
    skip_space();
    const std::size_t begin = at_;
    for (int open = 0; at_ < text_.size(); ++at_) {
        const char c = text_[at_];
        if (open == 0 && (c == ',' || c == ')')) break;
        open += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    }
    return text_.substr(begin, at_ - begin);
}

std::size_t Scanner::column() {
    skip_space();
    const auto before = text_.substr(0, at_);
    return 1 + static_cast<std::size_t>(std::ranges::count_if(before, [](char c) { return (c & 0xC0) != 0x80; }));
}

void Scanner::fail(std::string_view expected) {
    skip_space();
    std::string found = "the end";
    if (at_ < text_.size()) {
        std::size_t end = at_ + 1;
        if (is_name_part(text_[at_])) {
            while (end < text_.size() && is_name_part(text_[end])) ++end;
        } else {
            while (end < text_.size() && (static_cast<unsigned char>(text_[end]) & 0xC0) == 0x80) ++end;
        }
        found = "'" + std::string(text_.substr(at_, end - at_)) + "'";
    }
    throw SyntaxError("expected " + std::string(expected) + " at column " + std::to_string(column()) + ", found " +
                      found);
}

Value Scanner::literal(bool lists) {
    skip_space();
    const char next = at_ < text_.size() ? text_[at_] : '\0';
    if (next == '\'' || next == '"') return quoted();
    if (next == '[' && lists) return list();
    if (is_digit(next) || next == '+' || next == '-' || next == '.') return number();
    const std::string_view word = peek_name();
    if (word == "inf" || word == "nan") return number();
    if (word == "true" || word == "false") return name() == "true";
    if (word == "None") {
        (void)name();
        return Value::none();
    }
    if (word == "True" || word == "False") fail("a value (write true or false in lower case)");
    fail(lists ? "a number, a string in quotes, true, false, None or a list"
               : "a number, a string in quotes, true, false or None");
}

Value Scanner::number() {
    std::string token;
    std::size_t end = at_;
    for (; end < text_.size(); ++end) {
        const char c = text_[end];
        const bool sign = c == '+' || c == '-';
        const char before = end > at_ ? text_[end - 1] : '\0';
        if (sign && before != '\0' && before != 'e' && before != 'E') break;
        if (!sign && !is_digit(c) && !is_letter(c) && c != '.') break;
        // As in TOML, an underscore may stand between two digits.
        if (c == '_' && is_digit(before) && end + 1 < text_.size() && is_digit(text_[end + 1])) continue;
        token += c;
    }
    Value value;
    if (!read_number(token, value)) fail("a number");
    at_ = end;
    return value;
}

void Scanner::escape(std::string& out) {
    constexpr std::string_view codes = "\"\\ntrbf";
    constexpr std::string_view meanings = "\"\\\n\t\r\b\f";
    const char code = at_ < text_.size() ? text_[at_] : '\0';
    if (const std::size_t found = codes.find(code); found != std::string_view::npos && code != '\0') {
        out += meanings[found];
        ++at_;
        return;
    }
    std::uint32_t number = 0;
    const std::size_t wanted = code == 'u' ? 4 : code == 'U' ? 8 : 0;
    const std::string_view digits = wanted > 0 ? text_.substr(at_ + 1, wanted) : std::string_view();
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
    if (wanted == 0 || digits.size() != wanted || read.ec != std::errc() || read.ptr != digits.data() + wanted ||
        number > 0x10FFFF)
        fail("one of the escapes \\\" \\\\ \\n \\t \\r \\b \\f \\uXXXX \\UXXXXXXXX");
    append_utf8(out, number);
    at_ += 1 + wanted;
}

std::string Scanner::quoted() {
    const char quote = text_[at_];
    const std::size_t start = at_;
    std::string out;
    for (++at_; at_ < text_.size() && text_[at_] != quote;) {
        const char c = text_[at_++];
        if (c == '\\' && quote == '"') {
            escape(out);
        } else {
            out += c;
        }
    }
    if (at_ == text_.size()) {
        at_ = start;
        fail("a string that ends with the quote it began with");
    }
    ++at_;
    return out;
}

Value Scanner::list() {
    if (++depth_ > deepest_list) fail("at most 32 lists inside each other");
    expect("[");
    Value::List values;
    while (!take("]")) {
        values.push_back(literal(true));
        if (sees("]")) continue;
        if (!take(",")) fail("',' or ']'");
    }
    --depth_;
    return values;
}

} // namespace ranktune::space
