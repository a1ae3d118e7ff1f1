// SPDX-License-Identifier: Apache-2.0
#pragma once
// ProgramLeader: decides what the ranks of a program's trial do, from what all ranks have seen. No process and no
// clock: time is an argument.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "ranktune/study/vocabulary.hpp"

namespace ranktune::worker {

/// What a rank has seen of its program in this attempt.
struct RankFacts {
    std::uint64_t reports = 0;
    bool ended = false;        ///< its process and all its children
    bool exploits = false;     ///< its last report says that the process can go on with another state
    std::uint64_t saved = 0;   ///< the last report whose state it has saved and gone on; 0: none
    std::uint64_t unsaved = 0; ///< the last one whose state it could not save
    /// The last report whose pending state was wanted (ProgramOrder) and is complete here, or could not be written.
    std::uint64_t settled = 0;
    bool failed = false; ///< it could not
    static void fields(auto&& each, auto& r) {
        each(r.reports, r.ended, r.exploits, r.saved, r.unsaved, r.settled, r.failed);
    }
    friend bool operator==(const RankFacts&, const RankFacts&) = default;
};

/// What all ranks do. The leader decides it; all ranks learn it in the same turn.
struct ProgramOrder {
    /// go_on: answer reports 1 to `decided` with "continue". deliver: answer the next one with `verb` on all ranks.
    /// deliver_to_first: on rank 0 alone. signal: stop the process. over: every process has ended; the attempt is over.
    /// keep: the attempt is over, the processes wait for the answer, and the next attempt may give it.
    enum class End : std::uint8_t { go_on, deliver, deliver_to_first, signal, over, keep };
    std::uint64_t decided = 0;
    End end = End::go_on;
    study::Verb verb = study::Verb::go_on;
    bool save = false;         ///< the answer with `verb` asks for a checkpoint,
    bool needed = false;       ///< without which the trial has failed (`needs_state`)
    std::uint64_t save_at = 0; ///< the report whose answer "continue" asks for one; 0: none yet
    bool is_best = false;      ///< `save_at` is the best report so far
    std::uint64_t wanted = 0;  ///< the report whose pending checkpoint will be taken over; 0: none yet
    static void fields(auto&& each, auto& r) {
        each(r.decided, r.end, r.verb, r.save, r.needed, r.save_at, r.is_best, r.wanted);
    }
    friend bool operator==(const ProgramOrder&, const ProgramOrder&) = default;
};

/// The rules:
///
/// - `report` is collective. The verdict "pause" or "stop" is delivered when every rank has made the report that it
///   answers, so that no rank is left alone in a collective operation of the program's own.
/// - If the trial exploits, and every rank's last report says that its process can do so, the processes are kept.
/// - If a rank still has never reported `alone_grace` after rank 0 was told to end, only rank 0 of this program
/// reports: all are stopped by signal, because an answer to rank 0 alone would make the others hang. (If rank 0 must
/// still save, it is asked for that first.) If the study is known for this (`rank_zero_is_alone`), the wait is a tenth
/// of the longest iteration: a slow rank is not that far behind the ranks it trains with.
/// - If the state of that report is still being written (a pending checkpoint), the verdict waits until it is complete
/// on every rank.
/// - A program that continues to report after its verdict, or does not end within `abort_grace`, is stopped by signal.
/// - When rank 0 has ended on its own, the others get `abort_grace` to do the same.
/// - Once the trial is to end, every wait has a limit: `abort_grace` plus three times the longest iteration for a
/// report, ten times `abort_grace` plus three iterations for saving a state. Then the ranks count as hung and all are
/// stopped by signal.
/// - The trial fails after `report_timeout` without a report of rank 0, unless it waits for a verdict; and when an
/// iteration takes longer than `iteration_timeout`, by its own fault.
class ProgramLeader {
  public:
    using Time = std::chrono::steady_clock::time_point;
    using Duration = std::chrono::nanoseconds;

    struct Limits {
        Duration alone_grace = std::chrono::seconds(5);
        Duration abort_grace = std::chrono::seconds(30);
        std::optional<Duration> report_timeout = {};
        std::optional<Duration> iteration_timeout = {};
        Duration iteration{}; ///< average of earlier attempts; 0: none
        bool hears = true;    ///< false: a program that only prints; a signal ends it
    };

    ProgramLeader(Limits limits, Time now)
        : limits_(limits), heard_(now), iteration_began_(now), longest_(limits.iteration) {
        limits_.alone_grace = std::min(limits_.alone_grace, limits_.abort_grace);
    }

