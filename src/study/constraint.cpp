// SPDX-License-Identifier: Apache-2.0
#include "study/constraint.hpp"

#include "base/joined.hpp"
#include "ranktune/space/value.hpp"

namespace ranktune::study {

std::string metrics_text(const Objective& objective) {
    std::string all = objective.metric;
    for (const Goal& each : objective.others) all += " and " + each.metric;
    return all;
}

std::string text(const Constraint& constraint) {
    return constraint.metric + (constraint.at_most ? " <= " : " >= ") + space::float_text(constraint.bound);
}

std::string text(std::span<const Constraint> constraints) {
    return base::joined(
        constraints, [](const Constraint& each) { return text(each); }, " and ");
}

} // namespace ranktune::study
