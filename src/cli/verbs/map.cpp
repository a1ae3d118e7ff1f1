// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/map.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "base/number_in.hpp"
#include "cli/study_input.hpp"
#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/study/command_template.hpp"
#include "ranktune/study/parse.hpp"
#include "storage/file_system.hpp"
#include "storage/journal/journal.hpp"
#include "study/parse/toml_tree.hpp"
#include "study/printed_values.hpp"
#include "study/toml_text.hpp"
#include "trainables/program/row_table.hpp"

namespace ranktune::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view map_header = "# Written by `ranktune map`: a task for each point of [space].\n";
constexpr const char* array_id = "SLURM_ARRAY_TASK_ID";
constexpr std::size_t most_array_tasks = 1'000'000;

[[noreturn]] void refuse_array(const std::string& text, const std::string& why) {
    throw base::UsageError("--array " + text + ": " + why +
                           "; write it as for sbatch: 1-1000, 0-15:4, 1,3,5-7, and %50 behind it for 50 at a time");
}

std::int64_t array_number(const std::string& text, std::string_view word) {
    const auto number = base::number_in<std::int64_t>(word);
    if (!number || *number < 0) refuse_array(text, "'" + std::string(word) + "' is no number from 0");
    return *number;
}

/// A key of TOML without quotes; dots join the names of tables.
bool is_bare(std::string_view name) {
    return std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
               c == '.';
    });
}

/// `range(100)` and `range(1, 100)`, as Python counts; anything else stays as it is.
std::string grid_values(const std::string& entry, const std::string& given) {
    if (!given.starts_with("range(") || !given.ends_with(')')) return given;
    std::vector<std::int64_t> bounds;
    std::string_view rest = std::string_view(given).substr(6, given.size() - 7);
    while (true) {
        const std::size_t comma = rest.find(',');
        const auto number = base::number_in<std::int64_t>(base::trimmed(rest.substr(0, comma)));
        if (!number)
            throw base::UsageError("--grid " + entry + ": range takes one or two whole numbers, as in seed=range(100)");
        bounds.push_back(*number);
        if (comma == std::string_view::npos) break;
        rest = rest.substr(comma + 1);
    }
    if (bounds.size() > 2)
        throw base::UsageError("--grid " + entry + ": range takes one or two whole numbers; for steps give a list");
    if (bounds.size() == 1) bounds.insert(bounds.begin(), 0);
    return fmt::format("\"randint({}, {})\"", bounds[0], bounds[1]);
}

bool is_toml(const std::string& line) {
    try {
        static_cast<void>(study::parse_toml(line));
        return true;
    } catch (const study::TomlError&) {
        return false;
    }
}

/// What a list of words would be in TOML: `["a", "b"]` for `[a,b]`.
std::string with_quotes(std::string_view given) {
    given = base::trimmed(given);
    if (given.starts_with('[')) given.remove_prefix(1);
    if (given.ends_with(']')) given.remove_suffix(1);
    std::vector<std::string> values;
    while (true) {
        std::size_t comma = given.find(',');
        while (comma != std::string_view::npos && std::ranges::count(given.substr(0, comma), '"') % 2 == 1)
            comma = given.find(',', comma + 1);
        const std::string value(base::trimmed(given.substr(0, comma)));
        values.push_back(is_toml("x = " + value + "\n") ? value : study::text_of(value));
        if (comma == std::string_view::npos) return fmt::format("[{}]", fmt::join(values, ","));
        given = given.substr(comma + 1);
    }
}

[[noreturn]] void refuse_entry(const std::string& entry) {
    throw base::UsageError("--grid " + entry + ": needs a name and its values, as in lr=[0.1,0.01]");
}

/// A line of [space].
std::string grid_line(const std::string& entry) {
    const std::size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos) refuse_entry(entry);
    const std::string name = entry.substr(0, equals);
    const std::string given = entry.substr(equals + 1);
    const std::string key = (is_bare(name) ? name : study::text_of(name)) + " = ";
    std::string line = key + grid_values(entry, given) + "\n";
    if (is_toml(line)) return line;
    const std::string quoted = with_quotes(given);
    if (!is_toml(key + quoted + "\n")) refuse_entry(entry);
    throw base::UsageError("--grid " + entry + ": texts need quotes: '" + name + "=" + quoted + "'");
}

