// SPDX-License-Identifier: Apache-2.0
#pragma once
// Replay of a journal with questions: would the algorithms decide the same again, and what is the study's logical
// content, without times, places and attempts?

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "report/text.hpp"
#include "storage/journal/journal.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::report {

struct Verification {
    std::uint64_t records = 0;   ///< checked
    std::uint64_t decisions = 0; ///< that an algorithm was asked for again: verdicts, suggestions, promotions, starts
    std::uint64_t snapshots = 0; ///< whose digest was compared
    std::uint64_t foreign = 0;   ///< snapshots of another version, which cannot be compared
    std::uint64_t rounded = 0;   ///< suggestions that differ by one unit in the last place
    std::string difference;      ///< the first one, in words; empty: none
    std::uint64_t difference_at = 0; ///< number of the record
};

/// Feeds the events that the records tell of to a fresh core and compares what it decides, record by record, up to
/// `until` records. Throws base::UsageError without a journal, base::FormatError for a damaged one.
[[nodiscard]] Verification verify_journal(storage::FileSystem& files, const std::string& directory,
                                          std::uint64_t until = std::numeric_limits<std::uint64_t>::max());

/// What a difference means and what to do, for people. `wrote`: the version that created the study; `version`: this
/// one.
[[nodiscard]] std::string difference_text(const Verification& found, const std::string& wrote,
                                          const std::string& version, const std::string& directory, const Style& style);

/// Digest of what a study found out: per trial its configuration, the metrics at every iteration (of the first report
/// of that iteration), decisions on it, and how it ended. Times, hosts, ranks, attempts and starts are left out.
class LogicalDigest {
  public:
    void add(const study::Record& record);
    [[nodiscard]] std::uint64_t value() const;

  private:
    struct Iteration {
        base::Iteration iteration = 0;
        std::vector<study::MetricValue> metrics;
    };
    struct Trial {
        space::Configuration configuration;
        std::vector<Iteration> reports; ///< ascending iterations
        study::Bytes decisions;
        study::TrialPhase phase = study::TrialPhase::waiting;
        study::Reason reason = study::Reason::none;
    };
    std::vector<std::string> metrics_;
    std::vector<Trial> trials_;
};

} // namespace ranktune::report
