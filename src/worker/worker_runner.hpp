// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a worker builds after the head's Welcome: study, log, checkpoint store and the trial thread.

#include <functional>
#include <memory>
#include <string>

#include "comm/exchange/block_exchange.hpp"
#include "data/staging/stager.hpp"
#include "process/wake.hpp"
#include "ranktune/base/log.hpp"
#include "storage/file_system.hpp"
#include "studydir/log_file.hpp"
#include "worker/trial/attempt.hpp"
#include "worker/trial/trial_thread.hpp"
#include "worker/worker_machine.hpp"

namespace ranktune::worker {

/// Drops lines until `open` (a worker learns the study directory from the head). Thread-safe if `open` is called before
/// other threads use it.
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

/// Begins to copy the data of a study to this node: no trial starts before that is over. Null: there is nothing to
/// copy.
using BeginStaging = std::function<std::shared_ptr<data::Stager>(const study::StudySpec&)>;
/// Called once the study is known and the log is open.
using OnStudy = std::function<void(const study::StudySpec&)>;

/// How states get from the memory of one rank to that of another.
struct MemoryWay {
    comm::BlockExchange* exchange = nullptr;   ///< outlives the runner; null: only through files
    std::uint32_t ranks_of_node = 1;           ///< that share its memory; each keeps up to a quarter of its share
    [[nodiscard]] std::uint64_t share() const; ///< bytes
};

/// Makes a rank's runner: parses the study that the head sent, finds its trainable, opens the worker log. `form` makes
/// groups; `log` and `waker` outlive the runner; `devices` were granted to this rank. `memory`: for
/// studies whose trials take over the state of others.
[[nodiscard]] MakeRunner make_trial_runner(storage::FileSystem& files, worker::FormGroup form, std::string host,
                                           WorkerLog& log, process::Waker& waker, worker::DeviceGrant devices = {},
                                           OnStudy on_study = {}, BeginStaging stage = {}, MemoryWay memory = {});

/// Logs the stack of a trial thread that does not return, before the process is given up. `runner` is from
/// `make_trial_runner`, or null.
void trace_trial(worker::Runner* runner, WorkerLog& log);

} // namespace ranktune::worker
