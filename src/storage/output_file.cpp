// SPDX-License-Identifier: Apache-2.0
#include "storage/output_file.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "ranktune/base/error.hpp"
#include "storage/hdf5/shell.hpp"
#include "storage/hdf5/thread.hpp"

namespace ranktune::storage {
namespace {

hdf5::Shell shell_of(const OutputForm& form) {
    return hdf5_call([&] {
        const hdf5::QuietErrors quiet;
        hdf5::ShellBuilder builder(1); // each data set begins at a page: writers on several nodes share none
        for (const auto& [name, value] : form.attributes) hdf5::put_attribute(builder.file(), name.c_str(), value);
        for (const OutputForm::Column& column : form.columns) {
            std::vector<std::uint64_t> shape{form.rows};
            shape.insert(shape.end(), column.row.begin(), column.row.end());
            static_cast<void>(
                builder.add_bulk(builder.file(), column.name, hdf5::stored_type(column.type).get(), shape));
        }
        return builder.finish();
    });
}

/// Whoever comes second takes the file of the first.
void make(FileSystem& files, const std::string& path, const std::string& aside, const hdf5::Shell& shell) {
    files.remove(aside); // left by a process that was killed
    {
        const auto file = files.open(aside, FileSystem::Open::create_new);
        file->write_at(0, shell.metadata);
        file->truncate(shell.size);
        file->sync();
    }
    try {
        static_cast<void>(files.link(aside, path));
    } catch (const base::IoError&) { // another process has published its own, and removed this one
        if (!files.exists(path)) throw;
    }
}

/// Removes `<path>.<number>.tmp`, once the file is at `path`.
void remove_asides(FileSystem& files, const std::string& path) {
    const std::filesystem::path whole = std::filesystem::absolute(path);
    const std::string begin = whole.filename().string() + ".";
    constexpr std::string_view end = ".tmp";
    for (const std::string& name : files.list(whole.parent_path().string())) {
        if (!name.starts_with(begin) || !name.ends_with(end) || name.size() <= begin.size() + end.size()) continue;
        const std::string writer = name.substr(begin.size(), name.size() - begin.size() - end.size());
        if (std::ranges::all_of(writer, [](char c) { return c >= '0' && c <= '9'; }))
            files.remove((whole.parent_path() / name).string());
    }
}

void refuse_other_form(File& file, const std::string& path, const hdf5::Shell& shell) {
    std::vector<std::byte> found(shell.metadata.size());
    const bool same = file.size() == shell.size && file.read_at(0, found) == found.size() &&
                      std::ranges::equal(found, shell.metadata);
    if (!same) throw base::FormatError("'" + path + "' exists and is another file than this output: move it away");
}

} // namespace

std::uint64_t OutputForm::Column::row_bytes() const {
    std::uint64_t bytes = base::size_of(type);
    for (const std::uint64_t extent : row) bytes *= extent;
    return bytes;
}

OutputFile::OutputFile(FileSystem& files, const std::string& path, std::uint32_t writer, const OutputForm& form)
    : files_(files), path_(path), rows_(form.rows) {
    const hdf5::Shell shell = shell_of(form);
    if (!files.exists(path)) make(files, path, path + "." + std::to_string(writer) + ".tmp", shell);
    // The name may be that of another process, which has not come to this yet.
    files.sync_directory(std::filesystem::absolute(path).parent_path().string());
    file_ = files.open(path, FileSystem::Open::read_write);
    refuse_other_form(*file_, path, shell);
    remove_asides(files, path);
    static_cast<void>(file_->reserve(shell.size));
    for (std::size_t i = 0; i < form.columns.size(); ++i)
        places_.push_back({shell.offsets[i], form.columns[i].row_bytes()});
}

void OutputFile::write(std::size_t column, std::uint64_t first_row, std::span<const std::byte> rows, Range range) {
    constexpr std::uint64_t page = 4096; // each data set begins at one
    const Place& place = places_.at(column);
    const std::uint64_t begin = first_row * place.row_bytes;
    const std::uint64_t pages_begin = begin / page * page;
    const std::uint64_t pages_end = (begin + rows.size() + page - 1) / page * page;
    const bool shared =
        pages_begin < range.begin * place.row_bytes || (range.end < rows_ && pages_end > range.end * place.row_bytes);
    if (shared)
        file_->write_shared(place.offset + begin, rows);
    else
        file_->write_at(place.offset + begin, rows);
}

void OutputFile::sync() {
    file_->sync();
    if (!files_.exists(path_)) throw base::Error("'" + path_ + "' was removed while it was written: bring it back");
}

} // namespace ranktune::storage
