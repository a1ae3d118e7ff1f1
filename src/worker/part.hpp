// SPDX-License-Identifier: Apache-2.0
#pragma once
// Part: one rank's part in one attempt and, on the leader, what it knows about the other members. A value: sends
// nothing.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/wire/protocol.hpp"
#include "worker/trial/runner.hpp"

namespace ranktune::worker {

struct Part {
    /// queued: user code of an older attempt still runs here, or the runner is not prepared. ready: reported to the
    /// leader. running: the runner was started. over: no user code runs any more (a leader then waits for the other
    /// members).
    enum class Stage : std::uint8_t { queued, ready, running, over };

    /// What the leader knows about a member.
    struct Member {
        base::Rank rank;
        bool alive = true;
        bool ready = false;
        bool over = false;
        study::AttemptOutcome outcome = study::AttemptOutcome::lost;
        study::Failure failure;
    };

    /// Empty when `self` is not in the roster.
    [[nodiscard]] static std::optional<Part> make(const study::StartTrial& start, base::Rank self, base::StudyTime now);

    worker::Assignment assignment;
    comm::AttemptKey key;
    Stage stage = Stage::queued;
    bool abandoned = false;
    base::StudyTime received;
    std::optional<base::StudyTime> progressed; ///< first sign of user code
    std::uint64_t progress_base = 0;           ///< Runner::progress at the start
    std::optional<double> trained_s;           ///< leader: in user code, up to the newest report
    double program_start_s = 0.0;              ///< RunnerEnded::starting_s, a part of these
    std::uint64_t progress_seen = 0;           ///< Runner::progress at the last check
    std::optional<base::StudyTime> moved;      ///< when progress was last seen, or user code was started
    base::StudyTime ended;                     ///< when user code ended here
    std::optional<study::Verdict> interrupt;   ///< came before the start
    base::Iteration decided = 0;               ///< newest report with a verdict
    std::uint64_t reports = 0;                 ///< leader: sent to the head
    std::uint64_t reports_taken = 0;           ///< leader: how many of these the head has taken
    std::vector<Member> members;               ///< leader only; in the order of the roster
    std::optional<base::StudyTime> lost;       ///< leader: when the first member was over with `lost`
    std::vector<std::string> unread;           ///< from RunnerEnded

    [[nodiscard]] bool leads() const { return assignment.leads(); }
    [[nodiscard]] base::Rank leader() const { return assignment.start.ranks.front(); }
    /// Null when the rank is no member.
    [[nodiscard]] Member* member(base::Rank rank);
    /// Leader: every member has said Ready and none is over or dead.
    [[nodiscard]] bool may_go() const;
    /// Leader: every living member is over.
    [[nodiscard]] bool all_over() const;
    /// Leader: the head has no room for another report.
    [[nodiscard]] bool held_up() const { return !abandoned && reports - reports_taken >= comm::report_window; }
    /// Leader: no longer waits for members that are not over; they count as lost.
    void close();
    /// Leader: gives up the attempt; members that are not among `living` are dead.
    void abandon(const std::vector<base::Rank>& living);
    /// Leader, when all members are over: one outcome for the group. `lost` if it was given up; otherwise the worst
    /// outcome of any member (the order is in the code: a checkpoint that one rank cannot read makes the others fail),
    /// with the failure of the lowest rank that reports one; otherwise the leader's own.
    [[nodiscard]] comm::GroupOver summary() const;
};

} // namespace ranktune::worker
