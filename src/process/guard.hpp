// SPDX-License-Identifier: Apache-2.0
#pragma once
// Guard: ends the descendants of a program when this process is killed and cannot do it itself.

#include <sys/types.h>

#include <mutex>
#include <string>

#include "storage/file_descriptor.hpp"

namespace ranktune::process {

/// One shell per process, started with the first program. It reads from a socket which process groups are alive; when
/// this process ends, however it does, the socket ends, and the shell kills the groups that are left, and what has left
/// its group (setsid) but still has the mark in its environment. (The program itself has a death signal; what it
/// started has not.) Without a shell there is no guard, which changes nothing else.
class Guard {
  public:
    /// Of this process. Thread-safe.
    static Guard& instance();
    /// `NAME=value` for the environment of all programs of this process, and of no other.
    [[nodiscard]] const std::string& mark() const { return mark_; }
    /// Starts the shell if that has not been tried yet.
    void prepare();
    void begin(pid_t group);
    void end(pid_t group);

  private:
    Guard();
    void tell(char what, pid_t group);

    const std::string mark_;
    std::mutex mutex_;
    bool started_ = false;
    storage::FileDescriptor socket_;
};

/// Kills the processes of this user that have the mark of a process which has ended: when a worker and its guard are
/// killed at the same moment, nobody else ends what has left its process group. Only marks of this pid namespace count.
/// Returns how many.
int end_programs_of_the_dead();

} // namespace ranktune::process
