// SPDX-License-Identifier: Apache-2.0
#pragma once
// Exceptions that give an attempt an outcome other than `failed`, and the outcome for each exception.

#include <cstdint>
#include <exception>
#include <optional>
#include <string>

#include "ddp/gradients/device_sums.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/study/vocabulary.hpp"
#include "storage/checkpoints/checkpoint_store.hpp"

namespace ranktune::worker {

/// The checkpoint to start from (`unreadable`, `unreachable`) or to end with (`unsaved`, `stateless`) is not available.
class CheckpointError : public base::Error {
  public:
    /// `rank`: the rank of the trial that could not read or write its part, when another rank throws.
    CheckpointError(study::AttemptOutcome outcome, const std::string& what, std::optional<std::uint32_t> rank = {})
        : Error(what), outcome_(outcome), rank_(rank) {}
    [[nodiscard]] study::AttemptOutcome outcome() const { return outcome_; }
    [[nodiscard]] std::optional<std::uint32_t> rank() const { return rank_; }

  private:
    study::AttemptOutcome outcome_;
    std::optional<std::uint32_t> rank_;
};

/// A time-out or a killed program: the outcome `disturbed`.
class DisturbedError : public base::Error {
  public:
    using Error::Error;
};

/// A program has ended with an exit code that failure.retry_on does not list: the outcome `permanent`.
class PermanentError : public base::Error {
  public:
    using Error::Error;
};

/// A program says that the memory of its GPU is full: the outcome `oversized`.
class OversizedError : public base::Error {
  public:
    using Error::Error;
};

/// A program has ended by itself: part of what is thrown for that, for failure_of.
class ProgramEnd {
  public:
    explicit ProgramEnd(std::uint32_t exit_code) : exit_code_(exit_code) {}
    [[nodiscard]] std::uint32_t exit_code() const { return exit_code_; } ///< as study::Failure counts

  private:
    std::uint32_t exit_code_;
};

/// The outcome when reading a checkpoint failed. Only damage makes it useless: other errors of the file system may
/// pass, and a newer ranktune can read a file of a newer version.
[[nodiscard]] inline study::AttemptOutcome outcome_of_reading(const base::Error& error) {
    return dynamic_cast<const storage::DamageError*>(&error) != nullptr ? study::AttemptOutcome::unreadable
                                                                        : study::AttemptOutcome::unreachable;
}

/// The outcome of an attempt in which a rank threw this: as said above; `unstarted` for a SetUpError, and where a rank
/// cannot use its GPU; `unsaved` for a file that could not be written (no space, quota, read-only, the limit of file
/// sizes); `disturbed` for other errors that the machine may have caused (memory, files, the system, a GPU);
/// `oversized` when the memory of a GPU is full; `permanent` for a PermanentError; `failed` for all others.
[[nodiscard]] study::AttemptOutcome outcome_of(const std::exception_ptr& error);

/// Its what().
[[nodiscard]] std::string message_of(const std::exception_ptr& error);
/// Its message with the rank it concerns: the one that it names, otherwise `thrower`. With advice, if it is oversized;
/// with the exit code of a ProgramEnd.
[[nodiscard]] study::Failure failure_of(const std::exception_ptr& error, std::uint32_t thrower);

/// Why an attempt is lost whose group is; empty where another rank says it.
[[nodiscard]] study::Failure failure_of(const ddp::GroupLost& error, std::uint32_t thrower);

/// "while saving at iteration 3: `why`"
[[nodiscard]] std::string while_saving(base::Iteration iteration, const std::string& why);
/// For a handler: throws what an attempt ends with when its last state cannot be saved, because of the exception being
/// handled. A trial that is `needed` to save has failed then, unless storage is the cause; otherwise the attempt is
/// `unsaved`.
[[noreturn]] void last_save_failed(bool needed, base::Iteration iteration);

} // namespace ranktune::worker
