// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a worker rank builds when the head has welcomed it: study, log, checkpoint store and the trial thread.

#include <functional>
#include <memory>
#include <string>

#include "group/worker_machine.hpp"
#include "process/wake.hpp"
#include "ranktune/base/log.hpp"
#include "storage/file_system.hpp"
#include "studydir/log_file.hpp"
#include "trial/attempt.hpp"
#include "trial/trial_thread.hpp"

namespace ranktune::group {

/// Lines go nowhere until a file is known (a worker learns the study directory from the head). Thread-safe once `open`
/// has been called before other threads use it.
class WorkerLog final : public base::LogSink {
  public:
    explicit WorkerLog(base::Rank rank) : rank_(rank) {}
    /// Throws base::IoError.
    void open(const std::string& path);
    void write(base::LogLevel level, std::string_view event, const std::vector<base::LogField>& fields) override;
    /// One line that user code printed: `<time> I out rank=3 trial=17 | <line>`.
    void write_output(const std::string& trial, const std::string& line);
    [[nodiscard]] base::Rank rank() const { return rank_; }
    /// -1 before `open`.
    [[nodiscard]] int fd() const { return file_ ? file_->fd() : -1; }

  private:
    base::Rank rank_;
    std::unique_ptr<studydir::LogFile> file_;
};

/// What else a rank does once it knows the study and its log is open.
using OnStudy = std::function<void(const study::StudySpec&)>;

/// Makes the runner of a rank: parses the study that the head sent, finds its trainable, opens the worker log. `form`
/// makes groups; `log` and `waker` outlive the runner; `devices` are those granted to this rank.
[[nodiscard]] MakeRunner make_trial_runner(storage::FileSystem& files, trial::FormGroup form, std::string host,
                                           WorkerLog& log, process::Waker& waker, trial::DeviceGrant devices = {},
                                           OnStudy on_study = {});

/// Before the process is given up because user code does not return: says so in the log, with the stack of the trial
/// thread. `runner` is one of `make_trial_runner`, or null.
void trace_trial(trial::Runner* runner, WorkerLog& log);

} // namespace ranktune::group
