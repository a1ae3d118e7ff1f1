// SPDX-License-Identifier: Apache-2.0
#pragma once
// Withdraws a checkpoint of a program that was committed, and is not the state that it seems to be.

#include <string>

#include "storage/file_system.hpp"

namespace ranktune::storage {

/// Writes `why` into the place of its manifest: from now on `CheckpointStore::locate` throws DamageError with it. The
/// files stay. `checkpoint`: CheckpointRef::path. Throws base::IoError.
void set_aside(FileSystem& files, const std::string& study_directory, const std::string& checkpoint,
               const std::string& why);

} // namespace ranktune::storage
