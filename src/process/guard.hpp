// SPDX-License-Identifier: Apache-2.0
#pragma once
// Guard: kills the descendants of programs when this process is killed and cannot do it itself.

#include <sys/types.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "storage/unique_handle.hpp"

namespace ranktune::process {

/// One shell per process, started with the first program. It reads from a socket which process groups are alive. When
/// this process ends in any way, the socket closes, and the shell kills the remaining groups, and processes that have
/// left their group (setsid) but have the mark in their environment. (The program itself has a death signal; its
/// descendants do not.) It can also keep a descriptor open beyond the end of this process. Without a shell there is no
/// guard; everything else works.
class Guard {
  public:
    /// The guard of this process. Thread-safe.
    static Guard& instance();
    /// `NAME=value` for the environment of all programs of this process, and of no other.
    [[nodiscard]] const std::string& mark() const { return mark_; }
    /// Starts the shell if that has not been tried yet.
    void prepare();
    /// Starts the shell, with a copy of the descriptor, which it keeps open after the end of this process while one of
    /// the other processes lives. Call before the first program; the descriptor is closed here.
    void hold(storage::FileDescriptor descriptor, const std::vector<std::uint64_t>& processes);
    void begin(pid_t group);
    void end(pid_t group);

  private:
    Guard();
    void tell(char what, pid_t group);

    const std::string mark_;
    std::mutex mutex_;
    bool started_ = false;
    storage::FileDescriptor held_;
    std::vector<std::string> others_; ///< process ids
    storage::FileDescriptor socket_;
};

/// Kills this user's processes whose mark belongs to a process that has ended. Needed when a worker and its guard were
/// killed at the same moment. Only marks of this pid namespace count. Returns the number of killed processes.
int end_programs_of_the_dead();

} // namespace ranktune::process
