// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the files of earlier studies hold, before it is fitted to the space of this study.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "ranktune/study/algorithm.hpp"
#include "ranktune/study/record.hpp"
#include "ranktune/study/spec.hpp"
#include "storage/file_system.hpp"

namespace ranktune::studydir {

/// A trial as its file has it.
struct FoundTrial {
    space::Configuration values; ///< by the names of the file
    std::vector<study::EarlierTrial::Result> results;
    bool failed = false;
};

struct Found {
    std::vector<FoundTrial> trials;
    std::set<std::string> names; ///< of all hyper-parameters that the file has
    /// True for tables, whose other columns are no hyper-parameters. Otherwise users are told of names that this study
    /// lacks.
    bool only_known_names = false;
};

/// Throws base::UsageError with the path and, where there is one, the line of the file. All readers do.
[[nodiscard]] Found read_study_directory(storage::FileSystem& files, const study::WarmSource& source,
                                         const study::StudySpec& spec, const study::Algorithms& algorithms);
/// A table with a header: as `ranktune export --format csv` writes it (its last value of each trial counts), or with a
/// column for each hyper-parameter (also `params_NAME`, as Optuna's data frames have it), one for the metric and
/// perhaps one named `iteration` and one named `state`.
[[nodiscard]] Found read_table(const std::string& text, const study::WarmSource& source, const study::StudySpec& spec);
/// A journal file of Optuna (JournalStorage). The value of a complete trial counts at study.max_iterations, and an
/// intermediate value at its step, from 1 on.
[[nodiscard]] Found read_optuna_journal(const std::string& text, const study::WarmSource& source,
                                        const study::StudySpec& spec);

/// Takes the trials one by one, so that they are not in memory twice. Appends those that this study can use to `out`,
/// as configurations of its space, and says what it cannot use. Throws base::UsageError for a hyper-parameter that no
/// trial of the file can have.
[[nodiscard]] study::WarmStarted::Source fit(Found found, const study::WarmSource& source, const study::StudySpec& spec,
                                             std::vector<study::EarlierTrial>& out);

/// `searcher.warm_start: old.csv: what`, thrown as base::UsageError.
[[noreturn]] void refuse(const study::WarmSource& source, const std::string& what);
/// The same with a line of the file.
[[noreturn]] void refuse(const study::WarmSource& source, std::size_t line, const std::string& what);

} // namespace ranktune::studydir
