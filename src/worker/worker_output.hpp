// SPDX-License-Identifier: Apache-2.0
#pragma once
// Output of user code: standard output and error of a worker, line by line into the node's log file.

#include <chrono>
#include <optional>
#include <string>

#include "process/output_limit.hpp"
#include "ranktune/base/ids.hpp"
#include "worker/worker_runner.hpp"

namespace ranktune::worker {

/// Redirects file descriptors 1 and 2 of this process until it is destroyed (the terminal is rank 0's). A printed line
/// is logged as `<time> I out rank=3 trial=17 | <the line>`, within the limits of process::OutputLimit for each trial.
///
/// On a crash (SEGV, BUS, FPE, ILL, ABRT) the signal, the trial, the stack and the last output go to the log; then the
/// process ends as it would have. Sanitizers report on standard error themselves, so with them only ABRT is handled.
/// One object per process.
class WorkerOutput {
  public:
    /// `log` outlives it. Throws base::IoError when the process is out of file descriptors.
    explicit WorkerOutput(WorkerLog& log);
    ~WorkerOutput();
    WorkerOutput(const WorkerOutput&) = delete;
    WorkerOutput& operator=(const WorkerOutput&) = delete;

    /// Moves the output to the log. Call it often: a full pipe blocks the writer. `trial` is the one that runs here.
    /// Before the log is open the pipe keeps the output.
    void drain(std::optional<base::TrialId> trial);
    /// The same in each round of a loop, where it looks for output of one trial once in a millisecond.
    void tend(std::optional<base::TrialId> trial);

  private:
    WorkerLog& log_;
    int pipe_ = -1; ///< read end
    int kept_out_ = -1;
    int kept_error_ = -1;
    std::string partial_;
    std::string trial_ = "-";
    std::chrono::steady_clock::time_point next_look_{};
    std::optional<base::TrialId> looked_for_;
    process::OutputLimit limit_; ///< of the trial
};

} // namespace ranktune::worker
