// SPDX-License-Identifier: Apache-2.0
#pragma once
// ProgramBody: runs a program's process on this rank. In turns, the ranks of the trial exchange what their processes
// did.

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "process/child.hpp"
#include "trainables/program/environment.hpp"
#include "trainables/program/messages.hpp"
#include "trial/attempt_context.hpp"
#include "trial/bodies/printed_reports.hpp"
#include "trial/bodies/program_failure.hpp"
#include "trial/bodies/program_leader.hpp"
#include "trial/bodies/program_process.hpp"
#include "trial/bodies/text_values.hpp"
#include "trial/bodies/trial_body.hpp"
#include "trial/checkpoints/named_paths.hpp"

namespace ranktune::trial {

/// Works in turns: read the program's messages, exchange news with the other ranks (one small reduction when there is
/// none), obey the leader's order. So no rank blocks on its program while another rank needs it, and the program's
/// output is always read. The leader takes turns while it waits for anything; only its reports go through the loop. The
/// other ranks follow its orders to the end.
class ProgramBody final : public TrialBody {
  public:
    /// May take over the process in `spare`, and leaves its own process there if that waits to exploit.
    ProgramBody(const AttemptParts& parts, Spare& spare);
    ~ProgramBody() override;
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

    /// A state that the program was asked to save before it goes on.
    struct OnTheWay {
        TrialPoint point;
        std::uint64_t report; ///< 1 for the first one of the attempt
        Clock::time_point since;
        std::string checkpoint;
        std::string failed;                     ///< rank 0 has none: why
        std::optional<Clock::time_point> named; ///< when rank 0 named the checkpoint, or said that there is none
    };
    /// A due checkpoint that was named with a report, and is still being written while the trial goes on.
    struct Later {
        TrialPoint point;
        std::uint64_t report; ///< 1 for the first one of the attempt
        Clock::time_point since;
        std::string checkpoint;
        bool again = false; ///< a later report names the same path
    };
    /// A checkpoint that this rank's program named before its part was complete.
    struct Pending {
        std::uint64_t number; ///< the program's
        bool done = false;
        std::string error;
    };

    [[nodiscard]] bool leads() const { return assignment_.leads(); }
    [[nodiscard]] const study::ProgramSpec& program() const { return *setting_.spec->trainable.program; }
    [[nodiscard]] bool is_over() const {
        return order_.end == ProgramOrder::End::over || order_.end == ProgramOrder::End::keep;
    }
    [[nodiscard]] process::Child& child() const { return process_->child(); }
    /// What the leader will say at the next exchange.
    [[nodiscard]] const ProgramOrder& next() const { return leader_ ? leader_->order() : order_; }
    // Preparation
    [[nodiscard]] std::string locate(const study::CheckpointRef& checkpoint);
    [[nodiscard]] bool is_task() const;
    [[nodiscard]] bool processes_stay();
    void prepare_process();
    void set_up();
    void make_scratch();
    void write_configuration() const;
    void start_process(const std::string& checkpoint);
    [[nodiscard]] const std::shared_ptr<process::Interpreter>& interpreter(const std::vector<std::string>& environment);
    void go_on_with_process(const std::string& checkpoint);
    void keep_process();
    [[nodiscard]] std::string config_path() const { return scratch_ + "/config.json"; }
    void meet(trainables::ProgramFacts& facts);
    [[nodiscard]] std::vector<std::string> words() const;
    // A turn, in two halves: read the program's messages; exchange with the other ranks
    void listen(Clock::duration patience);
    void exchange();
    [[nodiscard]] Clock::duration until_next_turn() const;
    void take_line(const std::string& line);
    void take_printed();
    void on_message(trainables::ProgramReady) {}
    void on_message(trainables::ProgramReport report);
    void reported(trainables::ProgramReport report);
    [[noreturn]] void on_message(const trainables::ProgramResult& result);
    [[noreturn]] void on_message(const trainables::ProgramPredicted& predicted);
    void on_message(trainables::ProgramSaved saved);
    void on_message(trainables::ProgramDone done);
    void on_message(trainables::ProgramFailed failed);
    void settle();
    void on_message(const trainables::ProgramLog& log) { process_->print(log.text); }
    void check_end();
    [[nodiscard]] std::string failure_text() const { return trial::failure_text(child(), failed_); }
    void tell_others();
    void obey();
    [[nodiscard]] std::optional<std::string> make_folder(base::Iteration iteration);
    [[nodiscard]] std::string folder_of(base::Iteration iteration) const;
    [[nodiscard]] std::string path_of(const std::string& checkpoint) const;
    void look_at_path(const std::string& checkpoint);
    [[nodiscard]] std::optional<NamedPaths::Link> look_at_links(const std::string& checkpoint);
    [[nodiscard]] bool is_named_again(const trainables::ProgramReport& later) const;
    // The leader, between the two halves; it waits by taking turns
    void lead(const Report& report);
    void turn(Clock::duration patience);
    [[nodiscard]] bool next_report();
    void look_for_order();
    void wait_for_end();
    void need_a_report() const;
    void watch_ranks();
    void recall();
    void give_up_waiting(ProgramLeader::Duration limit, const std::string& for_whom);
    void save_at_rest(const TrialPoint& point);
    void ask_for_state(const TrialPoint& point);
    void limit_best_save(std::size_t rank) const;
    void take_state_on_the_way();
    void want_pending_state(const TrialPoint& point);
    void take_pending_state();
    [[nodiscard]] std::optional<std::string> trouble_with_pending() const;
    void need_complete_state() const;
    void keep_reported_state();
    void keep_state_asked_for();
    void adopt_last(const std::string& checkpoint);
    [[nodiscard]] bool is_saving_on_the_way() const;
    [[nodiscard]] bool is_saving_best() const;
    void need_own_part() const;
    [[noreturn]] void end_without_state() const;
    void lack_state_on_the_way(const std::string& why);
    [[noreturn]] void lack_last_state(const std::string& why) const;
    [[noreturn]] void process_failed(const std::string& text) const;
    [[nodiscard]] std::optional<std::string> refusal() const;
    void adopt(const std::string& checkpoint, const TrialPoint& point, bool may_move = true);
    [[nodiscard]] bool others_report() const;

