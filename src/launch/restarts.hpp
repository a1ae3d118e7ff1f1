// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a step that has ended is started again, and whether the study directory is still the same. Pure: facts in,
// decision out.

#include <cstdint>
#include <optional>
#include <string>

#include "studydir/study_directory.hpp"

namespace ranktune::launch {

/// What is known when a step is over.
struct StepFacts {
    int code = 0;           ///< of the launcher; 128 + n: it was killed by signal n
    bool asked = false;     ///< this process was told to stop, and passed it on
    bool outlives = false;  ///< its launcher was told to outlive ranks: its code says nothing about them
    bool head_died = false; ///< known: the lease of this step's head is still there
    std::optional<studydir::OutcomeFile> outcome; ///< of this step's head; nothing: it wrote none
    std::optional<int> finished;                  ///< exit code of a study that is over for good, from its journal
    bool has_journal = false;                     ///< there is a study to continue
    std::uint64_t progress = 0;                   ///< tuner::progress_of now
    bool nodes_left_out = false;                  ///< the step ran without the lost nodes
    bool can_write = true;                        ///< the study directory accepts a few files now
    bool directory_lost = false;                  ///< the study directory must have existed and is gone
    bool directory_replaced = false;              ///< another directory is in its place (SameStudy)
};

struct RestartDecision {
    bool restart = false;
    int code = 0;           ///< exit code, unless `restart`
    std::string words;      ///< why it is started again, or what to do; empty: the study has said it
    bool blameless = false; ///< the step ended for a cause outside the trials: LastEnd::told
};

/// The history of one supervised study.
class Restarts {
  public:
    /// Starts in a row without progress after which another start is pointless.
    static constexpr std::uint32_t hopeless = 2;

    /// `limit`: maximum number of restarts. `progress`: of the study before the first step.
    Restarts(std::uint32_t limit, std::uint64_t progress) : limit_(limit), progress_(progress) {}

    /// Called once per step that has ended.
    [[nodiscard]] RestartDecision after(const StepFacts& facts);
    /// Restarts so far.
    [[nodiscard]] std::uint32_t count() const { return count_; }

  private:
    std::uint32_t limit_;
    std::uint64_t progress_;
    std::uint32_t count_ = 0;
    std::uint32_t fruitless_ = 0; ///< steps in a row without progress
};

/// What can be observed of the directory.
struct DirectoryReading {
    bool exists = false;
    bool has_entries = false;
    bool has_status = false;  ///< written by a head, after it has begun a journal
    bool has_journal = false; ///< also if it cannot be read
    std::string uuid;         ///< of the study; empty: unknown
};

/// Detects that the study directory was moved away and replaced: the next start would begin a new study there.
class SameStudy {
  public:
    /// Before a step. `anew`: its command may put another study into the directory (`--fresh`, a script).
    void begin(const DirectoryReading& now, bool anew);
    /// After the step, and again before the next one: whether this is another directory than the study's.
    [[nodiscard]] bool is_replaced(const DirectoryReading& now);
    /// There was a study, and its directory is gone.
    [[nodiscard]] bool is_lost(const DirectoryReading& now) const { return had_journal_ && !now.exists; }

  private:
    std::string uuid_;
    bool had_journal_ = false;
    bool existed_ = false; ///< before the step
    bool anew_ = false;
};

} // namespace ranktune::launch
