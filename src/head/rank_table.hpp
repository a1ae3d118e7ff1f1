// SPDX-License-Identifier: Apache-2.0
#pragma once
// RankTable: which attempt holds which worker rank, and how ranks spent their time. A value: no messages, no clock.

#include <cstdint>
#include <vector>

#include "comm/wire/protocol.hpp"
#include "ranktune/study/spec.hpp"
#include "ranktune/study/vocabulary.hpp"

namespace ranktune::head {

/// Rank-seconds, summed over the living worker ranks.
struct RankSeconds {
    double training = 0.0; ///< in user code
    double starting = 0.0; ///< between the start command and the first sign of user code
    double idle = 0.0;     ///< without a trial, and waiting for messages about one
};

/// Every call costs O(ranks of the attempt) at most. `now` never decreases.
class RankTable {
  public:
    /// Worker ranks 1 .. `workers`, idle from `now` on.
    RankTable(std::uint32_t workers, base::StudyTime now);

    /// The living `ranks`, the leader among them, start an attempt. They leave whatever attempt they held before.
    void start(const comm::AttemptKey& key, const std::vector<base::Rank>& ranks, base::StudyTime now);
    /// First sign of user code from the leader. Repeated calls and other attempts are ignored.
    void training(base::Rank leader, const comm::AttemptKey& key, base::StudyTime now);
    /// The leader reports the end of the attempt and its times. False: it holds no such attempt.
    bool finish(base::Rank leader, const comm::AttemptKey& key, double starting_s, double training_s,
                base::StudyTime now);
    /// A rank is gone; if it led an attempt, the other members become idle.
    void lose(base::Rank rank, base::StudyTime now);

    /// The attempt that holds a rank; attempt zero: idle.
    [[nodiscard]] comm::AttemptKey held_by(base::Rank rank) const { return entry(rank).key; }
    /// The leader of the attempt that holds a rank; 0 (the head's rank): none.
    [[nodiscard]] base::Rank leader_of(base::Rank rank) const { return entry(rank).leader; }
    [[nodiscard]] RankSeconds seconds(base::StudyTime now) const;

  private:
    struct Entry {
        comm::AttemptKey key;
        base::Rank leader;
        bool alive = true;
        // Leader only:
        std::vector<base::Rank> ranks;
        bool trains = false;
        base::StudyTime since;    ///< when it started
        base::StudyTime train_at; ///< when it began to train
    };
    [[nodiscard]] Entry& entry(base::Rank rank) { return entries_.at(rank.value()); }
    [[nodiscard]] const Entry& entry(base::Rank rank) const { return entries_.at(rank.value()); }
    void advance(base::StudyTime now);
    void release(Entry& leader);

    std::vector<Entry> entries_; ///< position is the rank; 0 unused
    base::StudyTime at_;         ///< `sums_` are valid up to here
    RankSeconds sums_;
    std::uint64_t alive_ = 0;
    std::uint64_t starting_ = 0; ///< number of ranks
    std::uint64_t training_ = 0;
};

/// "60 s": whole seconds.
[[nodiscard]] std::string seconds_text(base::Duration duration);
/// "3, 7-9": for messages. Ascending.
[[nodiscard]] std::string ranks_text(const std::vector<base::Rank>& ranks);

// ---- Where a worker is, for the core: what the launcher says about its rank, and what the worker says about itself.

/// Pure. `places`: by rank, as the launcher says; no entry: unknown. The driver's word on GPUs goes first.
[[nodiscard]] study::RankInfo place_of(base::Rank rank, const comm::Hello& hello,
                                       const std::vector<study::RankInfo>& places, study::GpuUse gpus);

} // namespace ranktune::head