    void note(std::string_view line) {
        if (!line.empty()) port_.log(assignment_.start.trial, line);
    }

    const AttemptSetting& setting_;
    const Assignment& assignment_;
    const space::Configuration& configuration_;
    GroupCollective& group_;
    AttemptPort& port_;
    TrialLoop& loop_;
    Spare& spare_;
    base::Iteration base_; ///< iterations completed before this attempt
    std::string scratch_;  ///< folder of the program
    std::string checkpoint_directory_;
    std::string trial_folder_; ///< for {folder}; exists if the program asks for it
    std::string works_in_;
    std::unique_ptr<ProgramProcess> process_;

    // What the program has said on this rank
    RankFacts own_;
    RankFacts told_; ///< what the other ranks know of it
    std::uint64_t answered_ = 0;
    std::uint64_t best_asked_ = 0; ///< the last report whose state, the best so far, it was told to save; 0: none
    bool told_to_end_ = false;     ///< by an answer or a signal
    std::optional<trainables::ProgramFailed> failed_; ///< said since its last report
    std::map<std::uint64_t, Pending> pending_; ///< by report, 1 for the first one; until it cannot be wanted any more
    std::string refused_before_;               ///< Child::refusal of the iteration before
    bool can_save_ = false;                    ///< its last report says so
    std::optional<std::string> saved_;         ///< what it named when told to save and to end
    bool said_unknown_ = false;

    // What all ranks know
    std::vector<RankFacts> ranks_;
    ProgramOrder order_;
    Clock::time_point news_ = Clock::now();

    // Leader
    std::optional<ProgramLeader> leader_;
    std::optional<NamedPaths> names_;
    std::shared_ptr<PrintedReports> printed_; ///< of a program that only prints; shared with its process
    TextValues texts_;
    std::deque<trainables::ProgramReport> queue_;      ///< reports that the loop has not seen yet
    std::optional<trainables::ProgramReport> current_; ///< the last one that the loop has seen
    TrialPoint point_;                                 ///< after `current_`
    std::optional<Word> asked_;                        ///< the known answer to the next report
    std::optional<Word> end_;                          ///< the final answer, given to `current_`
    std::optional<OnTheWay> on_the_way_;               ///< what it saves while the trial goes on
    std::optional<Later> later_;                       ///< what it still writes
    bool gives_state_ = false;                         ///< with this or an earlier report
    bool adopted_ = false;                             ///< there is no state left to adopt
    bool overwritten_ = false;                         ///< a later report names the path of `current_`
    bool said_waiting_ = false;
    bool recalled_ = false;     ///< the note about lone reports was read
    bool heard_others_ = false; ///< another rank has reported
};

} // namespace ranktune::trial
