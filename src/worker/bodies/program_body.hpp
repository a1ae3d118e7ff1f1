// SPDX-License-Identifier: Apache-2.0
#pragma once
// ProgramBody: trains with a program, whose processes run on the ranks of the trial. In turns, the ranks exchange what
// their processes did.

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "process/program/messages.hpp"
#include "worker/bodies/program_leader.hpp"
#include "worker/bodies/program_rank.hpp"
#include "worker/bodies/text_values.hpp"
#include "worker/bodies/trial_body.hpp"
#include "worker/checkpoints/program_checkpoints.hpp"
#include "worker/trial/attempt_context.hpp"

namespace ranktune::worker {

/// ProgramStart begins the attempt, ProgramRank has this rank's program; on rank 0, ProgramLeader decides and
/// ProgramCheckpoints takes over states.
///
/// Works in turns: read the program's messages, exchange news with the other ranks (one small reduction when there is
/// none), obey the leader's order. So no rank blocks on its program while another rank needs it, and the program's
/// output is always read. The leader takes turns while it waits for anything; only its reports go through the loop. The
/// other ranks follow its orders to the end.
class ProgramBody final : public TrialBody {
  public:
    /// May take over the process in `spare`, and leaves its own process there if that waits to exploit.
    ProgramBody(const AttemptParts& parts, Spare& spare);
    ProgramBody(const ProgramBody&) = delete;
    ProgramBody& operator=(const ProgramBody&) = delete;

    void start(const study::CheckpointRef* checkpoint) override;
    /// Throws base::Error when the program failed on this rank.
    [[nodiscard]] study::Verb train(const Report& report) override;
    [[nodiscard]] Saves saves() override;
    [[nodiscard]] std::string why_no_state() const override;
    [[nodiscard]] bool is_done() const override { return program().has_tasks() && child().exited() && queue_.empty(); }
    [[nodiscard]] std::optional<std::chrono::milliseconds> patience() const override;
    void idle() override;
    [[nodiscard]] Word tell(const Word& word, const TrialPoint& point) override;
    void save(const TrialPoint&) override {} // `tell` has done it
    void end(const Word& word, const TrialPoint& point) override;
    void close(bool abandoned) override;

  private:
    using Clock = process::Child::Clock;

    [[nodiscard]] bool leads() const { return parts_.assignment.leads(); }
    [[nodiscard]] const study::ProgramSpec& program() const { return *parts_.setting.spec->trainable.program; }
    [[nodiscard]] bool is_over() const {
        return order_.end == ProgramOrder::End::over || order_.end == ProgramOrder::End::keep;
    }
    [[nodiscard]] process::Child& child() const { return rank_->child(); }
    /// What the leader will say at the next exchange.
    [[nodiscard]] const ProgramOrder& next() const { return leader_ ? leader_->order() : order_; }
    void keep_process();
    // A turn, in two halves
    void listen(Clock::duration patience);
    void exchange();
    void tell_others();
    [[nodiscard]] bool is_told_all() const;
    [[nodiscard]] Clock::duration until_next_turn() const;
    // The leader, between the two halves; it waits by taking turns
    void lead(const Report& report);
    void take(process::ProgramReport report);
    void turn(Clock::duration patience);
    [[nodiscard]] bool next_report();
    void look_for_order();
    void wait_for_end();
    void watch_ranks();
    void recall();
    void give_up_waiting(ProgramLeader::Duration limit, const std::string& for_whom);
    void save_at_rest(const TrialPoint& point);
    void keep_reported_state();
    void keep_state_asked_for();
    void adopt_last(const std::string& checkpoint);
    [[nodiscard]] bool is_named_again(const process::ProgramReport& later) const;
    [[nodiscard]] bool others_report() const;

    void note(std::string_view line) {
        if (!line.empty()) parts_.port.log(parts_.assignment.start.trial, line);
    }

    AttemptParts parts_;
    Spare& spare_;
    base::Iteration base_; ///< iterations completed before this attempt
    std::optional<ProgramRank> rank_;

    // What all ranks know
    std::vector<RankFacts> ranks_;
    RankFacts told_; ///< what the other ranks know of this one
    ProgramOrder order_;
    Clock::time_point news_ = Clock::now();

    // Leader
    std::optional<ProgramLeader> leader_;
    std::optional<ProgramCheckpoints> checkpoints_;
    TextValues texts_;
    std::deque<process::ProgramReport> queue_;      ///< reports that the loop has not seen yet
    std::optional<process::ProgramReport> current_; ///< the last one that the loop has seen
    TrialPoint point_;                              ///< after `current_`
    std::optional<Word> asked_;                     ///< the known answer to the next report
    std::optional<Word> end_;                       ///< the final answer, given to `current_`
    bool gives_state_ = false;                      ///< with this or an earlier report
    bool adopted_ = false;                          ///< there is no state left to adopt
    bool overwritten_ = false;                      ///< a later report names the path of `current_`
    bool said_waiting_ = false;
    bool recalled_ = false;     ///< the note about lone reports was read
    bool heard_others_ = false; ///< another rank has reported
};

} // namespace ranktune::worker
