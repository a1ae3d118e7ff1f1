// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text without what nobody should send to somebody who helps.

#include <string>

namespace ranktune::cli {

/// Line by line, with "(removed)" in the place of values whose names say that they are secrets (`API_KEY = x`,
/// `--api-key x`, `"--api-key", "x"`, `DB_PWD=x`, `Authorization: Bearer x`), of user and password in a URL, and of all
/// that stands between BEGIN and END of a PEM block (one without its END goes on to the end). Of longer lines only the
/// first 4,000 characters are kept.
[[nodiscard]] std::string without_secrets(const std::string& text);

} // namespace ranktune::cli
