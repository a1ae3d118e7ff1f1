// SPDX-License-Identifier: Apache-2.0
#pragma once
// The stack of a thread that hangs in user code, for the log, before the process is given up.

#include <pthread.h>

namespace ranktune::group {

/// Makes `thread` write its stack to `fd` (symbols where the program exports them, otherwise addresses for addr2line)
/// from a signal handler, and waits for that at most a second. The thread must be alive. For use just before `_exit`:
/// the signal may interrupt a call of user code.
void write_stack_of(pthread_t thread, int fd);

} // namespace ranktune::group
