// SPDX-License-Identifier: Apache-2.0
#include "cli/study_input.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cli/checks/remarks.hpp"
#include "cli/verbs/predict.hpp"
#include "data/formats.hpp"
#include "process/environment.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/base/utf8.hpp"
#include "ranktune/data/mixture.hpp"
#include "ranktune/data/source.hpp"
#include "ranktune/trainables/algorithms.hpp"
#include "ranktune/trainables/trainable.hpp"
#include "report/explain/next_steps.hpp"
#include "storage/file_system.hpp"
#include "study/outside.hpp"
#include "study/parse/toml_tree.hpp"
#include "studydir/earlier/earlier_results.hpp"
#include "studydir/open_study.hpp"
#include "studydir/study_directory.hpp"
#include "trainables/builtin.hpp"
#include "trainables/program/row_table.hpp"

namespace ranktune::cli {
namespace {

/// A hint after a path with "~" in it, which a shell would have expanded.
std::string about_home(const std::string& path) {
    return path.find("/~") == std::string::npos ? "" : "; '~' stays as it is in a study file; write the whole path";
}

/// Why a file of [data] cannot be opened with its options, or why a mixture is none; or an empty string.
std::string data_problem(const study::DataFile& file) {
    try {
        if (file.is_mixture()) {
            std::vector<data::MixtureSource> sources; // how many samples they have does not matter here
            for (const study::DataPart& part : file.parts) sources.push_back({{1}, part.weight, part.from});
            static_cast<void>(data::Mixture(std::move(sources), 0, 0));
            return "";
        }
        if (file.decode)
            static_cast<void>(data::decoded_bytes(file.path, data::options_of(file)));
        else
            static_cast<void>(data::Source::open(file));
        return "";
    } catch (const base::Error& error) {
        return error.what();
    }
}

/// Checks the paths in a study file before the start; otherwise only a trial would find the mistake.
study::PathChecks path_checks(const CommandCheck& command) {
    std::function<std::string(const study::ProgramSpec&)> missing;
    if (command.looks)
        missing = [advice = command.advice](const study::ProgramSpec& program) {
            const std::string what = missing_in_command(program);
            return what.empty() || advice.empty() ? what : what + "; " + advice;
        };
    return {.file = [](const std::string& path) -> std::string {
                if (access(path.c_str(), R_OK) == 0) return "";
                if (errno == EACCES) return "may not be read: \"" + path + "\"";
                return "there is no file \"" + path + "\"" + about_home(path);
            },
            .directory = [](const std::string& path) -> std::string {
                std::error_code error;
                if (std::filesystem::is_directory(path, error)) return "";
                return "there is no directory \"" + path + "\"" + about_home(path);
            },
            .exists = [](const std::string& path) { return access(path.c_str(), F_OK) == 0; },
            .content =
                [](const std::string& path) {
                    return std::filesystem::is_regular_file(path)
                               ? storage::content_text(storage::posix_file_system(), path)
                               : std::string();
                },
            .data = data_problem,
            .columns = [](const std::string& path) { return trainables::RowTable(path).columns(); },
            .command = std::move(missing)};
}

/// "is a file" or "is no directory".
std::string kind_of(std::filesystem::file_type type) {
    return type == std::filesystem::file_type::regular ? "is a file" : "is no directory";
}

/// `at`: the directory, or the nearest one above it that exists. Before there is a study nothing can be lost, so that a
/// missing permission is a mistake of the command line. A study that has begun may get it back.
void refuse_unwritable(const std::string& directory, const std::filesystem::path& at) {
    if (access(at.c_str(), W_OK | X_OK) == 0 || (errno != EACCES && errno != EPERM)) return;
    const std::string why = std::generic_category().message(errno);
    if (access((directory + "/journal").c_str(), F_OK) == 0) return;
    throw base::UsageError("'" + directory + "' cannot be the directory of the study: this user may not write to '" +
                           at.string() + "' (" + why + "); give another directory with -o");
}

/// Refuses a path that study files, which are UTF-8, cannot name. `what`: "the study file".
void refuse_other_than_utf8(const std::string& path, const char* what) {
    const std::string whole = std::filesystem::absolute(path).lexically_normal().string();
    if (base::as_utf8(whole) != whole)
        throw base::UsageError("the path of " + std::string(what) + " is not UTF-8: '" + whole +
                               "'; rename the folder, or work in another one");
}

/// A long path in short.
std::string shortened(const std::string& path) {
    constexpr std::size_t most = 200;
    constexpr std::size_t ends = 60;
    if (path.size() <= most) return path;
    return path.substr(0, ends) + " ... " + path.substr(path.size() - ends);
}

/// Refuses what no directory can be called. `folder`: the nearest one that exists.
void refuse_impossible(const std::string& directory, const std::filesystem::path& folder) {
    const auto refuse = [&](const std::string& why) {
        throw base::UsageError("'" + shortened(directory) + "' cannot be the directory of the study: " + why +
                               "; give another directory with -o");
    };
    constexpr std::size_t room = 500; // for the files in it
    const std::filesystem::path whole = std::filesystem::absolute(directory);
    if (whole.string().size() > PATH_MAX - room)
        refuse("its path has " + std::to_string(whole.string().size()) + " characters, of at most " +
               std::to_string(PATH_MAX - room));
    for (const std::filesystem::path& part : whole)
        if (part.string().size() > NAME_MAX)
            refuse("a name in it has " + std::to_string(part.string().size()) + " characters, of at most " +
                   std::to_string(NAME_MAX));
    struct statfs system {};
    if (statfs(folder.c_str(), &system) == 0 && (system.f_type == PROC_SUPER_MAGIC || system.f_type == SYSFS_MAGIC))
        refuse("'" + folder.string() + "' shows the state of the kernel and holds no files of users");
}

/// Checks every part of the path, from the root on.
void refuse_file_in_the_way(const std::string& directory) {
    namespace fs = std::filesystem;
    fs::path at;
    fs::path last;
    refuse_other_than_utf8(directory, "the study's directory");
    for (const fs::path& part : fs::absolute(directory)) {
        at /= part;
        std::error_code error;
        const fs::file_type link = fs::symlink_status(at, error).type();
        const fs::file_type type = fs::status(at, error).type();
        if (type == fs::file_type::directory) {
            last = at;
            continue;
        }
        const bool dangling = link == fs::file_type::symlink && type == fs::file_type::not_found;
        if (!dangling &&
            (type == fs::file_type::not_found || type == fs::file_type::none || type == fs::file_type::unknown))
            break; // it will be created
        throw base::UsageError("'" + shortened(directory) + "' cannot be the directory of the study: '" + at.string() +
                               "' " + (dangling ? "is a link that leads nowhere" : kind_of(type)) +
                               "; move it away, or give another directory with -o");
    }
    refuse_impossible(directory, last);
    refuse_unwritable(directory, last);
}

/// Whether `inner` is `outer` or lies below it, whichever names the paths use.
bool lies_in(const std::filesystem::path& inner, const std::filesystem::path& outer) {
    std::error_code error;
    std::filesystem::path at = std::filesystem::canonical(inner, error);
    if (error) return false;
    for (;; at = at.parent_path()) {
        if (std::filesystem::equivalent(at, outer, error)) return true;
        if (at == at.parent_path()) return false;
    }
}

/// What the user may have meant by a study file that is not there.
std::string advice_for_missing(const std::string& file) {
    namespace fs = std::filesystem;
    std::error_code error;
    if (fs::exists(file + ".toml", error)) return "; did you mean '" + file + ".toml'?";
    if (fs::is_symlink(file, error)) return ": it is a link that leads nowhere";
    const fs::path path(file);
    if (!path.has_filename()) return ": there is no directory '" + file + "'";
    const fs::path folder = path.parent_path();
    if (!folder.empty() && !fs::is_directory(folder, error)) return ": there is no directory '" + folder.string() + "'";
    std::vector<std::string> names;
    for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end; !error && entry != end;
         entry.increment(error))
        if (entry->path().extension() == ".toml") names.push_back(entry->path().stem().string());
    const std::string_view near = base::nearest(path.stem().string(), std::span<const std::string>(names));
    if (near.empty()) return "; `ranktune init NAME` writes one to start from";
    return "; did you mean '" + (folder / (std::string(near) + ".toml")).string() + "'?";
}

/// The text of a study file. Throws base::UsageError with advice.
std::string study_text(const std::string& file) {
    try {
        return storage::read_text(storage::posix_file_system(), file);
    } catch (const base::IoError& error) {
        if (error.code() == storage::not_a_file())
            throw base::UsageError("the study file '" + file +
                                   "' is a FIFO, a socket or a device, not a file: write the study into a file first");
        throw base::UsageError("cannot read the study file '" + shortened(file) + "'" +
                               (error.code() == std::errc::no_such_file_or_directory ? advice_for_missing(file)
                                                                                     : ": " + error.code().message()));
    }
}

/// The text from the table's header to the next one. `lines`: how many stand before it.
std::string_view table_in(std::string_view text, std::string_view table, std::size_t& lines) {
    const std::string header = "\n[" + std::string(table) + "]\n";
    const std::size_t begin = std::min(text.find(header), text.size());
    lines = static_cast<std::size_t>(std::ranges::count(text.substr(0, begin), '\n'));
    return text.substr(begin, text.find("\n[", std::min(begin + 1, text.size())) - begin);
}

/// " in line 7, `x = 1`, which would be `x = 2`". `lines`: how many stand before the texts.
std::string first_difference(std::string_view before, std::string_view after, std::size_t lines) {
    const auto line = [](std::string_view& text) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view first = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        return std::string(first);
    };
    for (std::size_t number = lines + 1;; ++number) {
        const std::string was = line(before);
        const std::string is = line(after);
        if (was != is)
            return " in line " + std::to_string(number) + ", `" + shortened(was) + "`, which would be `" +
                   shortened(is) + "`";
        if (before.empty() && after.empty()) return "";
    }
}

