// SPDX-License-Identifier: Apache-2.0
#pragma once
// Common mistakes of syntax in a study file, in the words of somebody who sees the line; the TOML library knows only
// which character it did not expect.

#include <optional>
#include <string>
#include <string_view>

#include "study/parse/toml_tree.hpp"

namespace ranktune::study {

struct SyntaxAdvice {
    std::string text;
    Position at;
};

/// For a text that is not valid TOML at `at`. nullopt: no mistake that is known here.
[[nodiscard]] std::optional<SyntaxAdvice> syntax_advice(std::string_view text, Position at);

} // namespace ranktune::study