std::string grid_space(const std::vector<std::string>& grid) {
    std::string text;
    for (const std::string& entry : grid) {
        const std::string name = entry.substr(0, entry.find('='));
        const auto has_name = [&](const std::string& other) { return other.starts_with(name + "="); };
        if (std::ranges::count_if(grid, has_name) > 1)
            throw base::UsageError("--grid " + entry + ": " + name + " comes twice; all its values belong in one list");
        text += grid_line(entry);
    }
    return text;
}

std::string array_space(const ArrayNumbers& array) {
    const auto& numbers = array.numbers;
    const bool whole = numbers.back() - numbers.front() + 1 == static_cast<std::int64_t>(numbers.size());
    if (whole) return fmt::format("{} = \"randint({}, {})\"\n", array_id, numbers.front(), numbers.back() + 1);
    return fmt::format("{} = [{}]\n", array_id, fmt::join(numbers, ", "));
}

/// What Slurm sets for the tasks of an array. Its job is the study, which outlives jobs: a number of it is made from
/// the study's name and folder, and stays when that is renamed. `before`: the study file, if it is there. A `fresh`
/// study has another number.
std::string array_environment(const ArrayNumbers& array, const std::string& name, std::string_view before, bool fresh) {
    constexpr std::uint64_t numbers_of_jobs = 1'000'000'000;
    constexpr std::string_view key = "SLURM_ARRAY_JOB_ID = \"";
    std::uint64_t job = base::digest_of(fs::absolute(name).lexically_normal().string()) % numbers_of_jobs;
    if (const std::size_t at = before.find(key); at != std::string_view::npos) {
        const std::string_view rest = before.substr(at + key.size());
        job = base::number_in<std::uint64_t>(rest.substr(0, rest.find('"'))).value_or(job);
        if (fresh) job = (job + 1) % numbers_of_jobs;
    }
    return fmt::format(
        "env = {{ {0} = \"{{{0}}}\", SLURM_ARRAY_TASK_MIN = \"{1}\", SLURM_ARRAY_TASK_MAX = \"{2}\", "
        "SLURM_ARRAY_TASK_STEP = \"{3}\", SLURM_ARRAY_TASK_COUNT = \"{4}\", SLURM_ARRAY_JOB_ID = \"{5}\" }}\n",
        array_id, array.numbers.front(), array.numbers.back(), array.step, array.numbers.size(), job);
}

bool is_placeholder(std::string_view name) {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    return !name.empty() && letter(name[0]) && std::ranges::all_of(name, [&](char c) {
        return letter(c) || (c >= '0' && c <= '9') || c == '.' || c == ':' || c == '-';
    });
}

/// Braces that stand for themselves are doubled, as study files want them: of JSON, awk and `${HOME}`. What is one of
/// `names`, or looks like a placeholder, stays one, and `{{name}}` means {name}.
std::string with_braces(std::string_view text, const std::vector<std::string>& names) {
    const auto is_name = [&](std::string_view name) {
        return is_placeholder(name) || std::ranges::find(names, name) != names.end();
    };
    std::string out;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const std::size_t end = text.find('}', at);
        const std::string_view rest = text.substr(at);
        if (text[at] == '{' && end != std::string_view::npos && !out.ends_with('$')) {
            const bool doubled = rest.starts_with("{{");
            const std::size_t name = at + (doubled ? 2 : 1);
            const bool closed = !doubled || text.substr(end).starts_with("}}");
            if (closed && end > name && is_name(text.substr(name, end - name))) {
                const std::size_t size = end - at + (doubled ? 2 : 1);
                out += text.substr(at, size);
                at += size - 1;
                continue;
            }
        }
        out += text[at];
        if (text[at] == '{' || text[at] == '}') out += text[at];
    }
    return out;
}

/// As the study file names it: words that the template splits again, or one text for the shell.
std::string command_lines(const std::vector<std::string>& command, const std::vector<std::string>& names) {
    const bool shell = command.size() == 1 && command[0].find_first_of(" \t\n") != std::string::npos;
    const std::string text = with_braces(shell ? command[0] : study::shell_text(command), names);
    return "command = " + study::text_of(text) + "\n" + (shell ? "shell = true\n" : "");
}

trainables::RowTable table_of(const std::string& path) try {
    std::error_code error;
    const auto type = fs::status(path, error).type();
    if (path == "-" || type == fs::file_type::fifo || type == fs::file_type::character)
        throw base::UsageError("--input " + path +
                               ": the rows are read again at every start; write them into a file first");
    return trainables::RowTable(path);
} catch (const base::Error& error) {
    throw base::UsageError(error.what());
}

