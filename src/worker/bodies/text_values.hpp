// SPDX-License-Identifier: Apache-2.0
#pragma once
// Side values of reports that are no numbers: the core has no use for them, so they become notes of the trial.

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ranktune/base/ids.hpp"
#include "ranktune/study/objective.hpp"
#include "worker/trial/attempt.hpp"

namespace ranktune::worker {

/// Of one attempt.
class TextValues {
  public:
    /// Keeps what a text was not in the report before; at most 1,000 of an attempt. Throws base::FormatError for an
    /// objective. Returns what has to be said in the log; empty: nothing.
    [[nodiscard]] std::string keep(const std::vector<std::pair<std::string, std::string>>& texts, base::TrialId trial,
                                   const study::Objective& objective, const ProgramSetting& setting);

  private:
    std::map<std::string, std::string> newest_; ///< by name
    std::size_t count_ = 0;
};

} // namespace ranktune::worker
