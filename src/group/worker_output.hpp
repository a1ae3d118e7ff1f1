// SPDX-License-Identifier: Apache-2.0
#pragma once
// What user code prints: standard output and error of a worker, line by line into the node's log file.

#include <optional>
#include <string>

#include "group/worker_runner.hpp"
#include "ranktune/base/ids.hpp"

namespace ranktune::group {

/// Takes over file descriptors 1 and 2 of this process (terminals belong to rank 0) until it is destroyed. A line that
/// is printed appears as `<time> I out rank=3 trial=17 | <the line>`.
///
/// A crash (SEGV, BUS, FPE, ILL, ABRT) leaves a note with the signal, the trial and the stack in the log, with what was
/// printed last; then the process ends as it would have. Under a sanitizer, which reports on standard error by itself,
/// nothing is taken over. One per process.
class WorkerOutput {
  public:
    /// `log` outlives it. Throws base::IoError when the process is out of file descriptors.
    explicit WorkerOutput(WorkerLog& log);
    ~WorkerOutput();
    WorkerOutput(const WorkerOutput&) = delete;
    WorkerOutput& operator=(const WorkerOutput&) = delete;

    /// Moves what was printed to the log; call it often (a full pipe holds up who prints). `trial` is the one that runs
    /// here. Nothing is lost before the log is open: the pipe keeps it.
    void drain(std::optional<base::TrialId> trial);

  private:
    void write_line(const std::string& line);

    WorkerLog& log_;
    int pipe_ = -1; ///< end to read from
    int kept_out_ = -1;
    int kept_error_ = -1;
    std::string partial_;
    std::string trial_ = "-";
};

} // namespace ranktune::group