/// Whether `..` leads out of it to another place than its text says.
bool has_link(const fs::path& folder) {
    fs::path at;
    std::error_code error;
    return std::ranges::any_of(folder, [&](const fs::path& part) { return fs::is_symlink(at /= part, error); });
}

/// As the study file, in `folder`, names it: relative where the user typed both so, so that all may move together.
std::string path_from(const fs::path& folder, const std::string& given) {
    const fs::path whole = absolute_directory(given);
    if (folder.is_absolute() || fs::path(given).is_absolute() || has_link(folder)) return whole.string();
    return whole.lexically_relative((fs::current_path() / folder).lexically_normal()).string();
}

/// Tasks work where the command was given.
std::string directory_line(const fs::path& folder) {
    if (folder.empty()) return {};
    return "directory = " +
           study::text_of(path_from(folder, folder.is_absolute() ? fs::current_path().string() : ".")) + "\n";
}

bool asks_for_ranks(const MapArguments& arguments) {
    return std::ranges::any_of(arguments.run.overrides, [](const std::string& each) {
        return each.starts_with("resources.ranks") || each.starts_with("resources.gpus") ||
               each.starts_with("trainable.launcher_variables");
    });
}

/// The study file as it was written before; empty: there is none.
std::string file_before(const std::string& file) {
    std::error_code error;
    return fs::exists(file, error) ? text_of(file, "cannot read the study file") : std::string();
}

/// "`x = 1`, `[slurm]`": lines that are only in the first text.
std::string lines_lost(const std::string& before, const std::string& after) {
    std::istringstream text(before);
    std::vector<std::string> lost;
    for (std::string line; std::getline(text, line);)
        if (("\n" + after).find("\n" + line + "\n") == std::string::npos) lost.push_back("`" + line + "`");
    return base::join(lost);
}

/// What the user typed for a key of the study file.
std::string option_of(const std::string& key) {
    constexpr std::pair<std::string_view, std::string_view> options[] = {
        {"failure.iteration_timeout", "--timeout"},
        {"failure.max_failures", "--retries"},
        {"failure.retry_on", "--retry-on"},
        {"trainable.command", "the command"},
        {"trainable.table", "--input"},
        {"trainable.kept", "--kept"},
        {"trainable.restart_after", "--restart-after"}};
    for (const auto& [name, option] : options)
        if (key == name) return std::string(option);
    constexpr std::string_view space = "space.";
    return key.starts_with(space) ? "--grid " + key.substr(space.size()) : key;
}

} // namespace

ArrayNumbers array_numbers(const std::string& text) {
    ArrayNumbers array;
    std::string_view rest = text;
    if (const std::size_t percent = rest.find('%'); percent != std::string_view::npos) {
        array.at_once = static_cast<std::uint32_t>(
            std::min<std::int64_t>(array_number(text, rest.substr(percent + 1)), most_array_tasks));
        if (array.at_once == 0) refuse_array(text, "no task may run");
        rest = rest.substr(0, percent);
    }
    const bool single = rest.find(',') == std::string_view::npos;
    while (true) {
        const std::size_t comma = rest.find(',');
        std::string_view part = rest.substr(0, comma);
        std::int64_t step = 1;
        if (const std::size_t colon = part.find(':'); colon != std::string_view::npos) {
            step = array_number(text, part.substr(colon + 1));
            part = part.substr(0, colon);
        }
        const std::size_t dash = part.find('-');
        const std::int64_t first = array_number(text, part.substr(0, dash));
        const std::int64_t last = dash == std::string_view::npos ? first : array_number(text, part.substr(dash + 1));
        if (last < first) refuse_array(text, "the range " + std::string(part) + " is empty");
        if (step == 0) refuse_array(text, "a step of 0");
        if (single) array.step = step;
        for (std::int64_t number = first; number <= last; number += step) {
            if (array.numbers.size() == most_array_tasks) refuse_array(text, "more than 1,000,000 tasks");
            array.numbers.push_back(number);
        }
        if (comma == std::string_view::npos) break;
        rest = rest.substr(comma + 1);
    }
    std::ranges::sort(array.numbers);
    if (std::ranges::adjacent_find(array.numbers) != array.numbers.end()) refuse_array(text, "a number comes twice");
    return array;
}

