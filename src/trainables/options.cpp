// SPDX-License-Identifier: Apache-2.0
#include "trainables/options.hpp"

#include <algorithm>
#include <cassert>

#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"

namespace ranktune::trainables {

namespace {

[[noreturn]] void wrong(const study::TrainableInfo& info, std::string_view name, const std::string& what) {
    throw base::UsageError(info.name + "." + std::string(name) + ": " + what);
}

} // namespace

const study::OptionInfo& Options::option(std::string_view name) const {
    const auto found = std::find_if(info_.options.begin(), info_.options.end(),
                                    [&](const study::OptionInfo& o) { return o.name == name; });
    assert(found != info_.options.end());
    return *found;
}

void Options::check(const study::OptionInfo& option, double value) const {
    const bool above = !option.low || value >= *option.low; // false for NaN
    const bool below = !option.high || value <= *option.high;
    if (above && below) return;
    wrong(info_, option.name,
          space::float_text(value) + " is not between " + space::float_text(option.low.value_or(-1e308)) + " and " +
              space::float_text(option.high.value_or(1e308)));
}

double Options::number(std::string_view name, double fallback) const {
    const space::Value* value = configuration_.find(name);
    if (value == nullptr || value->is_none()) return fallback;
    if (!value->is_number()) wrong(info_, name, "a number is wanted, not a " + std::string(value->kind()));
    const double result = value->as_double();
    check(option(name), result);
    return result;
}

std::int64_t Options::integer(std::string_view name, std::int64_t fallback) const {
    const space::Value* value = configuration_.find(name);
    if (value == nullptr || value->is_none()) return fallback;
    if (!value->is_int()) wrong(info_, name, "an integer is wanted, not a " + std::string(value->kind()));
    check(option(name), static_cast<double>(value->as_int()));
    return value->as_int();
}

bool Options::flag(std::string_view name, bool fallback) const {
    const space::Value* value = configuration_.find(name);
    if (value == nullptr || value->is_none()) return fallback;
    if (!value->is_bool()) wrong(info_, name, "true or false is wanted, not a " + std::string(value->kind()));
    return value->as_bool();
}

std::string Options::text(std::string_view name, const std::string& fallback) const {
    const space::Value* value = configuration_.find(name);
    if (value == nullptr || value->is_none()) return fallback;
    if (!value->is_string()) wrong(info_, name, "a string is wanted, not a " + std::string(value->kind()));
    const std::vector<std::string>& accepted = option(name).accepted;
    if (!accepted.empty() && std::find(accepted.begin(), accepted.end(), value->as_string()) == accepted.end()) {
        wrong(info_, name,
              "'" + value->as_string() + "' is not one of " + base::join(accepted) +
                  base::suggestion(value->as_string(), accepted));
    }
    return value->as_string();
}

std::vector<std::int64_t> Options::integers(std::string_view name, const std::vector<std::int64_t>& fallback) const {
    const space::Value* value = configuration_.find(name);
    if (value == nullptr || value->is_none()) return fallback;
    const space::Value::List list = value->is_list() ? value->as_list() : space::Value::List{*value};
    std::vector<std::int64_t> result;
    for (const space::Value& member : list) {
        if (!member.is_int()) wrong(info_, name, "a list of integers is wanted");
        check(option(name), static_cast<double>(member.as_int()));
        result.push_back(member.as_int());
    }
    return result;
}

} // namespace ranktune::trainables
