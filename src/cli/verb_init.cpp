// SPDX-License-Identifier: Apache-2.0
// init: a study file to start from, and what makes it run at once.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "cli/init_data.hpp"
#include "cli/verbs.hpp"
#include "drivers/pages.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/study/parse.hpp"
#include "trainables/program/python_module.hpp"

namespace ranktune::cli {
namespace {

namespace fs = std::filesystem;

void write_new(const fs::path& path, std::span<const std::byte> bytes) {
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!out.flush())
        throw base::UsageError("cannot write '" + path.string() + "'; is the directory writable and is there room?");
    std::cout << "wrote     " << path.string() << "\n";
}

constexpr std::size_t longest_name = 100;

/// Replaces the line that gives a study of ours its name: its comment says where the results go, and stays below those
/// of the other lines.
void rename_study(std::string& text, const std::string& job, const std::string& name) {
    const auto begin = text.find("name = \"" + job + "\"");
    const auto comment = text.find('#', begin);
    const auto end = text.find('\n', begin);
    const std::size_t column = comment - begin;
    std::string remark = text.substr(comment, end - comment);
    const std::string place = "./" + job + " ";
    remark.replace(remark.find(place), place.size(), "./" + name + " ");
    std::string line = "name = \"" + name + "\" ";
    line.resize(std::max(line.size(), column), ' ');
    text.replace(begin, end - begin, line + remark);
}

/// Pages of the documentation get the paths at which this reader finds them.
void replace_pages(std::string& text) {
    constexpr std::string_view folder = "docs/";
    for (auto at = text.find(folder); at != std::string::npos; at = text.find(folder, at)) {
        const auto begin = at + folder.size();
        const auto end = text.find(".md", begin);
        if (end == std::string::npos) return;
        const std::string page = drivers::documentation_page(text.substr(begin, end + 3 - begin));
        text.replace(at, end + 3 - at, page);
        at += page.size();
    }
}

/// The study file of a job of ours, under another name.
void write_study(const fs::path& path, std::span<const std::byte> bytes, const std::string& job,
                 const std::string& name) {
    std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    rename_study(text, job, name);
    replace_pages(text);
    write_new(path, std::as_bytes(std::span(text)));
}

void write_unless_there(const fs::path& path, std::span<const std::byte> bytes) {
    if (fs::exists(path)) {
        std::cout << "kept      " << path.string() << " (it was there already)\n";
    } else {
        write_new(path, bytes);
    }
}

} // namespace

int init(const std::string& given, const std::string& kind) {
    // The name of the file that is written is as good.
    const std::string name = given.ends_with(".toml") ? given.substr(0, given.size() - 5) : given;
    if (name.size() > longest_name)
        throw base::UsageError(fmt::format("the name of a study has {} characters at most, not {}; give a shorter one",
                                           longest_name, name.size()));
    if (!study::is_study_name(name)) {
        throw base::UsageError(
            "'" + given + "' is no name for a study: letters, digits, '_', '-' and '.', not beginning with '.' or '-'");
    }
    const fs::path file = name + ".toml";
    // Nothing of the user's is ever overwritten.
    if (fs::exists(file))
        throw base::UsageError("'" + file.string() + "' exists already; give another name, or run it: ranktune run " +
                               file.string());
    if (kind == "program") {
        write_study(file, program_study(), "program", name);
        write_unless_there("train.py", program_script());
        write_unless_there("ranktune.py", trainables::python_module());
    } else {
        write_study(file, digits_study(), "digits", name);
        write_unless_there("digits.h5", digits_data());
    }
    std::cout << fmt::format("next      ranktune validate {0}.toml\n          ranktune run {0}.toml\n", name);
    return 0;
}

} // namespace ranktune::cli
