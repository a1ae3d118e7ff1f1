// SPDX-License-Identifier: Apache-2.0
#pragma once
// Separates the messages of Open MPI's mpirun from those of its ranks. Pure: lines in, text out.

#include <string>
#include <string_view>

namespace ranktune::comm::mpi {

/// "mpirun: Forwarding signal 10 to job", since the end screen says why the study stops; and the complaint of its PMIx
/// (BAD-PARAM in pmix_event_notification.c) about the death of a rank that the job outlives.
[[nodiscard]] bool is_noise(std::string_view line);

/// Collects mpirun's messages, each framed by two lines of dashes, until it is known whether they are needed. A study
/// that ran reports its own end; after a failed launch mpirun's messages are the only explanation. (mpirun's own
/// --quiet would drop them all.)
class LauncherWords {
  public:
    /// Takes one line, without its newline. True: mpirun's, kept or dropped here. False: a rank's.
    [[nodiscard]] bool take(std::string_view line);
    /// The messages with their frames, without those that only say how a rank ended.
    [[nodiscard]] std::string text() const;

  private:
    void close();

    std::string block_; ///< the message being read; empty: none
    std::string kept_;
};

} // namespace ranktune::comm::mpi