void refuse_to_rename(const std::string& directory, const std::string& study, const StudyInput& input) {
    std::error_code error;
    if (!std::filesystem::is_directory(directory, error)) return;
    // The user named the study by its directory: renaming it is what --fresh means.
    if (!input.directory.empty() && std::filesystem::equivalent(input.directory, directory, error)) return;
    const bool holds_study = lies_in(study, directory);
    if (!holds_study && !lies_in(".", directory)) return;
    throw base::UsageError(
        "--fresh renames the directory that is there, and '" + directory + "' " +
        (holds_study ? "holds the study file '" + study + "', too" : std::string("is where you are working")) +
        "; give the study a directory of its own with -o");
}

StudyInput parsed(const std::string& text, const std::string& file, const std::vector<std::string>& overrides,
                  const study::RankCheck& ranks, const CommandCheck& command) {
    const study::Known known{trainables::known_trainables(), trainables::known_algorithms()};
    return {study::parse_study(text, file, overrides, known, path_checks(command), ranks), text, {}};
}

} // namespace

StudyInput read_study(const std::string& file, const std::vector<std::string>& overrides, const study::RankCheck& ranks,
                      const CommandCheck& command) {
    refuse_other_than_utf8(file, "the study file");
    if (std::error_code error; std::filesystem::is_directory(file, error)) {
        const study::Known known{trainables::known_trainables(), trainables::known_algorithms()};
        // Not its study.toml: paths in that copy may be relative to another folder.
        const std::string text = studydir::resolved_file_of(storage::posix_file_system(), file);
        const std::string name = studydir::StudyDirectory{file}.resolved_file();
        try {
            return {study::parse_study(text, name, overrides, known, path_checks(command), ranks), text, file};
        } catch (const study::StudyFileError&) {
            // Says it in one sentence when the study was begun by a program with algorithms of its own.
            static_cast<void>(study::parse_resolved_study(text, name, known.algorithms));
            throw;
        }
    }
    return parsed(study_text(file), file, overrides, ranks, command);
}

