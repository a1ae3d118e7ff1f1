// SPDX-License-Identifier: Apache-2.0
#pragma once
// A small random simulation around one scheduler: trials start, report, pause, fail, are lost and resume, as under the
// tuner, and every rule of the interface is checked on the way.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "ranktune/base/rng.hpp"
#include "testing/scheduler_driver.hpp"

namespace ranktune::testing {

struct WorldOptions {
    std::uint64_t seed = 1;
    std::uint32_t trials = 40;
    std::uint32_t slots = 6; ///< trials that train at once
    double loss = 0.02;      ///< per report: the attempt is lost
    double failure = 0.02;   ///< per report: the trial fails for good
    double stopper = 0.02;   ///< per report: a stopper ends the trial
    double drain = 0.01;     ///< per report: the tuner takes the trial's ranks
    double restart = 0.005;  ///< per step: the head is lost
    double other = 0.01;     ///< per step: a record about ranks, hosts or the job
    double save = 0.3;       ///< per report: the trial saves a checkpoint
    double reopening = 0.0;  ///< per failed trial, between two lives: the user has it tried again
    double undone = 0.1;     ///< per start of a trial that exploited another: the donor's checkpoint cannot be read
    bool by_turn = false;    ///< as in a deterministic study: not `contended`, and when attempts end must not matter
    bool checked = true;     ///< check invariants after every record, and compare with a restored copy
    /// The value of a report; by default uniform, one in eight not finite.
    std::function<double(base::TrialId, base::Iteration, base::RngStream&)> value;
};

class World {
  public:
    World(const study::StudySpec& spec, WorldOptions options);

    /// Runs until no trial can do anything more. Throws std::logic_error when the scheduler breaks a rule or the study
    /// does not end.
    void run();

    [[nodiscard]] const SchedulerDriver& driver() const { return driver_; }
    [[nodiscard]] const std::vector<study::Record>& records() const { return records_; }
    [[nodiscard]] std::uint64_t iterations() const { return iterations_; } ///< including repeated ones
    [[nodiscard]] std::uint64_t reached_ceiling() const { return reached_ceiling_; }
    [[nodiscard]] std::uint64_t exploits() const { return exploits_; }

  private:
    /// held: its report waits at a barrier, with or without ranks.
    enum class Phase : std::uint8_t { waiting, running, paused, held, closed };
    /// A trial's state before it exploited another.
    struct Before {
        base::Iteration start = 0;
        space::Configuration configuration;
    };
    struct Trial {
        Phase phase = Phase::waiting;
        bool holds_ranks = false; ///< without running: its attempt winds down
        bool failed = false;      ///< closed, and may be reopened
        base::Iteration iteration = 0;
        base::Iteration start = 0; ///< first iteration of its next attempt
        study::Verdict verdict;
        study::ReportHeld report; ///< while held
        double value = 0.0;       ///< in it
        space::Configuration configuration;
        std::uint32_t generation = 0;
        std::uint32_t trained = 0;                     ///< generation of its newest attempt
        std::vector<study::CheckpointRef> checkpoints; ///< newest last
        std::vector<Before> takeovers;                 ///< since its newest checkpoint
    };

    bool fill();
    void promote(const schedulers::Promotion& promotion);
    void start(base::TrialId trial);
    void restart();
    bool reopen();
    void advance(base::TrialId trial);
    void report(base::TrialId trial);
    void hold(base::TrialId trial, double value);
    bool judge_held();
    study::Reported record_of(base::TrialId trial, double value);
    void take(base::TrialId trial);
    void save(base::TrialId trial);
    void attempt_over(base::TrialId trial, study::AttemptOutcome outcome);
    void close(base::TrialId trial, study::TrialPhase phase, study::Reason reason);
    void release_all(base::TrialId trial);
    void apply(const study::Record& record);
    void tell_of_others();
    study::Verdict ask(const schedulers::Report& report, bool contended);
    void take_over(const schedulers::Report& report, study::Verdict& verdict);
    std::optional<study::Exploited> takeover_of(base::TrialId trial, base::Iteration iteration,
                                                const schedulers::Exploit& exploit) const;
    schedulers::Work ask_next(const schedulers::Pool& pool);
    schedulers::Pool pool() const;
    void wind_down(base::TrialId trial);
    bool chance(double probability) { return random_.uniform() < probability; }
    std::vector<base::TrialId> in(std::initializer_list<Phase> phases) const;
    std::vector<base::TrialId> busy() const;

    WorldOptions options_;
    base::RngStream random_;
    SchedulerDriver driver_;
    std::unique_ptr<schedulers::Scheduler> twin_; ///< applies the same records; must give the same answers
    std::vector<Trial> trials_;
    std::vector<study::Record> records_;
    std::optional<study::Exploited> takeover_; ///< applied after the present report
    base::Iteration released_ = 0;             ///< newest barrier whose reports have been judged
    bool another_life_ = true;                 ///< after the end of the study
    std::uint64_t saves_ = 0;
    std::uint64_t exploits_ = 0;
    std::uint64_t iterations_ = 0;
    std::uint64_t reached_ceiling_ = 0;
};

} // namespace ranktune::testing