    /// In an earlier attempt of the study the other ranks never reported, nor since.
    void rank_zero_is_alone() { known_alone_ = true; }
    /// How long to wait for ranks that have not reported in this attempt.
    [[nodiscard]] Duration alone_grace() const;

    /// Rank 0 has made its next report; it is not decided yet.
    void reported(Time now) {
        heard_ = now;
        longest_ = std::max(longest_, Duration(now - iteration_began_));
        in_iteration_ = false;
    }
    /// The report is still undecided, which is not the program's fault.
    void undecided(Time now) { heard_ = now; }
    /// The verdict is to go on. `save`: after the program has saved its state, which `is_best` so far.
    void go_on(Time now, bool save = false, bool is_best = false) {
        ++order_.decided;
        if (save) order_.save_at = order_.decided;
        if (save) order_.is_best = is_best;
        heard_ = iteration_began_ = now;
        in_iteration_ = true;
    }
    /// When rank 0 has saved its state on the way; may be told again.
    void saved_on_the_way(Time at) { heard_ = std::max(heard_, at); }
    /// The next report of rank 0 will be the last of this attempt. Only the first call counts.
    void will_stop(Time now) {
        if (!asked_at_) asked_at_ = now;
    }
    /// The verdict is to pause or stop. `save`: the program must save its state. `exploits`: the next attempt begins at
    /// once, from the state of a donor. `pending`: the state of the report that it answers is still being written.
    /// `needed`: see ProgramOrder.
    void stop(study::Verb verb, bool save, Time now, bool exploits = false, bool pending = false, bool needed = false);
    /// The pending checkpoint of this report will be taken over when it is complete.
    void want(std::uint64_t report) { order_.wanted = report; }
    /// When the program has saved the state that was asked for. Only the first call counts.
    void saved(Time at);
    /// Rank 0's process has ended, and all that it reported is decided.
    void done(Time now);

    [[nodiscard]] bool stopping() const { return stopped_at_.has_value(); }
    /// What the ranks must do, as of the last call.
    [[nodiscard]] const ProgramOrder& order() const { return order_; }
    /// Checks the time and the ranks. Throws DisturbedError after `report_timeout`, base::Error after
    /// `iteration_timeout`.
    void step(Time now, std::span<const RankFacts> ranks);
    /// Every process has ended and rank 0's results are stored: the next order is `over`.
    void close() { order_.end = ProgramOrder::End::over; }
    /// The program was found to report on rank 0 only.
    [[nodiscard]] bool rank_zero_alone() const { return alone_; }
    /// A wait reached its limit: a rank hangs.
    [[nodiscard]] bool in_vain() const { return in_vain_; }
    /// Start of the present wait, for the last report or for the state; nothing: no wait.
    [[nodiscard]] std::optional<Time> waits_since() const;
    /// "rank 1 (report 9), rank 3 (report 9)", "rank 0 (to save its state)".
    [[nodiscard]] std::string waits_for(std::span<const RankFacts> ranks) const;
    /// Limit of that wait.
    [[nodiscard]] Duration patience() const;
    /// How long a program may take to save its state: a large one takes time.
    [[nodiscard]] Duration saving_patience() const { return 10 * limits_.abort_grace + 3 * longest_; }

  private:
    void begin_end(Time now, std::span<const RankFacts> ranks);
    [[nodiscard]] bool is_saving() const;
    /// The verdict waits for a pending checkpoint.
    [[nodiscard]] bool is_incomplete(std::span<const RankFacts> ranks) const;
    void give_up_if_late(Time now);
    void watch_end(Time now, std::span<const RankFacts> ranks);
    void check_timeout(Time now, std::span<const RankFacts> ranks) const;

    Limits limits_;
    ProgramOrder order_;
    Time heard_;           ///< last report or verdict, or the start
    Time iteration_began_; ///< on rank 0
    bool in_iteration_ = true;
    Duration longest_; ///< longest iteration
    std::optional<Time> asked_at_;
    std::optional<Time> stopped_at_;
    std::optional<Time> delivered_at_;
    std::optional<Time> done_at_;
    bool exploits_ = false;
    bool pending_ = false; ///< the last report's checkpoint
    bool saved_ = false;
    bool known_alone_ = false;
    bool alone_ = false;
    bool in_vain_ = false;
};

} // namespace ranktune::worker
