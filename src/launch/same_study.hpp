// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a study's directory is still the one that `supervise` began with. Pure: readings in, decision out.

#include <string>

namespace ranktune::launch {

/// What can be seen of the directory.
struct DirectoryReading {
    bool exists = false;
    bool has_entries = false;
    bool has_status = false;  ///< the file that a head writes, which has begun a journal before
    bool has_journal = false; ///< also one that cannot be read
    std::string uuid;         ///< of the study; empty: not known
};

/// A directory that was moved away and replaced by another one would make the next start begin a new study there.
class SameStudy {
  public:
    /// Before a step. `anew`: its command may put another study into the directory (`--fresh`, a script).
    void begin(const DirectoryReading& now, bool anew);
    /// After the step, and again before the next one: this is not the directory that the study was in.
    [[nodiscard]] bool is_replaced(const DirectoryReading& now);
    /// There was a study, and there is no directory.
    [[nodiscard]] bool is_lost(const DirectoryReading& now) const { return had_journal_ && !now.exists; }

  private:
    std::string uuid_;
    bool had_journal_ = false;
    bool existed_ = false; ///< before the step
    bool anew_ = false;
};

} // namespace ranktune::launch
