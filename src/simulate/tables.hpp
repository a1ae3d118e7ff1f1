// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads a TOML file whose keys all lie in tables: the model and the failures.

#include <functional>
#include <string>
#include <vector>

#include "study/parse/checker.hpp"

namespace ranktune::simulate {

/// The table of this name, which the file may lack.
using TableNamed = std::function<study::TableReader(const char* name)>;

/// Calls `read` with the tables of `text`. `keys`: all that the file may have, `table.key`. Throws
/// study::StudyFileError with every mistake and its place.
void read_tables(const std::string& text, const std::string& file, const std::vector<std::string>& keys,
                 const std::function<void(const TableNamed&)>& read);

} // namespace ranktune::simulate
