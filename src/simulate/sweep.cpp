// SPDX-License-Identifier: Apache-2.0
#include "simulate/sweep.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "ranktune/base/error.hpp"

namespace ranktune::simulate {

Axis parse_axis(const std::string& text) {
    const auto equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
        throw base::UsageError("--sweep needs KEY=VALUE,VALUE..., as in scheduler.eta=2,3,4, not '" + text + "'");
    Axis axis{text.substr(0, equals), {""}};
    int depth = 0;
    char quote = 0;
    for (const char c : text.substr(equals + 1)) {
        if (quote != 0) {
            if (c == quote) quote = 0;
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (c == '[' || c == '{') {
            ++depth;
        } else if (c == ']' || c == '}') {
            --depth;
        } else if (c == ',' && depth == 0) {
            axis.values.emplace_back();
            continue;
        }
        axis.values.back() += c;
    }
    if (std::ranges::any_of(axis.values, &std::string::empty))
        throw base::UsageError("--sweep " + axis.key + " has an empty value: '" + text + "'");
    return axis;
}

std::vector<std::vector<std::string>> combinations(std::span<const Axis> axes) {
    std::vector<std::vector<std::string>> all{{}};
    for (const Axis& axis : axes) {
        std::vector<std::vector<std::string>> longer;
        for (const auto& one : all)
            for (const std::string& value : axis.values) {
                longer.push_back(one);
                longer.back().push_back(value);
            }
        all = std::move(longer);
    }
    return all;
}

Quartiles quartiles(std::vector<double> values) {
    std::erase_if(values, [](double value) { return std::isnan(value); });
    if (values.empty()) return {NAN, NAN, NAN};
    std::ranges::sort(values);
    const auto at = [&](double share) {
        const double place = share * static_cast<double>(values.size() - 1);
        const auto below = static_cast<std::size_t>(place);
        const double part = place - static_cast<double>(below);
        if (part == 0.0 || values[below] == values[below + 1]) return values[below]; // may be infinite
        return values[below] + part * (values[below + 1] - values[below]);
    };
    return {at(0.25), at(0.5), at(0.75)};
}

SweepRow summarise(std::vector<std::string> values, std::span<const Figures> seeds) {
    const auto over_seeds = [&](auto&& get) {
        std::vector<double> sample;
        for (const Figures& figures : seeds) sample.push_back(get(figures));
        return quartiles(std::move(sample));
    };
    SweepRow row;
    row.values = std::move(values);
    row.best = over_seeds([](const Figures& f) { return f.best; });
    row.near_best_s =
        over_seeds([](const Figures& f) { return f.near_best_s.value_or(std::numeric_limits<double>::infinity()); });
    row.core_hours = over_seeds([](const Figures& f) { return f.core_hours; });
    row.utilisation = over_seeds([](const Figures& f) { return f.utilisation(); });
    row.repeated = over_seeds([](const Figures& f) { return f.repeated(); });
    row.jobs = over_seeds([](const Figures& f) { return static_cast<double>(f.jobs); });
    row.beyond = over_seeds([](const Figures& f) { return f.extrapolation ? f.extrapolation->beyond : NAN; });
    row.distance = over_seeds([](const Figures& f) {
        return f.extrapolation && f.extrapolation->distances ? f.extrapolation->distances->median : NAN;
    });
    row.seeds = static_cast<std::uint32_t>(seeds.size());
    row.reached = static_cast<std::uint32_t>(
        std::ranges::count_if(seeds, [](const Figures& f) { return f.near_best_s.has_value(); }));
    return row;
}

} // namespace ranktune::simulate
