// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a step that has ended is started again. Pure: facts in, decision out.

#include <cstdint>
#include <optional>
#include <string>

#include "studydir/study_directory.hpp"

namespace ranktune::launch {

/// What is known when a step is over.
struct StepFacts {
    int code = 0;                                 ///< of the launcher; 128 + n: it was killed by signal n
    bool asked = false;                           ///< this process was told to stop, and passed it on
    std::optional<studydir::OutcomeFile> outcome; ///< of this step's head; nothing: it did not come to write one
    std::optional<int> finished;                  ///< exit code of a study that is over for good, from its journal
    bool has_journal = false;                     ///< there is something to go on with
    std::uint64_t progress = 0;                   ///< tuner::progress_of now
    bool nodes_left_out = false;                  ///< the step ran without nodes that are gone
    bool can_write = true;                        ///< the study's directory takes a few files now
    bool directory_lost = false;                  ///< a head must have had it, and it is not there now
    bool directory_replaced = false;              ///< another one is in its place (SameStudy)
};

struct RestartDecision {
    bool restart = false;
    int code = 0;           ///< to end with, unless `restart`
    std::string words;      ///< for people: why it is started again, or what to do; empty: the study has said it all
    bool blameless = false; ///< the step ended for a cause that no trial can have: LastEnd::told
};

/// The history of one supervised study.
class Restarts {
  public:
    /// Incarnations in a row without progress after which another one would end in the same way.
    static constexpr std::uint32_t hopeless = 2;

    /// `limit`: restarts at most. `progress`: of the study before the first step.
    Restarts(std::uint32_t limit, std::uint64_t progress) : limit_(limit), progress_(progress) {}

    /// Called once per step that has ended.
    [[nodiscard]] RestartDecision after(const StepFacts& facts);
    /// Restarts so far.
    [[nodiscard]] std::uint32_t count() const { return count_; }

  private:
    std::uint32_t limit_;
    std::uint64_t progress_;
    std::uint32_t count_ = 0;
    std::uint32_t fruitless_ = 0; ///< steps in a row
};

} // namespace ranktune::launch
