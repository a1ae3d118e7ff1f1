// SPDX-License-Identifier: Apache-2.0
#include "studydir/earlier/earlier_results.hpp"

#include <filesystem>

#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "storage/journal/journal.hpp"
#include "studydir/earlier/found.hpp"

namespace ranktune::studydir {
namespace {

/// Every result is a line of the table of observations, which is kept in memory and in snapshots.
constexpr std::uint64_t most_results = 1'000'000;

Found read_file(storage::FileSystem& files, const study::WarmSource& source, const study::StudySpec& spec) {
    std::string text;
    try {
        text = storage::read_text(files, source.path);
    } catch (const base::IoError& error) {
        if (error.code() == std::errc::no_such_file_or_directory)
            refuse(source, "there is no such file; it is needed until the study has begun");
        refuse(source, "cannot be read: " + error.code().message());
    }
    if (text.starts_with("SQLite format 3"))
        refuse(source,
               "is an SQLite database; write its trials as a table first: "
               "study.trials_dataframe().to_csv(\"old.csv\"), and give { path = \"old.csv\", metric = \"value\" }");
    if (text.find('\0') != std::string::npos)
        refuse(source, "is no text; a study directory, a CSV table or a journal of Optuna is needed");
    return base::trimmed(std::string_view(text).substr(0, 64)).starts_with('{')
               ? read_optuna_journal(text, source, spec)
               : read_table(text, source, spec);
}

Found read_source(storage::FileSystem& files, const study::WarmSource& source, const study::StudySpec& spec,
                  const study::Algorithms& algorithms) {
    std::error_code error;
    if (!std::filesystem::is_directory(source.path, error)) return read_file(files, source, spec);
    if (!storage::has_journal(files, source.path))
        refuse(source, "is a directory without a study in it; give the directory of a study, or a file");
    return read_study_directory(files, source, spec, algorithms);
}

} // namespace

[[noreturn]] void refuse(const study::WarmSource& source, const std::string& what) {
    throw base::UsageError("searcher.warm_start: " + source.path + ": " + what);
}

[[noreturn]] void refuse(const study::WarmSource& source, std::size_t line, const std::string& what) {
    throw base::UsageError("searcher.warm_start: " + source.path + ":" + std::to_string(line) + ": " + what);
}

std::optional<study::WarmStarted> read_earlier_results(storage::FileSystem& files, const study::StudySpec& spec,
                                                       const study::Algorithms& algorithms) {
    if (spec.searcher.warm_start.empty()) return {};
    study::WarmStarted earlier;
    for (const study::WarmSource& source : spec.searcher.warm_start)
        earlier.sources.push_back(fit(read_source(files, source, spec, algorithms), source, spec, earlier.trials));
    std::uint64_t results = 0;
    for (const study::EarlierTrial& trial : earlier.trials) results += trial.results.size();
    if (results > most_results)
        throw base::UsageError("searcher.warm_start: the files hold " + base::grouped(results) + " results, at most " +
                               base::grouped(most_results) +
                               " can be used; give fewer files, or a table with the last result of each trial "
                               "(ranktune export --format csv)");
    return earlier;
}

std::vector<std::string> earlier_lines(const study::WarmStarted& earlier) {
    std::vector<std::string> lines;
    for (const auto& source : earlier.sources)
        lines.push_back(base::counted(source.trials, "trial") + " of " + source.path +
                        (source.why.empty() ? "" : "; " + source.why));
    return lines;
}

} // namespace ranktune::studydir
