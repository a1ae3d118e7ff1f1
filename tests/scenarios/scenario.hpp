// SPDX-License-Identifier: Apache-2.0
#pragma once
// Scenarios: a study played step by step from a text file, with the complete expected output beside the input.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "tuner/tuner.hpp"

namespace ranktune::scenarios {

/// Executes the commands of a scenario file and returns what the core recorded (one line per record) and commanded
/// (lines that begin with `>`). After every command the invariants are checked, and a second core that only applies the
/// records must have the same digest. After every step a further core is restored from a snapshot; all restored cores
/// then execute the remaining commands, and must give the same output.
///
///   study            the lines up to `----` are a study file; again: a new study in place of the one before
///   began N [hosts H] [gpu_for R] [gpus G]   a head with N workers on H hosts; R ranks share a GPU: GPU-0, GPU-1, ...;
///                    or the first G workers have a GPU each
///   report T IT V    trial T reports value V of the objective (`nan`, `inf` allowed; `-` leaves the metric out)
///   saved T IT       its checkpoint is committed
///   over T OUTCOME [[rank R:] MESSAGE]   paused, stopped, finished, failed or lost
///   train T IT V     report; and, when the verdict is pause or stop: saved, over
///   rank_hung R      user code on rank R hangs: the trial's fault
///   died N [T [rank R:] MESSAGE]   the job died; a new head with N workers reads the journal; T left a crash note
///   rank_gone R | stop WHY | person_stops WHY | timer SECONDS | at SECONDS (sets the clock for the next commands)
///   steer N VERB ...     request N of a user: pause T, resume T, cancel T, add lr=0.1, set study.num_trials=9
///   failures         of the job, and the mean time between them
///   trials           phase, iteration and best of every trial
///   rungs            entries and promotions
///   digest           of the results (report::LogicalDigest)
///   resume N ...     a new head, as by `began`: the records so far are applied to a new core
///   reload           applies the records to a new core, which has not begun yet: `began` begins it, and before that:
///   change a.b=V     the study file has changed
///   reopen T [scratch]   failed trial T waits again
class Player {
  public:
    [[nodiscard]] std::string play(const std::string& command, const std::string& body);

  private:
    struct Line {
        std::istringstream words; ///< behind the verb
        std::string verb;
        std::string text; ///< what it gives
    };
    [[nodiscard]] bool begins(Line& line, const std::string& body);
    [[nodiscard]] bool happens(Line& line);
    [[nodiscard]] bool shows(Line& line) const;
    void create(const std::string& body, std::string& text);
    [[nodiscard]] base::AttemptId attempt_of(std::uint32_t trial) const;
    void report(std::istringstream& words, bool trains, std::string& text);
    void save(std::uint32_t trial, base::Iteration iteration, std::optional<double> value, std::string& text);
    void end(std::uint32_t trial, study::AttemptOutcome outcome, study::Failure failure, std::string& text);
    void event(study::EventBody body, std::string& text);
    /// Performs `act` on the core and on all restored ones, and compares their output.
    void everywhere(const std::function<void(tuner::Tuner&, tuner::Output&)>& act, std::string& text);
    void check(std::string& text, const tuner::Output& output);
    [[nodiscard]] std::unique_ptr<tuner::Tuner> restored() const;
    [[nodiscard]] std::string trials() const;
    [[nodiscard]] std::string rungs() const;
    struct Cluster {
        std::uint32_t workers = 0;
        std::uint32_t hosts = 1;
        std::uint32_t ranks_per_gpu = 0; ///< 0: no GPUs
        std::uint32_t with_gpu = 0;      ///< the first workers, which have a GPU each
    };
    [[nodiscard]] static Cluster cluster_of(std::istringstream& words);
    void begin(const Cluster& cluster, std::string& text, std::optional<study::JobDeath> death = std::nullopt);
    void steer(std::istringstream& words, std::string& text);
    void reload();

    study::StudySpec spec_; ///< at the creation of the study
    std::unique_ptr<tuner::Tuner> live_;
    std::unique_ptr<tuner::Tuner> replayed_;
    std::optional<base::StudyTime> timer_;                ///< the last one that was shown
    std::vector<std::unique_ptr<tuner::Tuner>> restored_; ///< one from each earlier state, oldest first
    std::vector<study::Record> journal_;
    base::StudyTime now_{};
    std::uint32_t incarnation_ = 0;
};

/// One line of text for a record or a command.
[[nodiscard]] std::string render(const study::Record& record);
[[nodiscard]] std::string render(const study::Command& command);

} // namespace ranktune::scenarios
