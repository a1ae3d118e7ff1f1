// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is thrown in an attempt whose end is not simply the fault of its trial, and how an attempt ends by what was
// thrown.

#include <cstdint>
#include <exception>
#include <optional>
#include <string>

#include "ranktune/base/error.hpp"
#include "ranktune/study/vocabulary.hpp"
#include "storage/checkpoints/checkpoint_store.hpp"

namespace ranktune::trial {

/// The checkpoint that the attempt should start from (`unreadable`, `unreachable`), or end with (`unsaved`,
/// `stateless`), is not to be had.
class CheckpointError : public base::Error {
  public:
    /// `rank`: of the trial, that could not read or write its part, when another rank throws for it.
    CheckpointError(study::AttemptOutcome outcome, const std::string& what, std::optional<std::uint32_t> rank = {})
        : Error(what), outcome_(outcome), rank_(rank) {}
    [[nodiscard]] study::AttemptOutcome outcome() const { return outcome_; }
    [[nodiscard]] std::optional<std::uint32_t> rank() const { return rank_; }

  private:
    study::AttemptOutcome outcome_;
    std::optional<std::uint32_t> rank_;
};

/// A time-out, a program that was killed: the outcome `disturbed`.
class DisturbedError : public base::Error {
  public:
    using Error::Error;
};

/// Of what was thrown while a checkpoint was read. Only damage makes it useless; what the file system says today may be
/// otherwise tomorrow, and a file of a newer version waits for that.
[[nodiscard]] inline study::AttemptOutcome outcome_of_reading(const base::Error& error) {
    return dynamic_cast<const storage::DamageError*>(&error) != nullptr ? study::AttemptOutcome::unreadable
                                                                        : study::AttemptOutcome::unreachable;
}

/// How an attempt ends in which this was thrown on a rank: as the errors above say; `unstarted` for a SetUpError;
/// `disturbed` for what the machine may be the cause of (memory, files, the system); `failed` for anything else.
[[nodiscard]] study::AttemptOutcome outcome_of(const std::exception_ptr& error);

/// Its message.
[[nodiscard]] std::string message_of(const std::exception_ptr& error);
/// Its message with the rank of the trial that it is about: `thrower`, unless it names another.
[[nodiscard]] study::Failure failure_of(const std::exception_ptr& error, std::uint32_t thrower);

} // namespace ranktune::trial
