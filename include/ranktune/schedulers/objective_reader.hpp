// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds the objective's value in records, which name metrics by number.

#include <array>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ranktune/study/codec.hpp"
#include "ranktune/study/objective.hpp"
#include "ranktune/study/record.hpp"

namespace ranktune::schedulers {

class ObjectiveReader {
  public:
    /// What a report says of the objective.
    struct Reading {
        bool complete = false; ///< it has the metrics of all objectives and of all constraints
        double value = std::numeric_limits<double>::quiet_NaN(); ///< of the first objective; NaN when not complete
        double violation = 0.0;                                  ///< sum of Constraint::excess; 0: all hold
        /// Of the further objectives, as reported, the first ones; like `value`, of no use when not complete.
        std::array<double, study::Score::max_objectives - 1> others{};
        [[nodiscard]] bool feasible() const { return violation == 0.0; }
    };

    explicit ObjectiveReader(study::Objective objective)
        : objective_(std::move(objective)), others_(objective_.others.size()), limits_(objective_.constraints.size()) {}

    [[nodiscard]] const study::Objective& objective() const { return objective_; }

    void apply(const study::MetricDefined& record) { apply(record.name, record.id); }
    void apply(const std::string& name, study::MetricId id) {
        if (name == objective_.metric) id_ = id;
        for (std::size_t i = 0; i < others_.size(); ++i)
            if (name == objective_.others[i].metric) others_[i] = id;
        for (std::size_t i = 0; i < limits_.size(); ++i)
            if (name == objective_.constraints[i].metric) limits_[i] = id;
    }
    [[nodiscard]] Reading read(const std::vector<study::MetricValue>& metrics) const {
        const auto value = find(metrics, id_);
        if (!value) return {};
        Reading reading;
        reading.value = *value;
        for (std::size_t i = 0; i < others_.size(); ++i) {
            const auto other = find(metrics, others_[i]);
            if (!other) return {};
            reading.others.at(i) = *other;
        }
        for (std::size_t i = 0; i < limits_.size(); ++i) {
            const auto limited = find(metrics, limits_[i]);
            if (!limited) return {};
            reading.violation += objective_.constraints[i].excess(*limited);
        }
        reading.complete = true;
        return reading;
    }
    /// Constraint::distance of each constraint, for a complete reading.
    [[nodiscard]] std::vector<double> distances(const std::vector<study::MetricValue>& metrics) const {
        std::vector<double> all;
        for (std::size_t i = 0; i < limits_.size(); ++i)
            if (const auto limited = find(metrics, limits_[i]))
                all.push_back(objective_.constraints[i].distance(*limited));
        return all;
    }
    /// The first objective as reported; NaN when the report lacks an objective, or the metric of a constraint;
    /// infinite, and worst, when a constraint is violated.
    [[nodiscard]] double value(const study::Reported& record) const { return value_in(record.metrics); }
    [[nodiscard]] double value(const study::ReportHeld& record) const { return value_in(record.metrics); }
    /// Turned so that larger is better; non-finite is worst.
    [[nodiscard]] double score(double value) const { return study::score(value, objective_.mode); }
    /// All objectives, with the violation of constraints. Worst, without values, when the reading is not complete.
    [[nodiscard]] study::Score score(const Reading& reading) const {
        if (!reading.complete) return {};
        if (others_.empty()) {
            study::Score only(study::score(reading.value, objective_.mode), reading.feasible());
            only.violation = reading.violation;
            return only;
        }
        std::array<double, study::Score::max_objectives> values{study::score(reading.value, objective_.mode)};
        for (std::size_t i = 0; i < others_.size(); ++i)
            values.at(i + 1) = study::score(reading.others.at(i), objective_.others[i].mode);
        study::Score score(std::span<const double>(values).first(others_.size() + 1), reading.feasible());
        score.violation = reading.violation;
        return score;
    }
    [[nodiscard]] study::Score score(const study::Reported& record) const { return score(read(record.metrics)); }

    void snapshot(study::Encoder& out) const {
        put(id_, out);
        for (const auto& other : others_) put(other, out);
        for (const auto& limit : limits_) put(limit, out);
    }
    void restore(study::Decoder& in) {
        id_ = get(in);
        for (auto& other : others_) other = get(in);
        for (auto& limit : limits_) limit = get(in);
    }

  private:
    using Id = std::optional<study::MetricId>;

    static void put(const Id& id, study::Encoder& out) { out.varint(id ? id->value() + 1U : 0U); }
    static Id get(study::Decoder& in) {
        const auto number = in.varint();
        return number == 0 ? Id{} : Id(static_cast<study::MetricId::rep>(number - 1));
    }
    static std::optional<double> find(const std::vector<study::MetricValue>& metrics, const Id& id) {
        if (id)
            for (const auto& metric : metrics)
                if (metric.id == *id) return metric.value;
        return {};
    }
    [[nodiscard]] double value_in(const std::vector<study::MetricValue>& metrics) const {
        const Reading reading = read(metrics);
        return !reading.complete || reading.feasible() ? reading.value : study::violated(objective_.mode);
    }

    study::Objective objective_;
    Id id_;
    std::vector<Id> others_; ///< of the further objectives
    std::vector<Id> limits_; ///< of the constraints
};

} // namespace ranktune::schedulers
