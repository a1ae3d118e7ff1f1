// SPDX-License-Identifier: Apache-2.0
// init: a study file to start from, with the files that it needs to run. algorithms: what such a file may name.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "cli/init_data.hpp"
#include "cli/verbs/verbs.hpp"
#include "process/pages.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/study/parse.hpp"
#include "ranktune/trainables/algorithms.hpp"
#include "report/explain/algorithm_text.hpp"
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

/// Changes the name of a template's study: in the line that sets it and in that line's comment, which names the
/// directory of the results and stays aligned with the comments below.
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

/// Replaces the paths of documentation pages by their paths in this installation.
void replace_pages(std::string& text) {
    constexpr std::string_view folder = "docs/";
    for (auto at = text.find(folder); at != std::string::npos; at = text.find(folder, at)) {
        const auto begin = at + folder.size();
        const auto end = text.find(".md", begin);
        if (end == std::string::npos) return;
        const std::string page = process::documentation_page(text.substr(begin, end + 3 - begin));
        text.replace(at, end + 3 - at, page);
        at += page.size();
    }
}

/// Where the table [name] begins; the end of the text when there is none.
std::size_t begin_of(const std::string& text, const std::string& table) {
    const auto at = text.find("\n[" + table + "]\n");
    return at == std::string::npos ? text.size() : at + 1;
}

/// The templates end with [scheduler] and have no [searcher].
void choose_algorithms(std::string& text, const std::string& searcher, const std::string& scheduler) {
    if (!scheduler.empty()) text.replace(begin_of(text, "scheduler"), std::string::npos, scheduler);
    if (!searcher.empty()) text.insert(begin_of(text, "scheduler"), searcher + "\n");
}

/// The description of the algorithm `name`. Throws base::UsageError naming those that exist.
template <class Info>
const Info& named(const std::vector<std::shared_ptr<const Info>>& known, const std::string& name, const char* kind) {
    std::vector<std::string> names;
    for (const auto& info : known) {
        if (info->name == name) return *info;
        names.push_back(info->name);
    }
    throw base::UsageError("unknown " + std::string(kind) + " '" + name + "'" + base::suggestion(name, names) + " (" +
                           base::join(names) + ")");
}

/// The table [searcher]; empty: as in the template.
std::string searcher_of(const InitArguments& arguments, const study::Algorithms& known) {
    if (arguments.searcher.empty()) return "";
    const study::SearcherInfo& searcher = named(known.searchers, arguments.searcher, "searcher");
    if (searcher.whole_space)
        throw base::UsageError("the searcher '" + searcher.name +
                               "' needs a finite space, and the template has continuous parameters; write the study "
                               "with another searcher, change its [space], then its [searcher]");
    if (searcher.only_numbers && arguments.kind == "digits")
        throw base::UsageError(
            "the searcher '" + searcher.name +
            "' needs a number for every parameter, and the template has lists without an order and a "
            "condition; write the study with another searcher, change its [space], then its [searcher]");
    return report::commented_table(searcher);
}
std::string scheduler_of(const InitArguments& arguments, const study::Algorithms& known) {
    if (arguments.scheduler.empty()) return "";
    const study::SchedulerInfo& scheduler = named(known.schedulers, arguments.scheduler, "scheduler");
    std::string table = report::commented_table(scheduler);
    if (arguments.kind != "printed") return table;
    // A program that prints saves no checkpoints.
    if (scheduler.explores)
        throw base::UsageError("the scheduler '" + scheduler.name +
                               "' goes on from checkpoints, and a program that prints has none; use asha or fifo");
    for (const auto& [usual, needed] : {std::pair("# variant = \"promote\"", "variant = \"stop\""),
                                        std::pair("# restart_paused = false", "restart_paused = true")})
        if (const auto at = table.find(usual); at != std::string::npos)
            return table.replace(at, std::string_view(usual).size(), needed);
    return table;
}

/// Writes the study file of a template under the name of the new study.
void write_study(const fs::path& path, std::span<const std::byte> bytes, const std::string& job,
                 const std::string& name, const std::string& searcher, const std::string& scheduler) {
    std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    choose_algorithms(text, searcher, scheduler);
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

int init(const InitArguments& arguments) {
    const std::string& given = arguments.name;
    // NAME.toml is accepted, too.
    const std::string name = given.ends_with(".toml") ? given.substr(0, given.size() - 5) : given;
    if (name.size() > longest_name)
        throw base::UsageError(fmt::format("the name of a study has {} characters at most, not {}; give a shorter one",
                                           longest_name, name.size()));
    if (!study::is_study_name(name)) {
        throw base::UsageError(
            "'" + given + "' is no name for a study: letters, digits, '_', '-' and '.', not beginning with '.' or '-'");
    }
    const fs::path file = name + ".toml";
    // Never overwrite files of the user.
    if (fs::exists(file))
        throw base::UsageError("'" + file.string() + "' exists already; give another name, or run it: ranktune run " +
                               file.string());
    const study::Algorithms known = ranktune::trainables::known_algorithms();
    const std::string searcher = searcher_of(arguments, known);
    const std::string scheduler = scheduler_of(arguments, known);
    if (arguments.kind == "program") {
        write_study(file, program_study(), "program", name, searcher, scheduler);
        write_unless_there("train.py", program_script());
        write_unless_there("ranktune.py", trainables::python_module());
    } else if (arguments.kind == "printed") {
        write_study(file, printed_study(), "printed", name, searcher, scheduler);
        write_unless_there("train.sh", printed_script());
    } else {
        write_study(file, digits_study(), "digits", name, searcher, scheduler);
        write_unless_there("digits.h5", digits_data());
    }
    std::cout << fmt::format("next      ranktune validate {0}.toml\n          ranktune run {0}.toml\n", name);
    return 0;
}

} // namespace ranktune::cli
