// SPDX-License-Identifier: Apache-2.0
#pragma once
// The file of `-o`, written whole or not at all.

#include <functional>
#include <iosfwd>
#include <string>

namespace ranktune::cli {

/// Where `-o` leads. Throws UsageError for a directory.
struct OutputFile {
    explicit OutputFile(const std::string& path);

    std::string path;     ///< behind symbolic links: they stay, and what they lead to is replaced
    bool through = false; ///< no regular file (a device, a FIFO, a descriptor): nothing can take its place
};

/// Calls `write` with the open file. A regular file is written under another name first, so that no half of it is ever
/// taken for it. Throws UsageError when it cannot be opened, Error when there is no room, and whatever `write` throws;
/// then there is no file, or the one that was there.
void write_whole(const OutputFile& file, const std::function<void(std::ostream&)>& write);

} // namespace ranktune::cli
