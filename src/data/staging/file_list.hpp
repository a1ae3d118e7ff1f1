// SPDX-License-Identifier: Apache-2.0
#pragma once
// FileList: the files that an entry of [data] stands for, and the pieces in which they are copied.

#include <cstdint>
#include <string>
#include <vector>

#include "ranktune/study/spec.hpp"

namespace ranktune::data {

/// A folder of more files is refused: parallel file systems open them one by one. (The advice of centres: one tar.)
inline constexpr std::size_t most_files = 10'000;

struct FileList {
    struct Entry {
        std::string name; ///< below `root`
        std::uint64_t bytes = 0;
    };
    std::string root;           ///< the folder above the file or folder
    std::string name;           ///< of the file or folder in `root`, and in a copy
    std::vector<Entry> entries; ///< by name
    std::uint64_t bytes = 0;    ///< of all
    /// Another one whenever a name, size or time of change of a file differs. The same on all nodes.
    std::uint64_t key = 0;

    /// "0123456789abcdef-1048576". `start`: of the node (start_of_node); a copy from before it may be torn.
    [[nodiscard]] std::string copy_name(const std::string& start) const;
};

/// Differs from start to start of the machine, and from machine to machine.
[[nodiscard]] std::string start_of_node();

/// Throws base::IoError; base::UsageError for a folder of too many files, with the command that makes one file of it.
[[nodiscard]] FileList list_files(const study::DataFile& file);

/// What HDF5 files of the list take from files beside them, which a copy would lack (virtual data sets, external
/// storage, external links): "data set 'x' is virtual: ...". Empty: nothing. Looks at metadata alone.
[[nodiscard]] std::string part_elsewhere(const FileList& list);

/// A part of a file that is read, verified and sent as one.
struct Piece {
    std::uint32_t file = 0; ///< in FileList::entries
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
};
/// No piece is longer than `most` bytes. Empty files have none.
[[nodiscard]] std::vector<Piece> pieces_of(const FileList& list, std::uint64_t most);

} // namespace ranktune::data
