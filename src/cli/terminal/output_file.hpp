// SPDX-License-Identifier: Apache-2.0
#pragma once
// The output file of `-o`, written completely or not at all.

#include <functional>
#include <iosfwd>
#include <string>

namespace ranktune::cli {

/// The target of `-o`. Throws UsageError for a directory.
struct OutputFile {
    explicit OutputFile(const std::string& path);

    std::string path;     ///< with symbolic links resolved: the links stay, and their target is replaced
    bool through = false; ///< not a regular file (a device, a FIFO, a descriptor): it is written directly
};

/// Calls `write` with the open file. A regular file is written under a temporary name and renamed, so that nobody reads
/// half of it. Throws UsageError when the file cannot be opened, Error when there is no room, and whatever `write`
/// throws; then an existing file is unchanged.
void write_whole(const OutputFile& file, const std::function<void(std::ostream&)>& write);

} // namespace ranktune::cli
