// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/output_file.hpp"

#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "ranktune/base/error.hpp"

namespace ranktune::cli {
namespace {

namespace fs = std::filesystem;

/// /dev/stdout and the like link to a descriptor of a process, in /proc.
bool is_descriptor(const fs::path& path) { return path.native().starts_with("/proc/"); }

void write_into(const std::string& opened, const std::string& named, const std::function<void(std::ostream&)>& write) {
    std::ofstream out(opened, std::ios::binary | std::ios::trunc);
    if (!out) throw base::UsageError("cannot write '" + named + "'; give another path with -o");
    write(out);
    out.close();
    if (!out) throw base::Error("writing '" + named + "' failed; is there room?");
}

} // namespace

OutputFile::OutputFile(const std::string& named) {
    std::error_code error;
    fs::path target = named;
    if (fs::is_directory(target, error))
        throw base::UsageError("'" + named + "' is a directory; name a file in it: -o " + (target / "FILE").string());
    through = fs::exists(target, error) && !fs::is_regular_file(target, error);
    constexpr int most_links = 40; // the limit of Linux
    for (int i = 0; i < most_links && !through && fs::is_symlink(target, error); ++i) {
        const fs::path next = target.parent_path() / fs::read_symlink(target, error);
        if (error) break;
        target = next;
        through = is_descriptor(target);
    }
    path = through ? named : target.string();
}

void write_whole(const OutputFile& file, const std::function<void(std::ostream&)>& write) {
    if (file.through) return write_into(file.path, file.path, write);
    const std::string aside = file.path + ".tmp-" + std::to_string(getpid());
    std::error_code error;
    try {
        write_into(aside, file.path, write);
        fs::rename(aside, file.path, error);
        if (error)
            throw base::UsageError("cannot write '" + file.path + "': " + error.message() +
                                   "; give another path with -o");
    } catch (...) {
        fs::remove(aside, error);
        throw;
    }
}

} // namespace ranktune::cli
