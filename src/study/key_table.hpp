// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which keys a study file has, what other tools call them, and which belong to later versions.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ranktune::study {

/// Every accepted key, `table.key`, of all tables but the free ones: [space], and the options of a trainable in
/// [trainable]. docs/reference/study-file.md describes each; a test compares.
[[nodiscard]] std::span<const std::string_view> accepted_keys();
/// The tables of a study file.
[[nodiscard]] std::span<const std::string_view> accepted_tables();

/// What to say about `table.key`, which this version does not accept: another tool's name, a key of a later version, a
/// key of another table, or the nearest one.
[[nodiscard]] std::string explain_unknown_key(std::string_view table, std::string_view key);
/// The same for a table, or for a key that stands above all tables.
[[nodiscard]] std::string explain_unknown_table(std::string_view name);

/// What to say about the word of a key, such as scheduler.type: another tool's name or one of a later version; empty:
/// neither.
[[nodiscard]] std::string explain_unknown_word(std::string_view dotted_key, std::string_view word);

/// Whether an option of this name is a wish to limit the training: the ceiling is study.max_iterations.
[[nodiscard]] bool means_max_iterations(std::string_view option);

} // namespace ranktune::study
