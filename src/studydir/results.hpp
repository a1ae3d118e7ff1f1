// SPDX-License-Identifier: Apache-2.0
#pragma once
// metrics.h5 of a study, made from its journal.

#include <map>
#include <string>
#include <vector>

#include "ranktune/study/record.hpp"
#include "ranktune/study/spec.hpp"
#include "storage/file_system.hpp"
#include "storage/results.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::studydir {

/// Collects the columns of the tables `reports` and `trials` while the journal is read.
///
///   ResultsBuilder builder(spec);   read_journal(..., [&](auto&& record) { builder.add(record); });   builder.finish()
class ResultsBuilder {
  public:
    explicit ResultsBuilder(const study::StudySpec& spec);
    /// Adds the records in order, from the first one. Throws base::FormatError for a record that cannot follow.
    void add(const study::Record& record);
    /// The tables of all records added. `written`: wall time for the file's attribute.
    [[nodiscard]] storage::Results finish(const std::string& written) const;

  private:
    void add_report(const study::Reported& report);
    /// Returns whether the record is of a side task.
    bool add_side(const study::Record& record);
    [[nodiscard]] storage::ResultTable reports() const;
    [[nodiscard]] storage::ResultTable trials() const;

    tuner::Tuner tuner_; ///< replays the journal: the table `trials` is its state
    std::vector<std::int64_t> trial_;
    std::vector<std::int64_t> attempt_;
    std::vector<std::int64_t> iteration_;
    std::vector<double> time_;
    std::vector<double> seconds_;
    std::vector<std::string> verdict_;
    std::vector<std::vector<double>> metrics_; ///< by MetricId; shorter than the table until the next value comes
    std::map<std::string, std::vector<double>> after_; ///< metrics of [after_trial] by name, then by trial; likewise
};

/// Reads the journal of the study in `directory` and publishes its tables as `<directory>/metrics.h5`. Throws
/// base::IoError or base::FormatError.
void write_results(storage::FileSystem& files, const std::string& directory, const study::StudySpec& spec,
                   const std::string& written);

} // namespace ranktune::studydir
