// SPDX-License-Identifier: Apache-2.0
#pragma once
// Options that this program does not have, but others do.

#include <string>
#include <string_view>

namespace ranktune::cli {

/// Whether a word of the command line looks like an option, and not like a negative number.
[[nodiscard]] bool is_option(std::string_view word);

/// What somebody means by an option that `verb` does not have, after "; ": `-n 4` of mpirun, `--num_trials 9` for a key
/// of the study file. Empty: not known.
[[nodiscard]] std::string option_advice(std::string_view option, std::string_view verb);

} // namespace ranktune::cli
