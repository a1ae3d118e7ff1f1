// SPDX-License-Identifier: Apache-2.0
#pragma once
// CheckpointError: how an attempt ends whose checkpoint is not to be had.

#include <string>

#include "ranktune/base/error.hpp"
#include "ranktune/study/vocabulary.hpp"

namespace ranktune::drivers {

/// The checkpoint that the attempt should start from (`unreadable`), or end with (`unsaved`), is not to be had.
class CheckpointError : public base::Error {
  public:
    CheckpointError(study::AttemptOutcome outcome, const std::string& what) : Error(what), outcome_(outcome) {}
    [[nodiscard]] study::AttemptOutcome outcome() const { return outcome_; }

  private:
    study::AttemptOutcome outcome_;
};

} // namespace ranktune::drivers
