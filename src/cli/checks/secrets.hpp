// SPDX-License-Identifier: Apache-2.0
#pragma once
// Removes secrets from text that a user sends to support.

#include <string>

namespace ranktune::cli {

/// The text with "(removed)" in place of values whose names mark them as secrets (`API_KEY = x`, `--api-key x`,
/// `"--api-key", "x"`, `DB_PWD=x`, `Authorization: Bearer x`), of user and password in a URL, and of the content of PEM
/// blocks (a block without END reaches to the end of the text). Lines are cut after 4,000 characters.
[[nodiscard]] std::string without_secrets(const std::string& text);

} // namespace ranktune::cli