StudyInput read_study(const RunArguments& arguments, const study::RankCheck& ranks, const CommandCheck& command) {
    if (!arguments.made) return read_study(arguments.study, arguments.overrides, ranks, command);
    const std::string text = arguments.made->text();
    try {
        return parsed(text, arguments.study, arguments.overrides, ranks, command);
    } catch (const study::StudyFileError& error) {
        if (!arguments.made->option) throw;
        std::vector<study::Mistake> mistakes = error.mistakes();
        for (study::Mistake& mistake : mistakes) mistake = {0, 0, arguments.made->option(mistake.key), mistake.message};
        throw study::StudyFileError("this command", std::move(mistakes));
    }
}

void refuse_other_made_study(const std::string& file, const std::string& text, std::string_view header, bool begun,
                             const std::string& advice, std::string_view table) {
    std::error_code error;
    if (!std::filesystem::exists(file, error)) return;
    const std::string before = text_of(file, "cannot read the study file");
    const bool is_made = before.starts_with(header);
    if (before == text || (is_made && !begun)) return;
    std::size_t lines = 0;
    std::string_view was = before;
    std::string_view is = text;
    if (is_made && !table.empty()) {
        is = table_in(text, table, lines);
        was = table_in(before, table, lines);
        if (was == is) return;
    }
    throw base::UsageError("'" + file + "' exists and says something else" + first_difference(was, is, lines) + ": " +
                           advice);
}

