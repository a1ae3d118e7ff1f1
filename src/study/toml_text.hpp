// SPDX-License-Identifier: Apache-2.0
#pragma once
// Values as a TOML file has them.

#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

#include "base/joined.hpp"
#include "ranktune/base/time.hpp"
#include "ranktune/space/value.hpp"
#include "ranktune/study/spec.hpp"

namespace ranktune::study {

/// In quotes, with what nobody sees escaped.
[[nodiscard]] std::string text_of(const std::string& value);
[[nodiscard]] std::string text_of(const space::Value& value);
[[nodiscard]] std::string text_of(const DataPart& part);
[[nodiscard]] std::string text_of(const DataFile& file); ///< as an entry of [data] has it
[[nodiscard]] std::string text_of(double value);
[[nodiscard]] std::string text_of(base::Duration value);
[[nodiscard]] std::string text_of(Mode mode);
[[nodiscard]] std::string text_of(Bind bind);
[[nodiscard]] std::string text_of(std::same_as<bool> auto value) { return value ? "true" : "false"; }
[[nodiscard]] std::string text_of(std::unsigned_integral auto value) requires(!std::same_as<decltype(value), bool>) {
    return std::to_string(value);
}
/// "[a, b]"
template <class T>
[[nodiscard]] std::string text_of(const std::vector<T>& list) {
    return "[" + base::joined(list, [](const T& each) { return text_of(each); }) + "]";
}

} // namespace ranktune::study
