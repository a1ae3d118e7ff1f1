// SPDX-License-Identifier: Apache-2.0
#pragma once
// A small random world around one scheduler: trials start, report, pause, are lost, fail and go on, as the tuner would
// let them, and every rule of the interface is checked on the way.

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
    double drain = 0.01;     ///< per report: a drain pauses the trial
    double restart = 0.005;  ///< per step: the head is lost
    bool checked = true;     ///< invariants after every record, a twin that is restored from snapshots now and then
    /// The value of a report; by default uniform, one in eight not finite.
    std::function<double(base::TrialId, base::Iteration, base::RngStream&)> value;
};

class World {
  public:
    World(const study::StudySpec& spec, WorldOptions options);

    /// Until no trial can do anything more. Throws std::logic_error when the scheduler breaks a rule or the study does
    /// not end.
    void run();

    [[nodiscard]] const SchedulerDriver& driver() const { return driver_; }
    [[nodiscard]] const std::vector<study::Record>& records() const { return records_; }
    [[nodiscard]] std::uint64_t iterations() const { return iterations_; } ///< reported, repeated ones included
    [[nodiscard]] std::uint64_t reached_ceiling() const { return reached_ceiling_; }
    [[nodiscard]] std::uint64_t left_paused() const { return left_paused_; }

  private:
    enum class Phase : std::uint8_t { waiting, running, pausing, stopping, paused, closed };
    struct Trial {
        Phase phase = Phase::waiting;
        base::Iteration iteration = 0;
        base::Iteration checkpoint = 0;
        study::Verdict verdict;
    };

    bool fill();
    void restart();
    void advance(base::TrialId trial);
    void report(base::TrialId trial);
    void attempt_over(base::TrialId trial, study::AttemptOutcome outcome);
    void close(base::TrialId trial, study::TrialPhase phase, study::Reason reason);
    void apply(const study::Record& record);
    study::Verdict without_donor(const study::Verdict& verdict, base::TrialId trial, base::Iteration iteration,
                                 double value) const;
    study::Verdict ask(base::TrialId trial, base::Iteration iteration, double value, bool contended);
    schedulers::Work ask_next(const schedulers::Pool& pool);
    bool chance(double probability) { return random_.uniform() < probability; }
    std::vector<base::TrialId> in(std::initializer_list<Phase> phases) const;

    WorldOptions options_;
    base::RngStream random_;
    SchedulerDriver driver_;
    std::unique_ptr<schedulers::Scheduler> twin_; ///< sees the same records; must give the same answers
    std::vector<Trial> trials_;
    std::vector<study::Record> records_;
    std::uint64_t iterations_ = 0;
    std::uint64_t reached_ceiling_ = 0;
    std::uint64_t left_paused_ = 0;
};

} // namespace ranktune::testing
