// SPDX-License-Identifier: Apache-2.0
#include "base/json_text.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace ranktune::base {

std::string json_string(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (c == '\n') {
            out += "\\n";
        } else if (static_cast<unsigned char>(c) < 0x20) {
            char escaped[8];
            std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
            out += escaped;
        } else {
            out += c;
        }
    }
    return out += '"';
}

std::string json_number(double value) {
    if (!std::isfinite(value)) return "null";
    char digits[40];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    return {digits, end};
}

JsonObject& JsonObject::raw(std::string_view key, std::string_view json) {
    if (!members_.empty()) members_ += ",\n";
    members_.append(indent_ + 2, ' ');
    members_ += json_string(key);
    members_ += ": ";
    members_ += json;
    return *this;
}

std::string JsonObject::str() const { return "{\n" + members_ + "\n" + std::string(indent_, ' ') + "}"; }

} // namespace ranktune::base
