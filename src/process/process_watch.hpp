// SPDX-License-Identifier: Apache-2.0
#pragma once
// ProcessWatch: knows within milliseconds that another process of this machine has ended.

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "ranktune/base/log.hpp"
#include "storage/unique_handle.hpp"

namespace ranktune::process {

/// One process of a machine, for good: a pid alone may be used again.
struct ProcessId {
    std::uint64_t pid = 0;
    std::uint64_t started = 0; ///< clock ticks since boot; 0: unknown
    std::string space;         ///< its pid namespace: pids mean nothing in another one
    static void fields(auto&& each, auto& r) { each(r.pid, r.started, r.space); }
    friend bool operator==(const ProcessId&, const ProcessId&) = default;
};
[[nodiscard]] ProcessId this_process();

/// A descriptor (pidfd) that is readable once the process has ended; empty: there is no such process, or the kernel is
/// older than Linux 5.3.
[[nodiscard]] storage::FileDescriptor open_process(std::uint64_t pid);

/// Neither ended nor a zombie. Requires the own pid namespace.
[[nodiscard]] bool lives(const ProcessId& process);
/// False: it has ended already, or may not be signalled. Requires the own pid namespace.
bool send_signal(const ProcessId& process, int signal);

/// What became of a process that was to be killed because it is silent.
enum class Killing {
    done,   ///< it was signalled
    waits,  ///< one of its threads runs or waits for a core: it may only be slow
    nobody, ///< it has ended, or may not be signalled
};
/// Kills the process, unless it may only be slow; `at_once`: even then. Requires the own pid namespace.
[[nodiscard]] Killing kill_silent(const ProcessId& process, bool at_once);

/// Kills this process, as kill -9 of somebody else would, after a line in the log. `write_out` brings that to its file.
[[noreturn]] void die_on_purpose(base::LogSink& log, const std::function<void()>& write_out);

/// Watches the first process of a list that lives, and after its end the next one: when all processes of a node watch
/// those that follow them, in a ring, every end is seen by one that lives, however many end at once. The kernel says so
/// (pidfd_open; before Linux 5.3 this asks /proc every 50 ms). A thread of its own, which sleeps.
class ProcessWatch {
  public:
    /// `ended` gets the position of each process that has ended, in order, on the thread of the watch.
    ProcessWatch(std::vector<ProcessId> processes, std::function<void(std::size_t position)> ended);
    ~ProcessWatch(); ///< waits for a running call
    ProcessWatch(const ProcessWatch&) = delete;
    ProcessWatch& operator=(const ProcessWatch&) = delete;

  private:
    void main();
    [[nodiscard]] bool outlives(const ProcessId& process) const;

    std::vector<ProcessId> processes_;
    std::function<void(std::size_t)> ended_;
    storage::FileDescriptor quit_; ///< an eventfd: readable when the thread shall end
    std::thread thread_;           ///< last: starts when all members above exist
};

} // namespace ranktune::process
