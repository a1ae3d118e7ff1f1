// SPDX-License-Identifier: Apache-2.0
#pragma once
// Logs the stack of a thread that hangs in user code, before the process is given up.

#include <pthread.h>

namespace ranktune::worker {

/// Sends `thread` a signal whose handler writes its stack to `fd` (symbols if the program exports them, otherwise
/// addresses for addr2line), and waits at most a second. The thread must be alive. Use only just before `_exit`: the
/// signal may interrupt user code.
void write_stack_of(pthread_t thread, int fd);

} // namespace ranktune::worker
