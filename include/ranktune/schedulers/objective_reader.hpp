// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds the objective's value in records, which name metrics by number.

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ranktune/study/codec.hpp"
#include "ranktune/study/objective.hpp"
#include "ranktune/study/record.hpp"

namespace ranktune::schedulers {

class ObjectiveReader {
  public:
    explicit ObjectiveReader(study::Objective objective) : objective_(std::move(objective)) {}

    void apply(const study::MetricDefined& record) {
        if (record.name == objective_.metric) id_ = record.id;
    }
    /// As reported; NaN when the report lacks the objective.
    [[nodiscard]] double value(const study::Reported& record) const { return value_in(record.metrics); }
    [[nodiscard]] double value(const study::ReportHeld& record) const { return value_in(record.metrics); }
    /// Turned so that larger is better; non-finite is worst.
    [[nodiscard]] double score(double value) const { return study::score(value, objective_.mode); }

    void snapshot(study::Encoder& out) const { out.varint(id_ ? id_->value() + 1U : 0U); }
    void restore(study::Decoder& in) {
        const auto number = in.varint();
        id_ =
            number == 0 ? std::nullopt : std::optional(study::MetricId(static_cast<study::MetricId::rep>(number - 1)));
    }

  private:
    [[nodiscard]] double value_in(const std::vector<study::MetricValue>& metrics) const {
        if (id_) {
            for (const auto& metric : metrics) {
                if (metric.id == *id_) return metric.value;
            }
        }
        return std::numeric_limits<double>::quiet_NaN();
    }

    study::Objective objective_;
    std::optional<study::MetricId> id_;
};

} // namespace ranktune::schedulers
