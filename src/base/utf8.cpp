// SPDX-License-Identifier: Apache-2.0
#include "ranktune/base/utf8.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>

namespace ranktune::base {
namespace {

struct Range {
    char32_t first;
    char32_t last;
};
/// Unicode 15, without what letters and emoji are composed of.
constexpr std::array<Range, 20> unseen{{{0x0000, 0x001F},     // C0
                                        {0x007F, 0x009F},     // DEL, C1
                                        {0x00AD, 0x00AD},     // soft hyphen
                                        {0x034F, 0x034F},     // joins graphemes
                                        {0x061C, 0x061C},     // direction
                                        {0x115F, 0x1160},     // fillers
                                        {0x17B4, 0x17B5},     // vowels without ink
                                        {0x180B, 0x180F},     // of Mongolian
                                        {0x200B, 0x200F},     // without width, direction
                                        {0x2028, 0x202E},     // separators, direction
                                        {0x2060, 0x206F},     // without width, direction
                                        {0x2800, 0x2800},     // a blank pattern
                                        {0x3164, 0x3164},     // filler
                                        {0xFEFF, 0xFEFF},     // byte order
                                        {0xFFA0, 0xFFA0},     // filler
                                        {0xFFF0, 0xFFFB},     // annotations
                                        {0x13430, 0x1343F},   // of hieroglyphs
                                        {0x1BCA0, 0x1BCA3},   // of shorthand
                                        {0x1D173, 0x1D17A},   // of music
                                        {0xE0000, 0xE0FFF}}}; // tags

} // namespace

bool is_unseen(const Rune& rune) {
    if (!rune.valid) return true;
    const auto* const next = std::ranges::upper_bound(unseen, rune.code, {}, &Range::first);
    return next != unseen.begin() && rune.code <= std::prev(next)->last;
}

std::string printable(std::string_view text) {
    std::string out;
    for (; !text.empty(); text.remove_prefix(first_rune(text).bytes)) {
        const Rune rune = first_rune(text);
        out += is_unseen(rune) ? "?" : text.substr(0, rune.bytes);
    }
    return out;
}

std::string escaped(std::string_view text) {
    std::string out;
    for (; !text.empty(); text.remove_prefix(first_rune(text).bytes)) {
        const Rune rune = first_rune(text);
        if (!is_unseen(rune) || rune.code == '\n' || rune.code == '\t')
            out += text.substr(0, rune.bytes);
        else
            for (std::size_t i = 0; i < rune.bytes; ++i) append_escaped(text[i], out);
    }
    return out;
}

std::string toml_escape(char32_t code) {
    char text[12];
    std::snprintf(text, sizeof text, code < 0x10000 ? "\\u%04x" : "\\U%08x", static_cast<unsigned>(code));
    return text;
}

Rune first_rune(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80) return {lead, 1, true};
    const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
    if (bytes == 0 || lead > 0xF4 || text.size() < bytes) return {lead, 1, false};
    char32_t code = lead & (0xFFU >> (bytes + 1));
    for (std::size_t i = 1; i < bytes; ++i) {
        if ((byte(i) & 0xC0U) != 0x80U) return {lead, 1, false};
        code = (code << 6) | (byte(i) & 0x3FU);
    }
    // Overlong forms, surrogates and codes beyond Unicode are not UTF-8 (RFC 3629).
    const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
    if (overlong || (code >= 0xD800 && code <= 0xDFFF) || code > 0x10FFFF) return {lead, 1, false};
    return {code, bytes, true};
}

void append_escaped(char byte, std::string& out) {
    constexpr const char* digits = "0123456789abcdef";
    const auto value = static_cast<unsigned char>(byte);
    out += "\\x";
    out += digits[value >> 4U];
    out += digits[value & 15U];
}

std::string as_utf8(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const Rune rune = first_rune(text);
        if (rune.valid && rune.code != 0)
            out += text.substr(0, rune.bytes);
        else
            append_escaped(text.front(), out);
        text.remove_prefix(rune.bytes);
    }
    return out;
}

} // namespace ranktune::base
