// SPDX-License-Identifier: Apache-2.0
#pragma once
// CheckpointError: how an attempt ends whose checkpoint is not to be had.

#include <string>

#include "ranktune/base/error.hpp"
#include "ranktune/study/vocabulary.hpp"
#include "storage/checkpoint_store.hpp"

namespace ranktune::drivers {

/// The checkpoint that the attempt should start from (`unreadable`, `unreachable`), or end with (`unsaved`), is not to
/// be had.
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

} // namespace ranktune::drivers
