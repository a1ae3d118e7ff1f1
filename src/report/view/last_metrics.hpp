// SPDX-License-Identifier: Apache-2.0
#pragma once
// The newest value of every metric of every trial. The state of a study keeps the objective alone.

#include <limits>
#include <optional>
#include <vector>

#include "ranktune/study/record.hpp"

namespace ranktune::report {

class LastMetrics {
  public:
    void add(const study::Reported& report) {
        const std::size_t trial = report.trial.value();
        if (trial >= values_.size()) values_.resize(trial + 1);
        for (const auto& metric : report.metrics) {
            auto& row = values_[trial];
            if (metric.id.value() >= row.size()) row.resize(metric.id.value() + 1);
            row[metric.id.value()] = metric.value;
        }
    }
    /// Whether the trial has reported the metric.
    [[nodiscard]] bool has(study::TrialId trial, std::size_t metric) const {
        return trial.value() < values_.size() && metric < values_[trial.value()].size() &&
               values_[trial.value()][metric].has_value();
    }
    /// NaN: it has not, or its newest value is NaN.
    [[nodiscard]] double of(study::TrialId trial, std::size_t metric) const {
        return has(trial, metric) ? *values_[trial.value()][metric] : std::numeric_limits<double>::quiet_NaN();
    }

  private:
    std::vector<std::vector<std::optional<double>>> values_; ///< by trial, then by metric
};

} // namespace ranktune::report
