// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether the journal that a head writes still lies where the next start will look for it.

#include <string>

#include "storage/journal.hpp"

namespace ranktune::drivers {

/// What has happened to the journal's file or to the whole study directory, and what to do about it; empty: nothing.
/// Asks the file system, so it may block; throws base::IoError when that cannot say.
[[nodiscard]] std::string trouble_with_place(const storage::FileSystem& files, const storage::Journal& journal,
                                             const std::string& study_directory);

} // namespace ranktune::drivers
