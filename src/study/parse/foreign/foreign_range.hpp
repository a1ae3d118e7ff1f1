// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ranges as other tools write them (W&B, NNI, Ax, Optuna, ConfigSpace, Syne Tune, Katib, ...). In [space] they would be
// nested tables of constants, and nothing would be tuned.

#include <string>
#include <string_view>

#include "study/parse/toml_tree.hpp"

namespace ranktune::study {

/// What to say about a table that is such a range, with the domain to write instead; empty: it is none. A table whose
/// members are domains themselves is none, whatever their names. `name`: of the hyper-parameter.
[[nodiscard]] std::string foreign_range(const Node& table, const std::string& name);

/// The same for a list of tables, which gives several hyper-parameters or a choice between tables.
[[nodiscard]] std::string foreign_list(const Node& list, const std::string& name);

/// Whether a text is meant as a range although it is no call: `uniform[0:1]`, `~loguniform(1, 2)`, `0.1..0.9`.
[[nodiscard]] bool looks_like_foreign_call(const std::string& text);

/// Whether foreign_range reads a member of this name: as constants, such members need the form { value = ... }.
[[nodiscard]] bool is_word_of_ranges(std::string_view member);

} // namespace ranktune::study
