// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ranges as other tools write them (W&B, NNI, Ax, Optuna, ConfigSpace, Syne Tune, Katib, ...). In [space] they would be
// nested tables of constants, and nothing would be tuned.

#include <string>
#include <string_view>

#include "study/parse/toml_tree.hpp"

namespace ranktune::study {

/// What to say about a table that is such a range, with the domain to write instead; empty: it is none. Members of
/// other names do not hide a range that is beyond doubt. A table with a member in the form of this program (a call,
/// { domain = ... }, { value = ... }) is none. `name`: of the hyper-parameter, without those of the tables around it.
[[nodiscard]] std::string foreign_range(const Node& table, const std::string& name);

/// The same for a list: of tables, which gives several hyper-parameters or a choice between tables, or of texts that
/// are domains.
[[nodiscard]] std::string foreign_list(const Node& list, const std::string& name);

/// `{ domain = ..., condition = ... }` or `{ value = ... }`: these keys and no others.
[[nodiscard]] bool is_long_form(const Node& node);

/// Whether a text is a domain that can be read.
[[nodiscard]] bool is_domain(const std::string& text);

/// Whether foreign_range reads a member of this name: as constants, such members need the form { value = ... }.
[[nodiscard]] bool is_word_of_ranges(std::string_view member);

/// In small letters, without '_', '-' and blanks.
[[nodiscard]] std::string plain_word(std::string_view text);

/// Whether a plain_word() names a distribution, which leaves no doubt: "q_log_uniform_values", "norm".
[[nodiscard]] bool is_distribution(std::string_view word);

} // namespace ranktune::study
