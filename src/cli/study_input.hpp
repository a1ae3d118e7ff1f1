// SPDX-License-Identifier: Apache-2.0
#pragma once
// A study file from disk, parsed against the trainables that this program knows.

#include <string>
#include <vector>

#include "cli/verbs/verbs.hpp"
#include "ranktune/study/parse.hpp"

namespace ranktune::cli {

struct StudyInput {
    study::StudySpec spec;
    std::string text;      ///< as it is in the file
    std::string directory; ///< of the study, when that was given instead of a file (`run DIR`); empty otherwise
};

/// `file` may also be the directory of a study: then the study file that its journal holds counts, and `text` is that.
/// Throws study::StudyFileError with all mistakes, files that the trainable needs and that are not there, and trials
/// that ask for more ranks than `ranks` allows, among them; base::UsageError when the file cannot be read.
[[nodiscard]] StudyInput read_study(const std::string& file, const std::vector<std::string>& overrides,
                                    const study::RankCheck& ranks = {});

/// The directory of a study that a verb was given as its directory or as its file: of a file ./<study.name>, as `run`
/// without -o. Of the file the name alone counts: mistakes in it, and data that are gone, hide no results. What is not
/// there stays as it is: whoever looks into it says more. Throws base::UsageError for a file that is none of a study,
/// base::IoError for what may not be looked at.
[[nodiscard]] std::string directory_of(const std::string& study);

/// Where `ranktune run` puts a study: -o, the directory that was given as the study, or ./<study.name>.
[[nodiscard]] std::string directory_for(const RunArguments& arguments, const StudyInput& input);

/// Before anything is started: throws base::UsageError when something is in the way of a study in `directory` (a file,
/// a link that leads nowhere), or when --fresh would rename a folder that holds more than a study: the study file, or
/// the working directory. `study`: as it was given.
void refuse_directory(const std::string& directory, const std::string& study, const StudyInput& input, bool fresh);

/// The same path absolute, without "." and "..", and without a slash at its end.
[[nodiscard]] std::string absolute_directory(const std::string& directory);

} // namespace ranktune::cli
