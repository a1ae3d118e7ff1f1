// SPDX-License-Identifier: Apache-2.0
#include "data/staging/file_list.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <span>
#include <system_error>

#include "data/formats.hpp"
#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "storage/journal/journal_values.hpp"

namespace ranktune::data {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_folder(const study::DataFile& file) {
    const fs::path path = file.path;
    throw base::UsageError("data." + file.name + ": '" + file.path + "' has more than " + std::to_string(most_files) +
                           " files, which a parallel file system opens one by one; make one file of them: " +
                           tar_command(path.string() + ".tar", path.string()));
}

class Lister {
  public:
    Lister(const study::DataFile& file, const fs::path& source) : file_(file) {
        list_.root = source.parent_path();
        list_.name = source.filename();
        key_.add(file.decode);
        for (const std::string& text : {source.string(), file.group}) add_text(text);
    }
    void add(const std::string& name) {
        if (list_.entries.size() == most_files) refuse_folder(file_);
        const std::string path = list_.root + "/" + name;
        struct stat about {};
        if (::stat(path.c_str(), &about) != 0)
            throw base::IoError("cannot read", path, std::error_code(errno, std::generic_category()));
        const auto bytes = static_cast<std::uint64_t>(about.st_size);
        list_.entries.push_back({name, bytes});
        list_.bytes += bytes;
        add_text(name);
        key_.add(bytes).add(about.st_mtim.tv_sec).add(about.st_mtim.tv_nsec);
    }
    void add_folder() {
        std::vector<std::string> names;
        std::size_t seen = 0;
        const auto links = fs::directory_options::follow_directory_symlink;
        const fs::path folder = fs::path(list_.root) / list_.name;
        for (const auto& entry : fs::recursive_directory_iterator(folder, links)) {
            if (++seen > 2 * most_files) refuse_folder(file_); // folders, or links that lead in circles
            if (entry.is_regular_file()) names.push_back(entry.path().lexically_relative(list_.root));
        }
        std::ranges::sort(names);
        for (const std::string& name : names) add(name);
    }
    FileList take() {
        list_.key = key_.value();
        return std::move(list_);
    }

  private:
    void add_text(std::string_view text) { key_.add(text.size()).add(std::as_bytes(std::span(text))); }

    const study::DataFile& file_;
    FileList list_;
    base::Digest key_;
};

} // namespace

std::string FileList::copy_name(const std::string& start) const {
    base::Digest digest(key);
    digest.add(std::as_bytes(std::span(start)));
    char text[64];
    std::snprintf(text, sizeof text, "%016llx-%llu", static_cast<unsigned long long>(digest.value()),
                  static_cast<unsigned long long>(bytes));
    return text;
}

std::string start_of_node() { return storage::this_writer().boot_id; }

FileList list_files(const study::DataFile& file) {
    try {
        // The copy keeps the name, which says what the format is, where it is that of a link.
        fs::path source = fs::absolute(file.path).lexically_normal();
        if (!source.has_filename()) source = source.parent_path();
        Lister lister(file, source);
        if (fs::is_directory(source)) {
            lister.add_folder();
            return lister.take();
        }
        lister.add(source.filename());
        // Megatron's index belongs to its tokens.
        if (const fs::path index = fs::path(source).replace_extension(".idx");
            source.extension() == ".bin" && fs::exists(index))
            lister.add(index.filename());
        return lister.take();
    } catch (const fs::filesystem_error& error) {
        throw base::IoError("cannot read", file.path, error.code());
    }
}

std::vector<Piece> pieces_of(const FileList& list, std::uint64_t most) {
    std::vector<Piece> pieces;
    for (std::uint32_t i = 0; i < list.entries.size(); ++i)
        for (std::uint64_t offset = 0; offset < list.entries[i].bytes; offset += most)
            pieces.push_back({i, offset, std::min(most, list.entries[i].bytes - offset)});
    return pieces;
}

} // namespace ranktune::data
