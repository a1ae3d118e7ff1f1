// SPDX-License-Identifier: Apache-2.0
#pragma once
// The exit codes in words: of the help, of the manual pages and of the reference.

namespace ranktune::cli {

struct ExitCode {
    int code;
    const char* brief;   ///< for a line of the help
    const char* meaning; ///< at most 25 words
};

inline constexpr ExitCode exit_codes[] = {
    {0, "ok", "The verb did what it was told. A study is finished; trials may have failed, up to `failure.tolerate`."},
    {1, "run-time error", "An error at run time. The message says what to do; a study goes on with the same command."},
    {2, "usage or configuration",
     "Wrong usage or study file, and nothing was started; or the study does not fit its program, and was stopped."},
    {3, "too many failed trials", "Complete, but more trials failed than `failure.tolerate` allows."},
    {4, "no trial succeeded",
     "No trial succeeded, or no report ever had a finite value of `study.metric`. Of views: there is no best trial "
     "(yet)."},
    {75, "stopped early, resumable", "Stopped before its end. The same command goes on."},
    {76, "workers that lost their head", "The head was held up or died. Under `supervise` the step is started again."},
};

} // namespace ranktune::cli
