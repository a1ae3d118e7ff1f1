// SPDX-License-Identifier: Apache-2.0
#pragma once
// The keys of files in words: what each takes, its default and what it does. The reference, the manual page,
// `ranktune keys` and the completions are made from this.

#include <span>
#include <string_view>

namespace ranktune::study {

/// A key of a file. Texts are Markdown; tests compare bounds and defaults with the parser.
struct KeyInfo {
    std::string_view key;      ///< `table.key`
    std::string_view takes;    ///< kind and bounds: "integer >= 1", "number 0 to 1", "boolean", "duration"
    std::string_view standard; ///< the default as the file writes it, "required", "none", or a phrase
    std::string_view meaning;  ///< at most 25 words
};

/// A table of a study file.
struct TableInfo {
    std::string_view name;
    std::string_view meaning; ///< a sentence
    /// Lines that may stand in a study file, with their headers; empty: the table is not for users.
    std::string_view example;
};

/// A domain of [space].
struct DomainInfo {
    std::string_view call;   ///< with the names of its arguments
    std::string_view values; ///< at most 25 words
};
[[nodiscard]] std::span<const DomainInfo> domain_infos();

/// Tables in the order of the file.
[[nodiscard]] std::span<const TableInfo> table_infos();

/// All keys but the options of algorithms and trainables, and the names in [space], in the order of the tables.
[[nodiscard]] std::span<const KeyInfo> key_infos();

} // namespace ranktune::study
