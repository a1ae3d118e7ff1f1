// SPDX-License-Identifier: Apache-2.0
#pragma once
// Descendants: what programs leave behind when they end comes to this process, which ends it.

#include <sys/types.h>

#include <functional>
#include <optional>
#include <set>

namespace ranktune::process {

/// Starts a program by calling `spawn`, and remembers it as one that is alive. From the first call on, orphans of
/// programs become children of this process (PR_SET_CHILD_SUBREAPER); the children that it had before are left alone
/// for good.
[[nodiscard]] pid_t start_as_child(const std::function<pid_t()>& spawn);

/// The program has been waited for. Kills and waits for every child of this process that is neither a program that is
/// still alive nor older than the first of them. Bounded: what a kernel does not let die within seconds is left.
void end_descendants_of(pid_t program);

/// All children of this process, zombies included.
[[nodiscard]] std::set<pid_t> children_of_this_process();

/// Whether a process of this machine stands still (SIGSTOP, a debugger).
[[nodiscard]] bool is_stopped(pid_t process);

/// Whether a process of this machine has children that live; nothing: it cannot be found out.
[[nodiscard]] std::optional<bool> has_living_children(pid_t parent);

} // namespace ranktune::process
