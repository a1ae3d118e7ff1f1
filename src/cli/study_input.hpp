// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads study files and resolves study directories from what the user typed.

#include <string>
#include <string_view>
#include <vector>

#include "cli/verbs/verbs.hpp"
#include "ranktune/study/parse.hpp"
#include "ranktune/study/record.hpp"
#include "report/screens/text.hpp"

namespace ranktune::cli {

struct StudyInput {
    study::StudySpec spec;
    std::string text;      ///< content of the file
    std::string directory; ///< the study directory, when the user gave one instead of a file (`run DIR`); else empty
};

/// Whether read_study looks for the program and the script of a command on this machine.
struct CommandCheck {
    bool looks = false;
    std::string advice; ///< follows a mistake; may be empty
};

/// `file` may also be the directory of a study: then the study file in its journal is read, and `text` is that. Throws
/// study::StudyFileError with all mistakes (missing input files of the trainable and trials that ask for more ranks
/// than `ranks` allows are mistakes, too; a missing program or script is one if `command` says so); base::UsageError
/// when the file cannot be read.
[[nodiscard]] StudyInput read_study(const std::string& file, const std::vector<std::string>& overrides,
                                    const study::RankCheck& ranks = {}, const CommandCheck& command = {});

/// The same for the study of `arguments`, whose file need not be written yet (RunArguments::made).
[[nodiscard]] StudyInput read_study(const RunArguments& arguments, const study::RankCheck& ranks = {},
                                    const CommandCheck& command = {});

/// Throws base::UsageError when a study file that says something else than `text` is there, unless `header` begins it
/// and its study has not `begun`, so that nobody misses it. `advice`: ends that message, which names the first line
/// that differs. `table`: of a study that has begun only this table must say the same, the rest may change; empty: all.
void refuse_other_made_study(const std::string& file, const std::string& text, std::string_view header, bool begun,
                             const std::string& advice, std::string_view table = {});
/// Writes the study file that a verb makes, unless it says `text` already; by one rank, or by several at once with the
/// same text. Throws as refuse_other_made_study.
void write_made_study(const std::string& file, const std::string& text, std::string_view header, bool begun,
                      const std::string& advice);

/// The study directory for a verb's STUDY argument. A directory, or a path that does not exist, is returned unchanged;
/// a study file gives ./<study.name>, as `run` without -o. Of the file only the name is read, so that mistakes in it
/// and missing data hide no results. Throws base::UsageError for a file that is not a study file, base::IoError when
/// the path may not be read.
[[nodiscard]] std::string directory_of(const std::string& study);

/// What a study learns from earlier ones, for the start screen.
[[nodiscard]] std::string earlier_text(const study::WarmStarted& earlier, const report::Style& style);

/// Where `ranktune run` puts a study: -o, the directory given as STUDY, or ./<study.name>.
[[nodiscard]] std::string directory_for(const RunArguments& arguments, const StudyInput& input);

/// The command of `verb`, without options that count once (--fresh, --resume-errored, ...), to be typed again.
[[nodiscard]] std::string command_of(const std::string& verb, const RunArguments& arguments);

/// Throws base::UsageError when `directory` cannot be a study's (a file or a dangling link is in the way), when
/// --fresh would rename a folder that also holds the study file or the working directory, or as refuse_other_output.
/// `study`: as the user typed it.
void refuse_directory(const std::string& directory, const std::string& study, const StudyInput& input, bool fresh);

/// Throws base::UsageError for a study whose trials are asked for and told: no rank can run them.
void refuse_outside(const study::StudySpec& spec, const std::string& directory);

/// The path made absolute, without "." and "..", and without a trailing slash.
[[nodiscard]] std::string absolute_directory(const std::string& directory);

/// The text of a file that an option names. Empty path: empty text. Throws base::UsageError, which begins with
/// `failure`: "cannot read the model file".
[[nodiscard]] std::string text_of(const std::string& path, const std::string& failure);

} // namespace ranktune::cli
