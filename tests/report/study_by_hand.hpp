// SPDX-License-Identifier: Apache-2.0
#pragma once
// A study driven step by step by a test, which can render a screen at any step; keeps its records.

#include <optional>
#include <string>
#include <vector>

#include "ranktune/study/parse.hpp"
#include "support/known.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::report::testing {

/// Parses a study whose trainable `any` accepts every option. Without a table of its own it has the searcher `random`,
/// of which the goldens are.
[[nodiscard]] inline study::StudySpec spec_of(std::string text) {
    if (text.find("[searcher]") == std::string::npos) text += "\n[searcher]\ntype = \"random\"\n";
    return study::parse_study(text, "by-hand.toml", {}, ranktune::testing::known({ranktune::testing::any_trainable()}));
}

/// A study of six trials under ASHA, by `score`; `more` follows.
[[nodiscard]] inline std::string small_study(base::Iteration max_iterations, const std::string& more = {}) {
    return R"toml([study]
name = "small"
metric = "score"
mode = "max"
num_trials = 6
seed = 1
max_iterations = )toml" +
           std::to_string(max_iterations) + R"toml(
[trainable]
name = "any"
[space]
lr = "loguniform(1e-4, 1.0)"
[scheduler]
type = "asha"
)toml" + more;
}

/// A score that grows with the number of the trial, and a little with each iteration.
[[nodiscard]] inline double rising(std::uint32_t trial, base::Iteration iteration) {
    return 0.1 * trial + 0.01 * static_cast<double>(iteration);
}

class StudyByHand {
  public:
    explicit StudyByHand(const std::string& text) : owned(std::make_unique<tuner::Tuner>(spec_of(text))) {
        tuner.create("11112222-3333-4444-8555-666677778888", study::resolved_toml(tuner.spec()), "0.1.0 (test)", out_);
        keep();
    }

    /// `gpus`: every rank has one, "GPU-0", "GPU-1", ...
    void began(std::uint32_t workers, bool gpus = false) {
        study::Began began;
        began.incarnation = base::Incarnation{1};
        for (std::uint32_t i = 0; i < workers; ++i)
            began.workers.push_back({base::Rank{i + 1}, i < workers / 2 ? "n0" : "n1", gpus ? 1U : 0U, 0, "",
                                     gpus ? "GPU-" + std::to_string(i) : std::string()});
        began.wall_time = "2026-11-20T14:02:11Z";
        step(began);
    }
    void report(std::uint32_t trial, base::Iteration iteration, std::vector<study::NamedMetric> metrics) {
        step(study::ReportArrived{base::TrialId{trial}, attempt(trial), base::Incarnation{1}, iteration,
                                  0.5 * static_cast<double>(iteration), std::move(metrics)});
    }
    void report(std::uint32_t trial, base::Iteration iteration, double value) {
        report(trial, iteration, {{tuner.spec().objective.metric, value}});
    }
    /// Reports; if the verdict ends the attempt, also saves and ends it.
    void train(std::uint32_t trial, base::Iteration iteration, double value) {
        report(trial, iteration, value);
        const auto verb = state(trial).verdict.verb;
        if (verb == study::Verb::go_on) return;
        saved(trial, iteration);
        over(trial, verb == study::Verb::pause ? study::AttemptOutcome::paused : study::AttemptOutcome::stopped);
    }
    void saved(std::uint32_t trial, base::Iteration iteration, std::optional<double> value = {}) {
        const std::string path = "checkpoints/" + std::to_string(trial) + "/" + std::to_string(iteration) + "-1.1.h5";
        study::CheckpointRef checkpoint{iteration, path, 4096, 0xabc, value};
        checkpoint.generation = state(trial).generation();
        step(study::CheckpointSaved{base::TrialId{trial}, attempt(trial), base::Incarnation{1}, checkpoint});
    }
    void over(std::uint32_t trial, study::AttemptOutcome outcome, study::Failure failure = {}) {
        step(study::AttemptOver{base::TrialId{trial}, attempt(trial), base::Incarnation{1}, outcome,
                                std::move(failure)});
    }
    void stop(const std::string& why, study::Reason reason = study::Reason::draining) {
        step(study::StopRequested{why, reason});
    }
    void wait(std::chrono::milliseconds time) {
        now_ += time;
        step(study::TimerFired{});
    }
    /// Any event, half a second after the one before.
    void step(study::EventBody body) {
        now_ += std::chrono::milliseconds(500);
        tuner.step({now_, std::move(body)}, out_);
        keep();
    }
    /// Trains all running trials, iteration by iteration, until the study ends.
    void play_out(double (*value)(std::uint32_t trial, base::Iteration iteration)) {
        for (bool moved = true; moved && !tuner.state().ended;) {
            moved = false;
            for (std::uint32_t i = 0; i < tuner.state().trials.size(); ++i) {
                if (state(i).phase != study::TrialPhase::running) continue;
                moved = true;
                train(i, state(i).attempt.iteration + 1, value(i, state(i).attempt.iteration + 1));
            }
        }
    }

    [[nodiscard]] const tuner::Trial& state(std::uint32_t trial) const {
        return tuner.state().trial(base::TrialId{trial});
    }

    std::unique_ptr<tuner::Tuner> owned;
    tuner::Tuner& tuner = *owned; ///< stays valid when the study is moved
    std::vector<study::Record> records;

  private:
    [[nodiscard]] base::AttemptId attempt(std::uint32_t trial) const { return state(trial).attempt.id; }
    void keep() {
        records.insert(records.end(), out_.records.begin(), out_.records.end());
        out_.clear();
    }

    tuner::Output out_;
    base::StudyTime now_{};
};

} // namespace ranktune::report::testing
