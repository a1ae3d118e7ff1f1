// SPDX-License-Identifier: Apache-2.0
#pragma once
// One rank's part in one attempt: its group, what trains, and the loop around it. Runs on the trial thread.

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
#include "trial/attempt_port.hpp"
#include "trial/checkpoints/checkpoint_io.hpp"
#include "trial/checkpoints/checkpoint_writer.hpp"
#include "trial/runner.hpp"

namespace ranktune::trial {

/// Makes the group of an assignment: collective over its ranks, each on its trial thread. What it waits for, then and
/// later, ends with ddp::Aborted soon after `abort` is set. The result goes back (to a cache of communicators) when it
/// is destroyed.
using FormGroup =
    std::function<std::unique_ptr<ddp::Collective>(const Assignment& assignment, const std::atomic<bool>& abort)>;

/// GPUs that the launcher granted to this rank.
struct DeviceGrant {
    std::vector<std::string> devices; ///< as CUDA_VISIBLE_DEVICES names them: "0", "GPU-8932f937-..."; empty: none
    bool job_has_gpus = false;        ///< on some rank: one without devices must not see those of others
};

/// What programs need besides.
struct ProgramSetting {
    std::vector<std::string> environment; ///< `NAME=value`, of this process
    std::string directory;                ///< of the study, absolute
    std::string host;                     ///< name of this node
    /// One line that a program printed. Called on the trial thread.
    std::function<void(base::TrialId, std::string_view)> output;
    std::chrono::milliseconds alone_grace{5000}; ///< see ProgramLeader
};

/// What stays the same from attempt to attempt.
struct AttemptSetting {
    const study::StudySpec* spec = nullptr;
    const trainables::Registration* trainable = nullptr; ///< null when the trials are programs
    FormGroup form;
    CheckpointIo* checkpoints = nullptr;
    DeviceGrant devices = {};
    const ProgramSetting* program = nullptr; ///< needed when spec->trainable.program is there
    CheckpointWriter* writer = nullptr;      ///< over `checkpoints`, for this thread's attempts; idle between two
};

/// The trainable of the attempt before, if that ended well: the next one may take it over (Trainable::reset_config).
struct Spare {
    std::unique_ptr<trainables::Trainable> trainable;
    int size = 0; ///< ranks of the trial it was part of
};

/// Runs the attempt to its end. Never throws: whatever user code throws becomes the outcome `failed` with what() on the
/// rank that threw, and `failed` without a message on the others. `unreadable` when the checkpoint that the attempt
/// should start from is damaged, `unreachable` when it cannot be read now, `unsaved` when it cannot write the one that
/// it should end with, `stateless` when the trainable has none to give, `unstarted` when ranktune itself could not set
/// it up, each with the message. `lost` after an abort.
[[nodiscard]] RunnerEnded run_attempt(const AttemptSetting& setting, const Assignment& assignment, AttemptPort& port,
                                      Spare& spare);

} // namespace ranktune::trial
