// SPDX-License-Identifier: Apache-2.0
#pragma once
// TrialCheckpoints: writes and reads the state of a trainable in this process, on one rank. Rank 0 writes for all, or
// every rank writes its own shard.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "worker/checkpoints/checkpoint_schedule.hpp"
#include "worker/trial/attempt.hpp"
#include "worker/trial/group_collective.hpp"

namespace ranktune::worker {

/// States are copied between two iterations and written while training goes on. A checkpoint is announced to the head
/// when all its files have their final names and all ranks agree on the state.
class TrialCheckpoints {
  public:
    using Save = std::function<void(study::StateSink&)>;
    using Load = std::function<void(study::StateSource&)>;

    /// References must outlive it.
    TrialCheckpoints(const AttemptSetting& setting, const Assignment& assignment, GroupCollective& group,
                     CheckpointSchedule& schedule);
    ~TrialCheckpoints(); ///< waits for the write under way: the next user finds the writer idle
    TrialCheckpoints(const TrialCheckpoints&) = delete;
    TrialCheckpoints& operator=(const TrialCheckpoints&) = delete;

    /// Collective. Gives `load` the state of the checkpoint. Throws CheckpointError on the leader (and PeerFailed on
    /// the others) when it cannot be read.
    void restore(const study::CheckpointRef& checkpoint, const Load& load);

    /// Leader. Takes the result of the write under way, if it is done (`wait`: waits for it). Returns whether there is
    /// a checkpoint for `settle` to compare.
    [[nodiscard]] bool collect(bool wait);
    /// Leader, after `collect`: another state can be taken.
    [[nodiscard]] bool idle() const;
    /// Collective. Announces the last checkpoint if it is written; waits for it unless the trial `goes_on` without
    /// another one. Throws on all ranks when their states differ. `compare`: what `collect` returned on the leader.
    void settle(bool compare, bool goes_on);
    /// Collective. Copies the state and starts to write it.
    void take(const TrialPoint& point, const Save& save);
    /// Collective, and the last operation of the group: saves and announces the last checkpoint. Throws CheckpointError
    /// on the leader when it cannot be written.
    void save_last(const TrialPoint& point, const Save& save);
    /// The last call, also after an exception. A write under way is finished and announced if this rank decides alone;
    /// otherwise it is discarded. `abandoned`: the trial was given up.
    void close(bool abandoned);

  private:
    /// What each rank tells the others about its shard. The largest `failed` wins.
    static constexpr std::uint64_t failure = 1;
    static constexpr std::uint64_t damage = 1;  ///< reading: the shard is damaged
    static constexpr std::uint64_t trouble = 2; ///< reading: any other error
    struct Told {
        std::uint64_t failed = 0;
        std::uint64_t bytes = 0;
        std::uint64_t digest = 0;
        char error[232] = {};
    };

    void read(const study::CheckpointRef& checkpoint, const Load& load);
    void restore_shards(const study::CheckpointRef& checkpoint, const Load& load);
    void take_result(std::optional<CheckpointWriter::Result> result);
    void settle_shards(bool goes_on);
    void finish_own_shard();
    [[nodiscard]] std::uint64_t copy_state(study::MemoryState& state, const Save& save);
    [[nodiscard]] std::vector<Told> tell(const Told& mine);
    [[nodiscard]] study::Failure finish_shards(const storage::CheckpointKey& key, const Told& mine);
    void agree_on(std::uint64_t digest, base::Iteration iteration);
    [[nodiscard]] storage::CheckpointKey key_at(base::Iteration iteration) const;

    const AttemptSetting& setting_;
    const Assignment& assignment_;
    GroupCollective& group_;
    CheckpointSchedule& schedule_;
    bool sharded_;
    TrialPoint taken_;               ///< of the last checkpoint
    std::uint64_t taken_digest_ = 0; ///< of what all ranks must hold the same; unused on a leader that writes for all
    double stall_s_ = 0.0;
    std::optional<study::CheckpointRef> written_; ///< leader: has its final name, not compared yet
    bool in_flight_ = false;                      ///< some rank is still writing its shard
    std::optional<CheckpointWriter::Result> own_; ///< this rank's shard is written, or failed
};

} // namespace ranktune::worker
