// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descendants: processes that programs leave behind become children of this process, which kills them.

#include <sys/types.h>

#include <functional>
#include <optional>
#include <set>

namespace ranktune::process {

/// Starts a program by calling `spawn`, and registers it as alive. From the first call on, orphans of programs become
/// children of this process (PR_SET_CHILD_SUBREAPER); children from before the first call are never touched.
[[nodiscard]] pid_t start_as_child(const std::function<pid_t()>& spawn);

/// Call after the program has been reaped. Kills and reaps every child of this process except programs that are still
/// alive and children from before the first program. Bounded: gives up on processes that do not die within seconds.
void end_descendants_of(pid_t program);

/// Kills and reaps the children that living programs have left behind; bounded like end_descendants_of.
void end_orphans();

/// All children of this process, zombies included.
[[nodiscard]] std::set<pid_t> children_of_this_process();

/// Whether a process of this machine is stopped (SIGSTOP, a debugger).
[[nodiscard]] bool is_stopped(pid_t process);
/// Whether one of its threads runs, or waits for a core.
[[nodiscard]] bool is_runnable(pid_t process);

/// How many live children a process of this machine has; nothing: unknown.
[[nodiscard]] std::optional<std::size_t> living_children(pid_t parent);
/// Whether it has any.
[[nodiscard]] inline std::optional<bool> has_living_children(pid_t parent) {
    const auto living = living_children(parent);
    return living ? std::optional(*living > 0) : std::nullopt;
}

} // namespace ranktune::process
