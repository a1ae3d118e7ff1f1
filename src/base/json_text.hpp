// SPDX-License-Identifier: Apache-2.0
#pragma once
// Just enough JSON to write small flat files (env.json, status).

#include <cstdint>
#include <string>
#include <string_view>

namespace ranktune::base {

/// A JSON string with its quotes; control characters are escaped, other bytes, UTF-8 included, pass through.
[[nodiscard]] std::string json_string(std::string_view text);
/// Shortest number that reads back as `value`; null when it is not finite (JSON has no NaN).
[[nodiscard]] std::string json_number(double value);

/// Builds an object line by line: `{"a": 1, "b": "x"}` with one member per line.
class JsonObject {
  public:
    explicit JsonObject(unsigned indent = 0) : indent_(indent) {}
    JsonObject& text(std::string_view key, std::string_view value) { return raw(key, json_string(value)); }
    JsonObject& number(std::string_view key, double value) { return raw(key, json_number(value)); }
    JsonObject& integer(std::string_view key, std::uint64_t value) { return raw(key, std::to_string(value)); }
    JsonObject& boolean(std::string_view key, bool value) { return raw(key, value ? "true" : "false"); }
    /// `json` is JSON already.
    JsonObject& raw(std::string_view key, std::string_view json);
    [[nodiscard]] std::string str() const;

  private:
    unsigned indent_;
    std::string members_;
};

} // namespace ranktune::base
