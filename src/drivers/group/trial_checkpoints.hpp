// SPDX-License-Identifier: Apache-2.0
#pragma once
// TrialCheckpoints: one rank's part in the checkpoints of an attempt. Rank 0 writes for all, or every rank its own
// shard.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "drivers/group/attempt.hpp"
#include "drivers/group/checkpoint_clock.hpp"
#include "drivers/group/group_collective.hpp"

namespace ranktune::drivers {

/// States are copied between two iterations and written while training goes on. A checkpoint is announced to the head
/// when every file of it has its final name, and all ranks agree on what they hold.
class TrialCheckpoints {
  public:
    using Save = std::function<void(study::StateSink&)>;
    using Load = std::function<void(study::StateSource&)>;

    /// References outlive it. `iteration`: from which the attempt goes on.
    TrialCheckpoints(const AttemptSetting& setting, const Assignment& assignment, AttemptPort& port,
                     base::Iteration iteration);
    ~TrialCheckpoints(); ///< waits for the write under way: whoever comes next finds the writer idle
    TrialCheckpoints(const TrialCheckpoints&) = delete;
    TrialCheckpoints& operator=(const TrialCheckpoints&) = delete;

    /// Before everything else.
    void join(GroupCollective& group) { group_ = &group; }

    /// Collective. Gives `load` the state of the checkpoint. Throws CheckpointError on the leader (and PeerFailed on
    /// the others) when it cannot be read.
    void restore(const study::CheckpointRef& checkpoint, const Load& load);

    /// What follows an iteration, as the leader tells it to its group: bits of one word. Others than these are free.
    static constexpr std::uint64_t compare_bit = 4; ///< the checkpoint taken last is written
    static constexpr std::uint64_t take_bit = 8;    ///< take another one
    /// Leader. `seconds`: training time of the trial.
    [[nodiscard]] std::uint64_t plan(base::Iteration iteration, double seconds, const study::Verdict& verdict,
                                     bool can_save);
    /// Collective. Announces the checkpoint taken last, if it is written; waits for it unless the trial goes on. Throws
    /// on all ranks when their states differ.
    void settle(std::uint64_t plan, bool goes_on);
    /// Collective. `value`: the objective at `iteration`.
    void take(base::Iteration iteration, double seconds, std::optional<double> value, const Save& save);
    /// Collective, and the last operation of the group: saves, and announces it. Throws CheckpointError on the leader
    /// when it cannot be written.
    void save_last(base::Iteration iteration, std::optional<double> value, const Save& save);
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
    [[nodiscard]] bool is_written(std::optional<CheckpointWriter::Result> result);
    void settle_shards(bool goes_on);
    void finish_own_shard();
    [[nodiscard]] std::uint64_t copy_state(study::MemoryState& state, const Save& save);
    [[nodiscard]] std::vector<Told> tell(const Told& mine);
    [[nodiscard]] std::string finish_shards(const storage::CheckpointKey& key, const Told& mine);
    void missed(const std::string& why);
    void agree_on(std::uint64_t digest, base::Iteration iteration);
    [[nodiscard]] storage::CheckpointKey key_at(base::Iteration iteration) const;
    [[nodiscard]] base::TrialId trial() const { return assignment_.start.trial; }

    const AttemptSetting& setting_;
    const Assignment& assignment_;
    AttemptPort& port_;
    GroupCollective* group_ = nullptr;
    CheckpointClock clock_;
    bool sharded_;
    base::Iteration taken_iteration_ = 0; ///< of the checkpoint taken last
    std::optional<double> taken_value_;
    std::uint64_t taken_digest_ = 0; ///< of what every rank has to hold the same; with rank 0 writing not on the leader
    double stall_s_ = 0.0;
    std::uint64_t missed_ = 0;                    ///< checkpoints that could not be written
    study::CheckpointRef written_;                ///< leader: has its final name, and waits to be compared
    bool in_flight_ = false;                      ///< shards are being written, on some rank
    std::optional<CheckpointWriter::Result> own_; ///< this rank's shard is written, or could not be
};

} // namespace ranktune::drivers