std::string map_study(const MapArguments& arguments, const std::string& name, std::string_view before) {
    const fs::path folder = fs::path(name).parent_path();
    std::vector<std::string> names; // of placeholders
    std::string rows;               // keys of [trainable] for them
    std::string space;
    std::uint32_t at_once = 0;
    if (!arguments.input.empty()) {
        const trainables::RowTable table = table_of(arguments.input);
        names = table.columns();
        rows = "table = " + study::text_of(path_from(folder, arguments.input)) + "\n";
        space = fmt::format("{} = \"randint(0, {})\"\n", study::row_parameter, table.rows());
    } else if (!arguments.array.empty()) {
        const ArrayNumbers array = array_numbers(arguments.array);
        space = array_space(array);
        rows = array_environment(array, name, before, arguments.run.fresh);
        at_once = array.at_once;
    } else {
        space = grid_space(arguments.grid);
        for (const std::string& entry : arguments.grid) names.push_back(entry.substr(0, entry.find('=')));
    }
    std::string trainable = command_lines(arguments.command, names) + directory_line(folder) + "result = \"success\"\n";
    if (arguments.kept) trainable += "kept = true\n";
    if (arguments.restart_after > 0) trainable += fmt::format("restart_after = {}\n", arguments.restart_after);
    if (!arguments.kept && !asks_for_ranks(arguments)) trainable += "launcher_variables = false\n";
    trainable += rows;
    std::string text = fmt::format("{}[study]\nname = {}\nmetric = \"{}\"\nmode = \"min\"\nmax_iterations = 1\n",
                                   map_header, study::text_of(fs::path(name).filename().string()), study::task_metric);
    if (at_once > 0) text += fmt::format("max_concurrent = {}\n", at_once);
    text += "\n[trainable]\n" + trainable + "\n[space]\n" + space +
            "\n[searcher]\ntype = \"grid\"\n\n[scheduler]\ntype = \"fifo\"\n";
    text += fmt::format("\n[failure]\ntolerate = 0.0\nmax_failures = {}\n", arguments.retries);
    if (!arguments.retry_on.empty()) text += "retry_on = " + study::text_of(arguments.retry_on) + "\n";
    if (!arguments.timeout.empty()) text += "iteration_timeout = " + study::text_of(arguments.timeout) + "\n";
    return text;
}

int map(const MapArguments& arguments, const Invocation& invocation) {
    std::string name = arguments.run.directory.empty() ? "map" : arguments.run.directory;
    while (name.size() > 1 && name.ends_with('/')) name.pop_back();
    if (const std::string ending = ".toml"; name.size() > ending.size() && name.ends_with(ending))
        name.resize(name.size() - ending.size()); // the file was named
    if (arguments.input.empty() && arguments.grid.empty() && arguments.array.empty())
        throw base::UsageError(
            "map: what to go through? One of --input TABLE.csv, --grid NAME=VALUES ... and --array "
            "1-100, then -- and the command");
    if (arguments.command.empty())
        throw base::UsageError(
            "map: which command? It stands behind `--`, as in ranktune map --input table.csv -- ./sim "
            "--x={x}");
    if (const std::string last = fs::path(name).filename().string(); !study::is_study_name(last))
        throw base::UsageError("-o " + name + ": '" + last +
                               "' cannot name a study: letters, digits, '_', '-' and '.'");
    const std::string file = name + ".toml";
    const std::string advice =
        "these rows are another study; give it another name (-o NAME), or replace the old one (--fresh)";
    const std::string before = file_before(file); // what this start writes into it changes nothing
    const auto text = [arguments, name, file, advice, before] {
        const bool begun = !arguments.run.fresh && storage::has_journal(storage::posix_file_system(), name);
        std::string made = map_study(arguments, name, before);
        refuse_other_made_study(file, made, map_header, begun, advice, "space");
        return made;
    };
    const auto write = [text, file, advice] {
        const std::string made = text();
        const std::string lost = lines_lost(file_before(file), made);
        write_made_study(file, made, map_header, false, advice);
        if (!lost.empty())
            std::cerr << report::escaped(file + " is written anew, and no longer says " + lost +
                                         "; settings belong on the line of map, as in failure.in_a_row=9")
                      << "\n";
    };
    if (arguments.write) {
        std::error_code error; // without the folder writing says why
        fs::create_directories(fs::absolute(file).parent_path(), error);
        write();
        std::cout << fmt::format("wrote {}. To run it: ranktune run {}, or ranktune submit {} --time 1:00:00\n", file,
                                 file, file);
        return 0;
    }
    RunArguments run_arguments = arguments.run;
    run_arguments.study = file;
    run_arguments.directory = name;
    run_arguments.made = {.text = text, .begin = write, .option = option_of};
    return run_arguments.dry_run ? dry_run(run_arguments) : run(run_arguments, invocation);
}

} // namespace ranktune::cli
