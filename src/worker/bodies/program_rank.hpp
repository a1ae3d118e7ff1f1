// SPDX-License-Identifier: Apache-2.0
#pragma once
// ProgramRank: the program of one rank of a trial, while it runs: what it says, how it is answered, and what its end
// means.

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "process/program/messages.hpp"
#include "worker/bodies/program_failure.hpp"
#include "worker/bodies/program_leader.hpp"
#include "worker/bodies/program_start.hpp"
#include "worker/trial/attempt_context.hpp"

namespace ranktune::worker {

/// Part of ProgramBody, which exchanges the facts of all ranks, and on rank 0 leads. Knows nothing of other ranks but
/// the order. Functions throw what ends the attempt: base::Error when the program failed on this rank.
class ProgramRank {
  public:
    using Clock = process::Child::Clock;
    /// What it answers when it is told to save its state and to go on.
    struct OnTheWay {
        std::uint64_t report = 0; ///< 1 for the first one of the attempt; 0: it was not told to
        std::string checkpoint;
        std::string failed; ///< why there is none
        Clock::time_point at;
    };
    /// What it names when it is told to save and to end.
    struct Last {
        std::string checkpoint;
        Clock::time_point at;
    };

    /// `order`: what all ranks obey. `next`: what the leader will say at the next exchange; elsewhere `order`. Both
    /// outlive it.
    ProgramRank(const AttemptParts& parts, StartedProgram started, const ProgramOrder& order, const ProgramOrder& next);

    [[nodiscard]] const StartedProgram& started() const { return started_; }
    [[nodiscard]] process::Child& child() const { return started_.process->child(); }
    [[nodiscard]] const RankFacts& facts() const { return own_; }
    /// The attempt is over, and the process waits for its answer.
    [[nodiscard]] std::unique_ptr<ProgramProcess> take() && { return std::move(started_.process); }

    // ---- a turn
    /// Reads the program's messages.
    void listen(Clock::duration patience);
    /// Before the exchange: whether the process has ended well, and a pending checkpoint is complete.
    void look();
    /// After the exchange: answers reports.
    void obey();

    // ---- rank 0
    /// The next report, of those that were read; each once.
    [[nodiscard]] std::optional<process::ProgramReport> next_report();
    /// The process has ended: throws if it made no report.
    void need_a_report() const;
    [[nodiscard]] const OnTheWay& on_the_way() const { return on_the_way_; }
    [[nodiscard]] const std::optional<Last>& last() const { return last_; }
    /// The process has ended: throws unless it has named the state that it was to end with.
    void need_last() const;
    /// Whether storage refuses what the program writes: what it has printed since its last report but one says so, or
    /// it is seen where the program saves and works. So a full disk is charged to no trial, whatever the program makes
    /// of it.
    [[nodiscard]] std::optional<std::string> refusal() const;

  private:
    /// A checkpoint that this rank's program named before its part was complete.
    struct Pending {
        std::uint64_t number; ///< the program's
        bool done = false;
        std::string error;
    };

    [[nodiscard]] const study::ProgramSpec& program() const { return *parts_.setting.spec->trainable.program; }
    void note(std::string_view line) const { parts_.port.log(parts_.assignment.start.trial, line); }
    [[nodiscard]] std::string failure_text() const { return worker::failure_text(child(), failed_); }

    void take_line(const std::string& line);
    void take_printed();
    void on_message(process::ProgramReady) {}
    void on_message(process::ProgramReport report);
    void reported(process::ProgramReport report);
    [[noreturn]] void on_message(const process::ProgramResult& result);
    [[noreturn]] void on_message(const process::ProgramPredicted& predicted);
    void on_message(process::ProgramSaved saved);
    void on_message(process::ProgramDone done);
    void on_message(process::ProgramFailed failed);
    void on_message(const process::ProgramLog& log) { started_.process->print(log.text); }

    void check_end();
    void settle();
    [[nodiscard]] std::optional<std::string> make_folder(base::Iteration iteration);
    [[nodiscard]] bool is_saving_on_the_way() const;
    [[nodiscard]] bool is_saving_best() const;
    void lack_state_on_the_way(const std::string& why);
    void need_own_part() const;
    [[noreturn]] void end_without_state() const;
    [[noreturn]] void lack_last_state(const std::string& why) const;
    [[noreturn]] void process_failed(const std::string& text) const;

    AttemptParts parts_;
    StartedProgram started_;
    const ProgramOrder& order_;
    const ProgramOrder& next_;
    base::Iteration base_; ///< iterations completed before this attempt
    RankFacts own_;
    std::deque<process::ProgramReport> reports_; ///< rank 0: not taken yet
    std::uint64_t answered_ = 0;
    std::uint64_t best_asked_ = 0; ///< the last report whose state, the best so far, it was told to save; 0: none
    bool told_to_end_ = false;     ///< by an answer or a signal
    std::optional<process::ProgramFailed> failed_; ///< said since its last report
    std::map<std::uint64_t, Pending> pending_; ///< by report, 1 for the first one; until it cannot be wanted any more
    std::string refused_before_;               ///< Child::refusal of the iteration before
    bool can_save_ = false;                    ///< its last report says so
    OnTheWay on_the_way_;
    std::optional<Last> last_;
    bool said_unknown_ = false;
};

} // namespace ranktune::worker
