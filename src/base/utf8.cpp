// SPDX-License-Identifier: Apache-2.0
#include "ranktune/base/utf8.hpp"

namespace ranktune::base {

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
