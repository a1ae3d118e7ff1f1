// SPDX-License-Identifier: Apache-2.0
#include "studydir/source_commit.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace ranktune::studydir {
namespace {

namespace fs = std::filesystem;

std::string first_line_of(const fs::path& file) {
    std::ifstream in(file);
    std::string line;
    std::getline(in, line);
    return line;
}

bool is_commit(const std::string& text) { // SHA-1 or SHA-256
    return (text.size() == 40 || text.size() == 64) &&
           std::ranges::all_of(text, [](unsigned char c) { return std::isxdigit(c) != 0; });
}

/// The folder of git's files: `.git`, or what a file of that name points to (worktrees, submodules). Empty: none.
fs::path git_folder(fs::path directory) {
    std::error_code error;
    for (;; directory = directory.parent_path()) {
        const fs::path here = directory / ".git";
        if (fs::is_directory(here, error)) return here;
        constexpr std::string_view pointer = "gitdir: ";
        if (const std::string line = first_line_of(here); line.starts_with(pointer))
            return directory / line.substr(pointer.size());
        if (directory == directory.parent_path()) return {};
    }
}

std::string packed(const fs::path& folder, const std::string& name) {
    std::ifstream in(folder / "packed-refs");
    for (std::string line; std::getline(in, line);) {
        const auto space = line.find(' ');
        if (space != std::string::npos && line.substr(space + 1) == name) return line.substr(0, space);
    }
    return {};
}

} // namespace

std::string source_commit(const std::string& directory) {
    const fs::path folder = git_folder(fs::path(directory));
    if (folder.empty()) return {};
    const std::string head = first_line_of(folder / "HEAD");
    constexpr std::string_view reference = "ref: ";
    if (!head.starts_with(reference)) return is_commit(head) ? head : "";
    const std::string name = head.substr(reference.size());
    const std::string shared = first_line_of(folder / "commondir"); // of a worktree: where the branches are
    const fs::path common = shared.empty() ? folder : folder / shared;
    for (const std::string& commit : {first_line_of(folder / name), first_line_of(common / name), packed(common, name)})
        if (is_commit(commit)) return commit;
    return {};
}

} // namespace ranktune::studydir
