// SPDX-License-Identifier: Apache-2.0
#include "report/view/trial_filter.hpp"

#include <map>
#include <string_view>

namespace ranktune::report {

TrialFilter::TrialFilter(const std::string& text, const Check& check, const CheckWord& check_word)
    : condition_(space::Condition::parse_filter(
          text,
          {[&](const std::string& name, std::size_t column) { check(name, "at column " + std::to_string(column)); },
           [&](const std::string& name, const std::string& word, std::size_t column) {
               if (check_word) check_word(name, word, "at column " + std::to_string(column));
           }})) {}

bool TrialFilter::holds(const std::function<std::optional<space::Value>(const std::string&)>& value_of) const {
    std::map<std::string, space::Value, std::less<>> values; // the condition looks at values, and keeps none
    return condition_.holds([&](std::string_view name) -> const space::Value* {
        const auto value = value_of(std::string(name));
        return value ? &(values[std::string(name)] = *value) : nullptr;
    });
}

} // namespace ranktune::report
