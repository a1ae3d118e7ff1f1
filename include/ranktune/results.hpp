// SPDX-License-Identifier: Apache-2.0
#pragma once
// Study: what a study has found, read from its directory. For programs that look at results; no MPI.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ranktune/base/ids.hpp"
#include "ranktune/space/configuration.hpp"
#include "ranktune/study/objective.hpp"
#include "ranktune/study/vocabulary.hpp"

namespace ranktune {

/// The study as of its newest record when it was opened; opening it again shows what has come since. Changes nothing in
/// the directory, and may be used on any node while the study runs. An object may be read by several threads.
class Study {
  public:
    struct Point {
        base::Iteration iteration = 0;
        double value = 0.0;   ///< infinite or NaN, too
        double seconds = 0.0; ///< study time of the report
    };
    struct Trial {
        base::TrialId id;
        study::TrialPhase phase = study::TrialPhase::waiting;
        space::Configuration configuration; ///< of its best report; population-based training changes it on the way
        base::Iteration iterations = 0;     ///< trained
        double best = 0.0;                  ///< the study's metric; NaN: no finite value
        base::Iteration best_iteration = 0;
        double seconds = 0.0; ///< of training, all attempts
        std::string why;      ///< why it ended, paused or goes on, in words
        std::string message;  ///< of its newest failure; empty: none
        /// Of a study with several objectives: the further ones at the best iteration, in the order of study.metric.
        std::vector<double> others = {};
    };

    /// Reads the whole journal: O(records) time, 24 bytes per reported value. Throws base::UsageError when the
    /// directory holds no study, or one with algorithms that this program has not registered, and base::FormatError
    /// when its journal is damaged.
    [[nodiscard]] static Study open(const std::string& directory);

    Study(Study&&) noexcept;
    Study& operator=(Study&&) noexcept;
    ~Study();

    [[nodiscard]] const std::string& name() const;
    [[nodiscard]] const std::string& metric() const; ///< that it optimises; the first of several
    [[nodiscard]] study::Mode mode() const;
    [[nodiscard]] bool ended() const;
    /// Every metric that was reported, in the order of their first reports.
    [[nodiscard]] std::span<const std::string> metrics() const;
    /// By number. Valid as long as this object, like every span here.
    [[nodiscard]] std::span<const Trial> trials() const;
    /// Null: no trial has reported a finite value of the metric.
    [[nodiscard]] const Trial* best() const;
    /// The Pareto front of a study with several objectives, from the best to the worst in the first one; otherwise
    /// empty.
    [[nodiscard]] std::span<const base::TrialId> front() const;
    /// What the trial reported of a metric, one point per iteration; where an iteration was trained again after a loss,
    /// the newest counts. Empty: nothing. Throws base::UsageError for an unknown trial or metric.
    [[nodiscard]] std::span<const Point> curve(base::TrialId trial, const std::string& metric) const;
    [[nodiscard]] std::span<const Point> curve(base::TrialId trial) const { return curve(trial, metric()); }

  private:
    struct Content;
    explicit Study(std::unique_ptr<const Content> content);
    std::unique_ptr<const Content> content_;
};

} // namespace ranktune
