// SPDX-License-Identifier: Apache-2.0
#pragma once
// The keys of the files of a simulation, in words: the reader knows no others, and the reference is made from them.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "study/parse/checker.hpp"
#include "study/parse/keys.hpp"

namespace ranktune::simulate {

/// Keys of a model file: tables [curves], [time], [cluster].
[[nodiscard]] std::span<const study::KeyInfo> model_key_infos();
/// Keys of a file of faults: tables [trials], [ranks], [job].
[[nodiscard]] std::span<const study::KeyInfo> fault_key_infos();

/// `table.key` of each.
[[nodiscard]] std::vector<std::string> names_of(std::span<const study::KeyInfo> keys);

// ---- Reads a TOML file whose keys all lie in tables: the model, the failures, a site file.

/// The table of this name, which the file may lack.
using TableNamed = std::function<study::TableReader(const char* name)>;

/// Calls `read` with the tables of `text`. `keys`: all that the file may have, `table.key`. Throws
/// study::StudyFileError with every mistake and its place.
void read_tables(const std::string& text, const std::string& file, const std::vector<std::string>& keys,
                 const std::function<void(const TableNamed&)>& read);

} // namespace ranktune::simulate
