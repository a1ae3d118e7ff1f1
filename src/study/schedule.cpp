// SPDX-License-Identifier: Apache-2.0
#include "study/schedule.hpp"

#include <variant>

#include "ranktune/study/trainable_info.hpp"
#include "study/options.hpp"

namespace ranktune::study {
namespace {

/// A constant may change to any value of its kind; other domains say which values there are.
std::string value_problem(const space::Domain& domain, const space::Value& value) {
    if (const auto* constant = std::get_if<space::Constant>(&domain)) {
        if (value.kind() == constant->value.kind()) return "";
        return "cannot change from " + constant->value.literal() + " to " + value.literal() + ", which is another kind";
    }
    return space::contains(domain, value) ? "" : value.literal() + " is no value of " + space::text(domain);
}

} // namespace

std::string changes_problem(const Scheduled& scheduled) {
    if (scheduled.changes.empty()) return "needs at least one [iterations, value]";
    Iteration before = 0;
    for (const Scheduled::Change& change : scheduled.changes) {
        if (change.after <= before)
            return before == 0 ? "the first change comes after 1 iteration or later; [space] has the value before it"
                               : "the iterations of its changes must ascend: " + std::to_string(change.after) +
                                     " comes after " + std::to_string(before);
        before = change.after;
    }
    return "";
}

std::string schedule_problem(const Scheduled& scheduled, const space::Parameter& parameter,
                             const TrainableInfo* trainable) {
    const OptionInfo* option = trainable == nullptr ? nullptr : find_option(*trainable, parameter.name);
    if (option != nullptr && !option->may_change)
        return "cannot change while a trial of '" + trainable->name + "' trains: its state was saved for another value";
    for (const Scheduled::Change& change : scheduled.changes) {
        std::string problem = value_problem(parameter.domain, change.value);
        if (problem.empty() && option != nullptr) problem = option_problem(*option, change.value);
        if (!problem.empty()) return problem;
    }
    return "";
}

space::Value as_in(const space::Domain& domain, const space::Value& value) {
    const auto* constant = std::get_if<space::Constant>(&domain);
    const bool is_float = std::holds_alternative<space::FloatRange>(domain) ||
                          std::holds_alternative<space::Normal>(domain) ||
                          (constant != nullptr && constant->value.is_double());
    if (value.is_string() && value.as_string() == "None" && !space::contains(domain, value) &&
        space::contains(domain, space::Value::none()))
        return space::Value::none(); // which TOML does not have
    return is_float && value.is_int() ? space::Value(value.as_double()) : value;
}

} // namespace ranktune::study
