// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which commit of the user's code a study ran with. Read from git's files: git itself may be missing on compute nodes.

#include <string>

namespace ranktune::studydir {

/// The commit that is checked out in `directory` or in the nearest folder above it that git knows, as git writes it;
/// empty: there is none, or git's files cannot be read. Changes that are not committed do not show.
[[nodiscard]] std::string source_commit(const std::string& directory);

} // namespace ranktune::studydir
