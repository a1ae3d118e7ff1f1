// SPDX-License-Identifier: Apache-2.0
#pragma once
// ProgramLeader: what the ranks of a program's trial are to do, decided by its leader from what all of them have seen.
// No process, no clock: time is an argument.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "ranktune/study/vocabulary.hpp"

namespace ranktune::trial {

/// What a rank has seen of its program in this attempt.
struct RankFacts {
    std::uint64_t reports = 0;
    bool ended = false; ///< its process, and all that it has left behind
    friend bool operator==(const RankFacts&, const RankFacts&) = default;
};

/// What all ranks do. Given by the leader, known to all at the same turn.
struct ProgramOrder {
    /// go_on: answer reports 1 to `decided` with "continue". deliver: the next one is answered with `verb`, on all
    /// ranks. deliver_to_first: on rank 0 alone. signal: stop the process. over: every process has ended, the attempt
    /// is over.
    enum class End : std::uint8_t { go_on, deliver, deliver_to_first, signal, over };
    std::uint64_t decided = 0;
    End end = End::go_on;
    study::Verb verb = study::Verb::go_on;
    bool save = false; ///< the answer asks for a checkpoint
    friend bool operator==(const ProgramOrder&, const ProgramOrder&) = default;
};

/// The rules:
///
/// - `report` is collective. The verdict "pause" or "stop" is delivered when every rank has made the report that it
///   answers, so that no rank is left alone in a collective operation of the program's own.
/// - A rank that has never reported while rank 0 has been told to end for `alone_grace` belongs to a program whose
///   rank 0 alone reports: all are stopped by signal, since a lone answer would make the others hang. (Rank 0 is asked
///   to save first when that is all it can do.) Where the study's programs are known for that (`rank_zero_is_alone`), a
///   tenth of the longest iteration is waited for instead: a rank that is merely slow is not so far behind one that
///   it trains with.
/// - A program that goes on reporting after its verdict, or does not end within `abort_grace`, is stopped by signal.
/// - When rank 0 has ended by itself, the others get `abort_grace` to do the same.
/// - No rank is waited for without a limit once the trial is to end. The next report of any rank has to come within
///   `abort_grace` and three times the longest iteration seen; a state has to be saved within ten times `abort_grace`
///   and three such iterations. Otherwise all are stopped by signal: the ranks that are waited for hang.
/// - More than `report_timeout` without a report of rank 0, unless it waits for the verdict on one: the trial fails.
class ProgramLeader {
  public:
    using Time = std::chrono::steady_clock::time_point;
    using Duration = std::chrono::nanoseconds;

    struct Limits {
        Duration alone_grace = std::chrono::seconds(5);
        Duration abort_grace = std::chrono::seconds(30);
        std::optional<Duration> report_timeout = {};
        Duration iteration{}; ///< of earlier attempts, on average; 0: there was none
    };

    ProgramLeader(Limits limits, Time now)
        : limits_(limits), heard_(now), iteration_began_(now), longest_(limits.iteration) {
        limits_.alone_grace = std::min(limits_.alone_grace, limits_.abort_grace);
    }

    /// In an earlier attempt of the study the other ranks were waited for in vain, and none has reported since.
    void rank_zero_is_alone() { known_alone_ = true; }
    /// How long ranks that have not reported in this attempt are waited for.
    [[nodiscard]] Duration alone_grace() const;

    /// Rank 0 has made its next report; it is not decided yet.
    void reported(Time now) {
        heard_ = now;
        longest_ = std::max(longest_, Duration(now - iteration_began_));
    }
    /// What becomes of it is still not known, which is not the program's fault.
    void undecided(Time now) { heard_ = now; }
    /// It goes on.
    void go_on(Time now) {
        ++order_.decided;
        heard_ = iteration_began_ = now;
    }
    /// The next report of rank 0 will be the last of this attempt. Again: nothing.
    void will_stop(Time now) {
        if (!asked_at_) asked_at_ = now;
    }
    /// It pauses or stops; `save`: its program is to save its state then.
    void stop(study::Verb verb, bool save, Time now);
    /// The program has saved the state that it was asked for.
    void saved(Time now);
    /// Rank 0's process has ended, and all that it reported is decided.
    void done(Time now);

    [[nodiscard]] bool stopping() const { return stopped_at_.has_value(); }
    /// What is to be done, as of the last `step` and what was told since.
    [[nodiscard]] const ProgramOrder& order() const { return order_; }
    /// Looks at the time and at the ranks. Throws base::Error when the time for a report is up.
    void step(Time now, std::span<const RankFacts> ranks);
    /// Every process has ended and what rank 0 left is in order: the next order is the last.
    void close() { order_.end = ProgramOrder::End::over; }
    /// Only rank 0 reported, and that mattered.
    [[nodiscard]] bool rank_zero_alone() const { return alone_; }
    /// A rank was waited for in vain: it hangs.
    [[nodiscard]] bool in_vain() const { return in_vain_; }
    /// Since when the trial has been waited for, which is to end: for a report, or for its state.
    [[nodiscard]] std::optional<Time> waits_since() const;
    /// "rank 1 (report 9), rank 3 (report 9)", "rank 0 (to save its state)".
    [[nodiscard]] std::string waits_for(std::span<const RankFacts> ranks) const;
    /// How long that may take.
    [[nodiscard]] Duration patience() const;

  private:
    void begin_end(Time now, std::span<const RankFacts> ranks);
    [[nodiscard]] bool is_saving() const;
    void give_up_if_late(Time now);
    void watch_end(Time now, std::span<const RankFacts> ranks);
    void check_timeout(Time now, std::span<const RankFacts> ranks) const;

    Limits limits_;
    ProgramOrder order_;
    Time heard_;           ///< last report or verdict, or the start
    Time iteration_began_; ///< that of rank 0
    Duration longest_;     ///< iteration
    std::optional<Time> asked_at_;
    std::optional<Time> stopped_at_;
    std::optional<Time> delivered_at_;
    std::optional<Time> done_at_;
    bool saved_ = false;
    bool known_alone_ = false;
    bool alone_ = false;
    bool in_vain_ = false;
};

} // namespace ranktune::trial
