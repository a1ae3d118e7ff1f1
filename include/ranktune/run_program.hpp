// SPDX-License-Identifier: Apache-2.0
#pragma once
// The ranktune command line as one function: for programs with trainables of their own.

namespace ranktune {

/// Runs a command line (`run`, `validate`, `status`, ...) and returns the exit code: 0 ok, 1 run-time error, 2 usage or
/// configuration, 3 more failed trials than failure.tolerate, 4 no trial succeeded, 75 stopped early and resumable.
/// Call it from the main thread, before MPI is initialised and before any other thread is started, after registering
/// trainables. Never throws.
[[nodiscard]] int run_program(int argc, char** argv);

} // namespace ranktune
