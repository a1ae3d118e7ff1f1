// SPDX-License-Identifier: Apache-2.0
#pragma once
// CheckpointError: how an attempt ends whose checkpoint is not to be had.

#include <string>

#include "ranktune/base/error.hpp"
#include "ranktune/study/spec.hpp"
#include "storage/checkpoint_store.hpp"

namespace ranktune::drivers {

/// The checkpoint that the attempt should start from (`unreadable`, `unreachable`), or end with (`unsaved`,
/// `stateless`), is not to be had.
class CheckpointError : public base::Error {
  public:
    CheckpointError(study::AttemptOutcome outcome, const std::string& what) : Error(what), outcome_(outcome) {}
    [[nodiscard]] study::AttemptOutcome outcome() const { return outcome_; }

  private:
    study::AttemptOutcome outcome_;
};

/// Of what was thrown while a checkpoint was read. Only damage makes it useless; what the file system says today may be
/// otherwise tomorrow, and a file of a newer version waits for that.
[[nodiscard]] inline study::AttemptOutcome outcome_of_reading(const base::Error& error) {
    return dynamic_cast<const storage::DamageError*>(&error) != nullptr ? study::AttemptOutcome::unreadable
                                                                        : study::AttemptOutcome::unreachable;
}

/// Of a trial that was to pause after `iteration`: `why` says what its trainable lacks and how to mend it, or what to
/// say of it instead; what `scheduler` needs for that follows.
[[nodiscard]] inline std::string without_state_text(study::Iteration iteration, const std::string& why,
                                                    const study::SchedulerSpec& scheduler) {
    const bool asha = scheduler.kind == study::SchedulerKind::asha;
    return "it was to pause at iteration " + std::to_string(iteration) + ", but " + why +
           (asha ? " and restart_paused = true in [scheduler]: trials that are promoted then train again from the "
                   "beginning. With either the same command goes on. (variant = \"stop\" in [scheduler] never pauses; "
                   "it "
                   "begins again, with --fresh)"
                 : ", with hard_stop = true in [scheduler], which never pauses, and begin again with --fresh");
}

} // namespace ranktune::drivers
