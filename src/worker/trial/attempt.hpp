// SPDX-License-Identifier: Apache-2.0
#pragma once
// One rank's part in one attempt: its group, the trainable, and the loop around it. Runs on the trial thread.

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ddp/collective.hpp"
#include "ranktune/study/spec.hpp"
#include "ranktune/trainables/trainable.hpp"
#include "trainables/program/row_table.hpp"
#include "worker/bodies/kept_program.hpp"
#include "worker/checkpoints/checkpoint_io.hpp"
#include "worker/checkpoints/checkpoint_writer.hpp"
#include "worker/predict/predict_programs.hpp"
#include "worker/trial/attempt_port.hpp"
#include "worker/trial/runner.hpp"

namespace ranktune::worker {

/// Makes the group of an assignment. Collective over its ranks, each on its trial thread. Waits in it throw
/// ddp::Aborted soon after `abort` is set, while it is formed and later. Destroying the group returns its communicator
/// to a cache.
using FormGroup =
    std::function<std::unique_ptr<ddp::Collective>(const Assignment& assignment, const std::atomic<bool>& abort)>;

/// GPUs that the launcher granted to this rank.
struct DeviceGrant {
    std::vector<std::string> devices; ///< as CUDA_VISIBLE_DEVICES names them: "0", "GPU-8932f937-..."; empty: none
    bool job_has_gpus = false;        ///< some rank has GPUs: a rank without must then hide those of others
    /// By rank of the job: the GPUs of ranks on this node. Of other ranks, none.
    std::vector<std::vector<std::string>> on_node = {};
};

/// What programs need in addition.
struct ProgramSetting {
    std::vector<std::string> environment; ///< `NAME=value`, of this process
    std::string directory;                ///< of the study, absolute
    std::string host;                     ///< name of this node
    /// Called on the trial thread with one line that a program printed.
    std::function<void(base::TrialId, std::string_view)> output;
    std::chrono::milliseconds alone_grace{5000}; ///< see ProgramLeader
    std::chrono::milliseconds unclaimed{10000};  ///< see KeptProgram
};

/// What is the same for all attempts.
struct AttemptSetting {
    const study::StudySpec* spec = nullptr;
    const trainables::Registration* trainable = nullptr; ///< null when the trials are programs
    FormGroup form;
    CheckpointIo* checkpoints = nullptr;
    DeviceGrant devices = {};
    const ProgramSetting* program = nullptr; ///< required when the study runs programs (study::runs_programs)
    std::uint64_t memory = 0;                ///< TrialContext::memory
    CheckpointWriter* writer = nullptr; ///< writes to `checkpoints` for this thread's attempts; idle between attempts
};

/// What the previous attempt has left for the next one: a trainable, if the attempt ended well and it may be reused
/// (Trainable::reset_config), or a program that waits to exploit or for its next task, an interpreter.
struct Spare {
    std::unique_ptr<trainables::Trainable> trainable;
    int size = 0; ///< ranks of its trial
    std::unique_ptr<KeptProgram> program = {};
    std::uint32_t tasks = 0;                                ///< that a kept `program` has done
    std::shared_ptr<process::Interpreter> interpreter = {}; ///< of the study's function, for attempts of this rank
    std::unique_ptr<const trainables::RowTable> rows = {};  ///< of the study's table, for all attempts of this rank
    std::unique_ptr<PredictPrograms> predict = {};          ///< programs that wait for the next range of predictions
};

/// Runs the attempt to its end. Never throws. Outcomes other than the regular ones, each with a message: `failed` for
/// an exception of user code (what() on the rank that threw, no message on the others); `unreadable` when the
/// checkpoint to start from is damaged, `unreachable` when it cannot be read now; `unsaved` when the last checkpoint
/// cannot be written, `stateless` when the trainable has no state to save; `unstarted` when ranktune itself could not
/// set up the attempt; `lost` after an abort.
[[nodiscard]] RunnerEnded run_attempt(const AttemptSetting& setting, const Assignment& assignment, AttemptPort& port,
                                      Spare& spare);

} // namespace ranktune::worker
