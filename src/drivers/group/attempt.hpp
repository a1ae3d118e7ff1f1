// SPDX-License-Identifier: Apache-2.0
#pragma once
// One rank's part in one attempt: user code, its collective conversation, and its end. Runs on the trial thread.

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/group/checkpoint_writer.hpp"
#include "drivers/group/runner.hpp"
#include "ranktune/ddp/collective.hpp"
#include "ranktune/study/spec.hpp"
#include "ranktune/study/state.hpp"
#include "ranktune/trainables/trainable.hpp"
#include "storage/checkpoint_store.hpp"

namespace ranktune::drivers {

/// Where checkpoints go. Called on the trial thread and its checkpoint writer, never by both at once; on the leader,
/// and on every rank where each saves a shard.
class CheckpointIo {
  public:
    virtual ~CheckpointIo() = default;
    /// Returns when the file has its final name. Throws base::IoError.
    [[nodiscard]] virtual study::CheckpointRef save(const storage::CheckpointKey& key,
                                                    const study::MemoryState& state) = 0;
    /// Throws as storage::CheckpointStore::load.
    [[nodiscard]] virtual study::MemoryState load(const study::CheckpointRef& checkpoint) = 0;
    /// The shards of a checkpoint, to read from; on every rank. Throws as `load`, and so does what it returns.
    [[nodiscard]] virtual std::unique_ptr<study::StateSource> open_shards(const study::CheckpointRef& checkpoint) = 0;
    /// Takes back what `save` wrote of a checkpoint whose other shards are not to be had. Never throws.
    virtual void discard(const storage::CheckpointKey& key) noexcept = 0;
    /// What a program saved (storage::CheckpointStore::adopt, locate).
    [[nodiscard]] virtual study::CheckpointRef adopt(const storage::CheckpointKey& key, const std::string& source,
                                                     bool move) = 0;
    [[nodiscard]] virtual std::string locate(const study::CheckpointRef& checkpoint) = 0;
};

/// What an attempt needs from the thread that runs it.
class AttemptPort {
  public:
    virtual ~AttemptPort() = default;
    /// Leader only. Waits while what was reported before is still on its way, at most until the trial has to give up.
    virtual void reported(RunnerReported report) = 0;
    virtual void saved(study::CheckpointRef checkpoint) = 0;
    /// Leader only: a checkpoint could not be written; training goes on.
    virtual void unsaved(std::string why) = 0;
    /// Leader only: what the trial does after `iteration`. Waits for the head when a decision point is reached; throws
    /// ddp::Aborted when the trial has to give up.
    [[nodiscard]] virtual study::Verdict verdict_after(base::Iteration iteration) = 0;
    /// The same without waiting longer than `patience`: nothing when the head has not answered by then.
    [[nodiscard]] virtual std::optional<study::Verdict> verdict_within(base::Iteration iteration,
                                                                       std::chrono::milliseconds patience) = 0;
    /// User code made progress.
    virtual void progressed() noexcept = 0;
    /// From now on, user code waits for the head, itself or through its leader; or no longer.
    virtual void waits(bool waits) noexcept = 0;
    /// Set when the trial has to give up; every wait of the group looks at it.
    [[nodiscard]] virtual const std::atomic<bool>& abort_flag() const = 0;
    /// One line of the trainable's for the log.
    virtual void log(base::TrialId trial, std::string_view line) = 0;
};

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

/// Whether this pause is the end of the job, or of the trial's turn. That is no fault of the trial: one that has no
/// checkpoint to give pauses all the same, and goes on later from what it has.
[[nodiscard]] constexpr bool goes_on_later(const study::Verdict& pause) {
    return pause.verb == study::Verb::pause &&
           (pause.reason == study::Reason::draining || pause.reason == study::Reason::yielded);
}

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

/// Runs the attempt to its end. Never throws: whatever user code throws becomes the outcome `failed` with the message
/// "rank R: what()" on the rank that threw, and `failed` without a message on the others. `unreadable` when the
/// checkpoint that the attempt should start from is damaged, `unreachable` when it cannot be read now, `unsaved` when
/// it cannot write the one that it should end with, `stateless` when the trainable has none to give, `unstarted` when
/// ranktune itself could not set it up, each with the message. `lost` after an abort.
[[nodiscard]] RunnerEnded run_attempt(const AttemptSetting& setting, const Assignment& assignment, AttemptPort& port,
                                      Spare& spare);

} // namespace ranktune::drivers
