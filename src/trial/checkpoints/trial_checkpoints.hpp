// SPDX-License-Identifier: Apache-2.0
#pragma once
// TrialCheckpoints: how the state of a trainable of this process is written and read, on one rank. Rank 0 writes for
// all, or every rank its own shard.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trial/attempt.hpp"
#include "trial/checkpoints/checkpoint_schedule.hpp"
#include "trial/group_collective.hpp"

namespace ranktune::trial {

/// States are copied between two iterations and written while training goes on. A checkpoint is announced to the head
/// when every file of it has its final name, and all ranks agree on what they hold.
class TrialCheckpoints {
  public:
    using Save = std::function<void(study::StateSink&)>;
    using Load = std::function<void(study::StateSource&)>;

    /// References outlive it.
    TrialCheckpoints(const AttemptSetting& setting, const Assignment& assignment, GroupCollective& group,
                     CheckpointSchedule& schedule);
    ~TrialCheckpoints(); ///< waits for the write under way: whoever comes next finds the writer idle
    TrialCheckpoints(const TrialCheckpoints&) = delete;
    TrialCheckpoints& operator=(const TrialCheckpoints&) = delete;

    /// Collective. Gives `load` the state of the checkpoint. Throws CheckpointError on the leader (and PeerFailed on
    /// the others) when it cannot be read.
    void restore(const study::CheckpointRef& checkpoint, const Load& load);

    /// Leader. Takes the result of the write under way, if there is one (`wait`: waits for it). Whether there is a
    /// checkpoint that the ranks have to compare: `settle`.
    [[nodiscard]] bool collect(bool wait);
    /// Leader, after `collect`: another state can be taken now.
    [[nodiscard]] bool idle() const;
    /// Collective. Announces the checkpoint taken last, if it is written; waits for it unless the trial goes on. Throws
    /// on all ranks when their states differ. `compare`: what `collect` said on the leader.
    void settle(bool compare, bool goes_on);
    /// Collective.
    void take(const TrialPoint& point, const Save& save);
    /// Collective, and the last operation of the group: saves, and announces it. Throws CheckpointError on the leader
    /// when it cannot be written.
    void save_last(const TrialPoint& point, const Save& save);
    /// After everything else, also after an exception: what is still being written is announced where no other rank has
    /// a say in it, and taken back otherwise. `abandoned`: nobody waits for it.
    void close(bool abandoned);

  private:
    /// What a rank tells the others about its shard. A larger `failed` outweighs a smaller one.
    static constexpr std::uint64_t failure = 1;
    static constexpr std::uint64_t damage = 1;  ///< of reading: it does not verify
    static constexpr std::uint64_t trouble = 2; ///< of reading: anything else
    struct Told {
        std::uint64_t failed = 0;
        std::uint64_t bytes = 0;
        std::uint64_t digest = 0;
        char error[232] = {};
    };

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
    TrialPoint taken_;               ///< of the checkpoint taken last
    std::uint64_t taken_digest_ = 0; ///< of what every rank has to hold the same; with rank 0 writing not on the leader
    double stall_s_ = 0.0;
    std::optional<study::CheckpointRef> written_; ///< leader: has its final name, and waits to be compared
    bool in_flight_ = false;                      ///< shards are being written, on some rank
    std::optional<CheckpointWriter::Result> own_; ///< this rank's shard is written, or could not be
};

} // namespace ranktune::trial
