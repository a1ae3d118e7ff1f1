// SPDX-License-Identifier: Apache-2.0
#pragma once
// Hooks: the user's commands at the end of a trial and of a start of the study ([hooks] of the study file).

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "head/observer.hpp"
#include "process/background.hpp"
#include "process/wake.hpp"
#include "ranktune/base/log.hpp"
#include "ranktune/study/spec.hpp"

namespace ranktune::head {

/// Runs the commands one after the other on a thread of its own: no command delays the study, except that the end waits
/// for the last ones, each within hooks.timeout. A command that fails is logged, told once on the screen, and changes
/// nothing. Each is run at most once: after a kill it is not made up for.
class Hooks final : public Observer {
  public:
    /// `next` may be null. References must outlive it.
    Hooks(Observer* next, study::HookSpec spec, std::string study, std::string directory, process::Waker& waker,
          base::LogSink& log);

    void on_records(const tuner::Tuner& tuner, const std::vector<study::Record>& records,
                    const HeadFigures& figures) override;
    /// Waits for the commands of trials, at most twice hooks.timeout, then runs the study's.
    void study_ended(const tuner::Tuner& tuner, study::StudyOutcome outcome, const std::string& reason);
    /// What to tell the user, once; never waits.
    [[nodiscard]] std::optional<std::string> note();

    /// What a command of a trial finds in its environment.
    [[nodiscard]] static std::vector<std::pair<std::string, std::string>> facts_of_trial(const tuner::Tuner& tuner,
                                                                                         study::TrialId trial);

  private:
    using Facts = std::vector<std::pair<std::string, std::string>>;
    void run(const std::string& key, const std::string& command, const Facts& facts);
    void run_all();

    study::HookSpec spec_;
    std::string study_;
    std::string directory_;
    process::Waker& waker_;
    base::LogSink& log_;
    std::mutex mutex_;
    std::deque<Facts> trials_;        ///< that have ended
    std::set<study::TrialId> saving_; ///< closed, and their ranks still save; of the head's thread alone
    std::optional<std::string> note_;
    process::Background::Clock::time_point until_ = process::Background::Clock::time_point::max();
    std::uint64_t failures_ = 0; ///< of the thread, then of study_ended
    std::uint64_t dropped_ = 0;
    process::Background thread_;
};

} // namespace ranktune::head