void write_made_study(const std::string& file, const std::string& text, std::string_view header, bool begun,
                      const std::string& advice) {
    refuse_other_made_study(file, text, header, begun, advice);
    std::error_code error;
    if (std::filesystem::exists(file, error) && text_of(file, "cannot read the study file") == text) return;
    // Under srun and mpirun all ranks may come here, and write the same.
    const std::string path = std::filesystem::absolute(file).string();
    const std::string aside = path + "." + process::host_name() + "-" + std::to_string(getpid());
    studydir::publish_text(storage::posix_file_system(), aside, text, true);
    storage::posix_file_system().rename(aside, path);
}

void refuse_directory(const std::string& directory, const std::string& study, const StudyInput& input, bool fresh) {
    refuse_file_in_the_way(directory);
    if (fresh) refuse_to_rename(directory, study, input);
    refuse_other_output(input.spec, directory, fresh);
}

void refuse_outside(const study::StudySpec& spec, const std::string& directory) {
    if (is_outside(spec)) throw base::UsageError(trainables::driven_from_outside(directory));
}

std::string directory_of(const std::string& study) {
    std::error_code error;
    const auto type = std::filesystem::status(study, error).type();
    if (error == std::errc::filename_too_long)
        throw base::UsageError("'" + shortened(study) +
                               "' is longer than a path can be; give the directory of a study");
    if (type == std::filesystem::file_type::none) throw base::IoError("cannot look at", study, error);
    if (type != std::filesystem::file_type::regular) return study;
    const std::string advice = "; give a study file, or the directory of a study";
    study::Node root;
    try {
        root = study::parse_toml(study_text(study));
    } catch (const study::TomlError& mistake) {
        throw base::UsageError("'" + study + "' is no study file: not valid TOML: " + mistake.what() + advice);
    }
    const study::Node* table = root.find("study");
    const study::Node* name = table == nullptr ? nullptr : table->find("name");
    if (name == nullptr || !name->is(study::Node::Kind::string) || !study::is_study_name(name->text))
        throw base::UsageError("'" + study +
                               "' is no study file: it has no study.name, which is that of the directory" + advice);
    return name->text;
}

std::string earlier_text(const study::WarmStarted& earlier, const report::Style& style) {
    std::string text;
    for (const std::string& line : studydir::earlier_lines(earlier))
        text += report::prose(text.empty() ? "earlier" : "", report::printable(line), style);
    return text;
}

std::string absolute_directory(const std::string& directory) {
    const std::filesystem::path path = std::filesystem::absolute(directory).lexically_normal();
    return (path.has_filename() ? path : path.parent_path()).string();
}

std::string directory_for(const RunArguments& arguments, const StudyInput& input) {
    std::string directory = arguments.directory.empty() ? input.directory : arguments.directory;
    while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
    return directory.empty() ? input.spec.name : directory;
}

std::string command_of(const std::string& verb, const RunArguments& arguments) {
    std::vector<std::string> words{verb, arguments.study};
    words.insert(words.end(), arguments.overrides.begin(), arguments.overrides.end());
    if (!arguments.directory.empty()) words.insert(words.end(), {"-o", arguments.directory});
    return report::command_text(std::move(words));
}

std::string text_of(const std::string& path, const std::string& failure) {
    if (path.empty()) return {};
    try {
        return storage::read_text(storage::posix_file_system(), path);
    } catch (const base::IoError& error) {
        throw base::UsageError(failure + " '" + path + "': " + error.code().message());
    }
}

} // namespace ranktune::cli
