// SPDX-License-Identifier: Apache-2.0
#pragma once
// OutputFile: one HDF5 file that many processes write, each its own rows, and any of which may be killed. The file gets
// its final shape when it is made; afterwards its metadata never change, so it can be read at any time.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ranktune/base/dtype.hpp"
#include "storage/file_system.hpp"

namespace ranktune::storage {

/// What the file holds. Processes that write one file have the same form.
struct OutputForm {
    struct Column {
        std::string name; ///< of the data set [rows, row...]
        base::DType type = base::DType::float32;
        std::vector<std::uint64_t> row = {}; ///< shape of a row; empty: a number
        [[nodiscard]] std::uint64_t row_bytes() const;
    };
    std::uint64_t rows = 0; ///< at least one
    std::vector<Column> columns;
    std::vector<std::pair<std::string, std::string>> attributes; ///< of the root: names and values
};

/// Used by one thread. Not collective.
class OutputFile {
  public:
    /// Opens the file at `path`, or makes it: under the name `<path>.<writer>.tmp` first, then published by a link. Any
    /// number of processes may do so at once, if each has a `writer` number of its own; whoever finds the file removes
    /// such names, which killed processes left. Takes room on the disk for all rows, where the file system can. Rows
    /// that nobody has written are zero. Throws base::IoError; base::FormatError when a file of another form is there.
    OutputFile(FileSystem& files, const std::string& path, std::uint32_t writer, const OutputForm& form);

    /// Rows [begin, end) that this process alone writes now.
    struct Range {
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
    };
    /// Writes rows [first_row, first_row + n) of a column, n being what `rows` has room for; they are some of `range`.
    /// Pages on which processes of other nodes may write rows too are locked meanwhile. Throws base::IoError.
    void write(std::size_t column, std::uint64_t first_row, std::span<const std::byte> rows, Range range);
    /// What was written survives the loss of this node. Throws base::IoError; the rows have to be written again then,
    /// to a file that is opened anew. Throws base::Error when somebody has removed the file since it was opened.
    void sync();

  private:
    struct Place {
        std::uint64_t offset = 0;
        std::uint64_t row_bytes = 0;
    };
    FileSystem& files_;
    std::string path_;
    std::unique_ptr<File> file_;
    std::uint64_t rows_ = 0;
    std::vector<Place> places_; ///< of the columns
};

} // namespace ranktune::storage
