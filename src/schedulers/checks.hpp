// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks of records, snapshots and invariants. Messages are put together only when a check fails: debug builds check
// the invariants after every event.

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "ranktune/base/error.hpp"
#include "ranktune/schedulers/scheduler.hpp"

namespace ranktune::schedulers {

/// What a scheduler keeps of a trial. Throws base::FormatError for a trial that was never created.
template <class Slots>
[[nodiscard]] auto& slot_of(Slots& slots, base::TrialId trial) {
    if (trial.value() >= slots.size())
        throw base::FormatError("a record names trial " + std::to_string(trial.value()) + ", which was never created");
    return slots[trial.value()];
}

/// Throws base::FormatError, "trial <number> <what>", unless the record fits.
inline void require_record(bool fits, base::TrialId trial, const char* what) {
    if (fits) [[likely]]
        return;
    throw base::FormatError("trial " + std::to_string(trial.value()) + " " + what);
}

/// Throws std::logic_error with the concatenated parts unless `holds`.
template <class... Parts>
void require(bool holds, const Parts&... parts) {
    if (holds) [[likely]]
        return;
    std::ostringstream text;
    (text << ... << parts);
    throw std::logic_error(text.str());
}

/// A set of trials that can be cleared in O(1).
class MarkedTrials {
  public:
    explicit MarkedTrials(std::size_t trials) : marks_(trials, 0) {}
    void clear() { ++round_; }
    /// Returns false if the trial is marked already or does not exist.
    bool mark(std::size_t trial) {
        if (trial >= marks_.size() || marks_[trial] == round_) return false;
        marks_[trial] = round_;
        return true;
    }

  private:
    std::vector<std::uint32_t> marks_;
    std::uint32_t round_ = 1;
};

/// Throws base::FormatError, "the snapshot of scheduler <name> <what>", unless `holds`.
inline void require_format(bool holds, const char* name, const char* what) {
    if (holds) [[likely]]
        return;
    throw base::FormatError(std::string("the snapshot of scheduler ") + name + " " + what);
}

/// The same for a restored scheduler whose invariants do not hold.
inline void require_invariants(const Scheduler& restored, const char* name) {
    try {
        restored.check_invariants();
    } catch (const std::logic_error& error) {
        throw base::FormatError(std::string("the snapshot of scheduler ") + name +
                                " does not fit together: " + error.what());
    }
}

} // namespace ranktune::schedulers
