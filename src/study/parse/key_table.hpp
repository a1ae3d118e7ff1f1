// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which keys a study file has, what other tools call them, and which belong to later versions.

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ranktune/study/algorithm.hpp"

namespace ranktune::study {

/// The tables of a study file.
[[nodiscard]] std::span<const std::string_view> accepted_tables();

/// The keys of a study file that may name these algorithms.
class KeyTable {
  public:
    explicit KeyTable(const Algorithms& algorithms);
    /// The keys of another file than a study file (`table.key`), for which other tools have no names.
    explicit KeyTable(std::vector<std::string> keys);

    /// Every accepted key, `table.key`, except those of [space] and the options of a trainable in [trainable].
    /// docs/reference/study-file.md describes each; a test compares.
    [[nodiscard]] const std::vector<std::string>& keys() const { return keys_; }
    /// Whether a key lies in this table.
    [[nodiscard]] bool has_table(std::string_view name) const;

    /// What to say about `table.key`, which is not accepted: another tool's name, a key of a later version, a key of
    /// another table, or the nearest one.
    [[nodiscard]] std::string explain_unknown_key(std::string_view table, std::string_view key) const;
    /// The same without a list of all keys where none is near; empty then.
    [[nodiscard]] std::string guess_unknown_key(std::string_view table, std::string_view key) const;
    /// The same for a table, or for a key outside all tables.
    [[nodiscard]] std::string explain_unknown_table(std::string_view name) const;

    /// What to say about a value of a key, such as scheduler.type, that is another tool's word; empty: it is none.
    [[nodiscard]] std::string explain_unknown_word(std::string_view dotted_key, std::string_view word) const;

  private:
    /// An option that another tool calls `name`.
    struct ForeignOption {
        std::string name;
        std::string tool;
        std::string key; ///< ours, dotted
        std::string algorithm;
    };
    /// A word that another tool has for `meant`, which `key` accepts.
    struct Word {
        std::string key;
        std::string word;
        std::string meant;
    };

    void add(const std::string& table, const std::vector<const AlgorithmInfo*>& algorithms);
    [[nodiscard]] std::string explain_foreign(std::string_view table, std::string_view name) const;
    [[nodiscard]] std::vector<std::string_view> same_name_elsewhere(std::string_view key) const;
    [[nodiscard]] std::vector<std::string_view> keys_of(std::string_view table) const;

    [[nodiscard]] std::string explain_other(std::string_view table, std::string_view key) const;

    std::vector<std::string> keys_;
    std::vector<std::string> tables_;
    bool of_study_ = true; ///< other tools have names for the keys of a study file
    std::vector<ForeignOption> foreign_options_;
    std::vector<Word> words_;
};

/// Whether an option of this name is probably meant as study.max_iterations.
[[nodiscard]] bool means_max_iterations(std::string_view option);

} // namespace ranktune::study
