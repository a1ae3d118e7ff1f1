// SPDX-License-Identifier: Apache-2.0
#pragma once
// ProgramTrial: one rank's part in one attempt of a program: its process, and the turns in which the ranks of the trial
// tell each other what their programs did.

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "drivers/group/attempt.hpp"
#include "drivers/group/checkpoint_clock.hpp"
#include "drivers/group/stopwatch.hpp"
#include "drivers/program/child.hpp"
#include "drivers/program/output_limit.hpp"
#include "drivers/program/program_leader.hpp"
#include "trainables/program/environment.hpp"
#include "trainables/program/messages.hpp"

namespace ranktune::drivers {

/// Runs on the trial thread. All of its work is in turns: take in what the program said, let the leader ask for and
/// apply verdicts, tell the other ranks what is new (one small reduction when nothing is), do what the leader's order
/// says. So no rank ever waits for its program where another rank needs it, and a program that prints is always read.
class ProgramTrial {
  public:
    ProgramTrial(const AttemptSetting& setting, const Assignment& assignment, const space::Configuration& configuration,
                 ddp::Collective& group, AttemptPort& port, Stopwatch& watch);
    ~ProgramTrial();
    ProgramTrial(const ProgramTrial&) = delete;
    ProgramTrial& operator=(const ProgramTrial&) = delete;

    /// Collective. To the end of the attempt. Throws base::Error when the program failed on this rank, PeerFailed when
    /// on another one, Aborted when the trial was given up.
    [[nodiscard]] study::AttemptOutcome run();

  private:
    using Clock = Child::Clock;

    [[nodiscard]] bool leads() const { return assignment_.leads(); }
    [[nodiscard]] const study::ProgramSpec& program() const { return *setting_.spec->trainable.program; }
    [[nodiscard]] bool is_over() const { return order_.end == ProgramOrder::End::over; }
    /// What the leader will say at the next exchange.
    [[nodiscard]] const ProgramOrder& next() const { return leader_ ? leader_->order() : order_; }
    /// The iteration of the report that is not decided yet.
    [[nodiscard]] base::Iteration undecided() const { return base_ + next().decided + 1; }
    // Preparation
    void prepare();
    [[nodiscard]] std::string locate();
    void set_up();
    void make_scratch();
    [[nodiscard]] trainables::ProgramFacts facts_of_attempt();
    void meet(trainables::ProgramFacts& facts);
    // Turns
    void turn();
    [[nodiscard]] Clock::duration patience() const;
    void take_in();
    void take_line(const std::string& line);
    void on_message(trainables::ProgramReport report);
    void on_message(trainables::ProgramSaved saved);
    void on_message(const trainables::ProgramLog& log) { print(log.text); }
    void check_end();
    void lead();
    void recall();
    void watch_end();
    void give_up_waiting(ProgramLeader::Duration limit, const std::string& for_whom);
    bool settle_report();
    void apply(const study::Verdict& verdict);
    void keep_reported_state();
    [[nodiscard]] bool state_is_due(const study::Verdict& verdict);
    void save_on_the_way();
    void close();
    void tell_others();
    void obey();
    [[nodiscard]] std::optional<std::string> save_to() const;
    // Leader
    void adopt(const std::string& checkpoint, bool may_move = true);
    [[nodiscard]] bool keeps_state() const;

    void print(std::string_view line) { output_.line(line); }
    void note(std::string_view line) { port_.log(assignment_.start.trial, line); }

    const AttemptSetting& setting_;
    const Assignment& assignment_;
    const space::Configuration& configuration_;
    ddp::Collective& group_;
    AttemptPort& port_;
    Stopwatch& watch_;
    base::Iteration base_ = 0; ///< iterations completed before this attempt
    std::string scratch_;      ///< folder of this attempt
    std::string checkpoint_directory_;
    OutputLimit output_;
    std::unique_ptr<Child> child_; // after output_, which it writes to

    // What the program has said here
    RankFacts own_;
    RankFacts told_; ///< what the others know of it
    std::uint64_t answered_ = 0;
    bool told_to_end_ = false; ///< by an answer or a signal
    bool said_unknown_ = false;

    // What all know
    std::vector<RankFacts> ranks_;
    ProgramOrder order_;
    Clock::time_point news_ = Clock::now();

    // Leader
    std::optional<ProgramLeader> leader_;
    std::deque<trainables::ProgramReport> queue_; ///< reports that nobody has looked at yet
    std::optional<trainables::ProgramReport> current_;
    bool awaiting_ = false;               ///< the verdict on `current_`
    std::optional<study::Verdict> asked_; ///< what the next report will be answered with
    std::optional<study::Verdict> end_;
    std::optional<std::string> saved_; ///< what the program answered when it was told to save
    bool gives_state_ = false;         ///< with some report, this or an earlier one
    bool adopted_ = false;
    bool said_waiting_ = false;
    bool recalled_ = false;     ///< it was asked whether rank 0 alone reports in this study
    bool heard_others_ = false; ///< another rank has reported
    std::uint64_t missed_ = 0;  ///< checkpoints that could not be kept
    std::optional<CheckpointClock> clock_;
    std::optional<Clock::time_point> due_since_; ///< it goes on once its state is copied: see save_on_the_way
};

} // namespace ranktune::drivers
