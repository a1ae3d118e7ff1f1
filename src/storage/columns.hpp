// SPDX-License-Identifier: Apache-2.0
#pragma once
// Columns of a table that a user made: the one-dimensional data sets in the root of an HDF5 file.

#include <string>
#include <vector>

#include "storage/results.hpp"

namespace ranktune::storage {

/// Integers, floating-point numbers and strings (fixed or variable length); other data sets and groups are left out. In
/// the order of their names. Throws base::FormatError, naming the file.
[[nodiscard]] std::vector<Column> read_columns(const std::string& path);

} // namespace ranktune::storage
