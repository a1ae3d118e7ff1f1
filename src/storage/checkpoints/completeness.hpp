// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether what a framework saved in many files is all there, told by names of files.

#include <string>
#include <vector>

#include "storage/file_system.hpp"

namespace ranktune::storage {

/// What a folder with these entries lacks, as the rest of a sentence; empty: nothing, as far as its names tell. Knows
/// torch.distributed.checkpoint (`.metadata`, which is written last and names the other files), DeepSpeed (`latest`)
/// and Megatron (`latest_checkpointed_iteration.txt`). Throws base::IoError.
[[nodiscard]] std::string what_is_missing(FileSystem& files, const std::string& folder,
                                          const std::vector<std::string>& names);

} // namespace ranktune::storage
