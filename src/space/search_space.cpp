// SPDX-License-Identifier: Apache-2.0
#include "ranktune/space/search_space.hpp"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "ranktune/base/error.hpp"
#include "ranktune/base/rng.hpp"
#include "ranktune/base/text.hpp"
#include "space/arithmetic.hpp"

namespace ranktune::space {
namespace {

using Positions = std::map<std::string_view, std::size_t>;

Positions positions_of(const std::vector<Parameter>& parameters) {
    Positions positions;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (!positions.emplace(parameters[i].name, i).second)
            throw base::UsageError("the parameter '" + parameters[i].name + "' is in the space twice");
    }
    return positions;
}

/// For each parameter the parameters that its condition mentions.
std::vector<std::vector<std::size_t>> needs_of(const std::vector<Parameter>& parameters, const Positions& positions) {
    std::vector<std::vector<std::size_t>> needs(parameters.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (!parameters[i].condition) continue;
        for (const std::string& name : parameters[i].condition->names()) {
            const auto at = positions.find(name);
            if (at == positions.end()) {
                std::vector<std::string> known;
                known.reserve(parameters.size());
                for (const Parameter& parameter : parameters) known.push_back(parameter.name);
                throw base::UsageError("the condition of '" + parameters[i].name + "' mentions '" + name +
                                       "', which is not in the space" + base::suggestion(name, known));
            }
            needs[i].push_back(at->second);
        }
    }
    return needs;
}

/// File order, except that parameters mentioned by a condition come before the parameter that has it.
std::vector<std::size_t> order_of(const std::vector<Parameter>& parameters,
                                  const std::vector<std::vector<std::size_t>>& needs) {
    std::vector<std::size_t> order;
    std::vector<bool> placed(parameters.size(), false);
    while (order.size() < parameters.size()) {
        const std::size_t before = order.size();
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            const auto ready = [&](std::size_t needed) { return placed[needed]; };
            if (placed[i] || !std::all_of(needs[i].begin(), needs[i].end(), ready)) continue;
            placed[i] = true;
            order.push_back(i);
        }
        if (order.size() > before) continue;
        std::string names;
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            if (!placed[i]) names += (names.empty() ? "" : ", ") + parameters[i].name;
        }
        throw base::UsageError("conditions that wait for each other: " + names);
    }
    return order;
}

} // namespace

SearchSpace::SearchSpace(std::vector<Parameter> parameters, std::vector<Rule> rules)
    : parameters_(std::move(parameters)), rules_(std::move(rules)) {
    for (const Parameter& parameter : parameters_) {
        if (const std::string why = problem(parameter.domain); !why.empty())
            throw base::UsageError(parameter.name + " = " + text(parameter.domain) + ": " + why);
        coordinate_.push_back(dimensions_);
        if (has_coordinate(parameter.domain)) ++dimensions_;
        if (const auto* grid = std::get_if<Grid>(&parameter.domain))
            grid_size_ = saturating_product(grid_size_, grid->values.size());
    }
    needs_ = needs_of(parameters_, positions_of(parameters_));
    order_ = order_of(parameters_, needs_);
    conditional_ = std::ranges::any_of(parameters_, [](const Parameter& p) { return p.condition.has_value(); });
    std::vector<std::string> names;
    for (const Parameter& parameter : parameters_) names.push_back(parameter.name);
    shape_ = Configuration::shape_of(std::move(names));
    if (!rules_.empty()) find_allowed();
}

const Parameter* SearchSpace::find(std::string_view name) const {
    const auto at =
        std::find_if(parameters_.begin(), parameters_.end(), [&](const Parameter& p) { return p.name == name; });
    return at == parameters_.end() ? nullptr : &*at;
}

bool SearchSpace::exists(std::size_t i, const Values& values) const {
    if (!parameters_[i].condition) return true;
    std::vector<const Value*> room;
    return parameters_[i].condition->holds(values_at(needs_[i], values, room));
}

std::span<const Value*> SearchSpace::values_at(const std::vector<std::size_t>& positions, const Values& values,
                                               std::vector<const Value*>& room) {
    room.clear();
    for (const std::size_t at : positions) room.push_back(values[at] ? &*values[at] : nullptr);
    return room;
}

Configuration SearchSpace::of_present(std::vector<std::optional<Value>> values) const {
    std::vector<std::pair<std::string, Value>> entries;
    for (std::size_t i = 0; i < values.size(); ++i)
        if (values[i]) entries.emplace_back(parameters_[i].name, *std::move(values[i]));
    return Configuration(std::move(entries));
}

std::string SearchSpace::why_outside(const Configuration& configuration) const {
    for (const Configuration::Entry entry : configuration.entries()) {
        const Parameter* const parameter = find(entry.name);
        if (parameter == nullptr) return "'" + entry.name + "' is not in the space";
        if (!space::contains(parameter->domain, entry.value))
            return entry.name + " = " + entry.value.literal() + " is not in " + space::text(parameter->domain);
    }
    for (const Parameter& parameter : parameters_) {
        const bool wanted = !parameter.condition || parameter.condition->holds(configuration);
        if (wanted != configuration.contains(parameter.name))
            return (wanted ? "there is no value of '" : "there is a value of '") + parameter.name + "'";
    }
    return {};
}

namespace {

/// A position in [0, 1) has 53 bits, so in a longer range it reaches only every second, fourth, ... integer.
std::optional<Value> drawn_in_full(const Domain& domain, base::RngStream& stream) {
    constexpr std::uint64_t most_positions = std::uint64_t{1} << 53;
    const auto* range = std::get_if<IntRange>(&domain);
    if (range == nullptr || range->log) return std::nullopt;
    if (static_cast<std::uint64_t>(range->upper) - static_cast<std::uint64_t>(range->lower) < most_positions)
        return std::nullopt; // the usual case, without a division
    const std::uint64_t count = *cardinality(domain);
    if (count <= most_positions) return std::nullopt;
    using Limits = std::numeric_limits<std::int64_t>;
    const bool all = range->quantum == 1 && range->lower == Limits::min() && range->upper == Limits::max();
    if (all) return Value(static_cast<std::int64_t>(stream())); // the count, 2^64, does not fit into 64 bits
    return value_at(domain, stream.below(count));
}

} // namespace

std::vector<std::size_t> SearchSpace::grid_positions(std::uint64_t point) const {
    std::vector<std::size_t> at(parameters_.size(), 0);
    for (std::size_t i = parameters_.size(); i-- > 0;) {
        const auto* grid = std::get_if<Grid>(&parameters_[i].domain);
        if (grid == nullptr) continue;
        at[i] = static_cast<std::size_t>(point % grid->values.size());
        point /= grid->values.size();
    }
    return at;
}

Configuration SearchSpace::sample(std::uint64_t seed, base::TrialId trial) const {
    constexpr std::uint32_t most_draws = 32;
    for (std::uint32_t draw = 0; draw < most_draws; ++draw)
        if (auto configuration = drawn(seed, trial, trial.value(), draw); broken_by(configuration) == nullptr)
            return configuration;
    base::RngStream grids(seed, base::Purpose::rules, trial.value(), 1);
    for (std::uint32_t draw = 0; ruled_->uses_grids && draw < most_draws; ++draw) {
        const std::uint64_t grid_point = grids.below(grid_size_);
        if (auto configuration = drawn(seed, trial, grid_point, most_draws + draw); broken_by(configuration) == nullptr)
            return configuration;
    }
    return walked(seed, trial);
}

Configuration SearchSpace::drawn(std::uint64_t seed, base::TrialId trial, std::uint64_t grid_point,
                                 std::uint32_t draw) const {
    const std::size_t first = draw * parameters_.size();
    std::vector<std::size_t> grids;
    if (grid_size_ > 1) grids = grid_positions(grid_point);
    return assemble([&](std::size_t i) -> Value {
        const Domain& domain = parameters_[i].domain;
        if (const auto* grid = std::get_if<Grid>(&domain)) return grid->values[grids.empty() ? 0 : grids[i]];
        base::RngStream stream(seed, base::Purpose::sample, trial.value(), static_cast<std::uint32_t>(first + i));
        if (auto value = drawn_in_full(domain, stream)) return *std::move(value);
        return space::drawn(domain, stream.uniform());
    });
}

Configuration SearchSpace::at(std::span<const double> unit, std::uint64_t grid_point) const {
    assert(unit.size() == dimensions_);
    std::vector<std::size_t> grids;
    if (grid_size_ > 1) grids = grid_positions(grid_point);
    std::vector<double> positions(parameters_.size(), 0.0);
    std::size_t next = 0;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
        if (has_coordinate(parameters_[i].domain)) positions[i] = unit[next++];
    }
    return assemble([&](std::size_t i) -> Value {
        const Domain& domain = parameters_[i].domain;
        if (const auto* grid = std::get_if<Grid>(&domain)) return grid->values[grids.empty() ? 0 : grids[i]];
        return space::decode(domain, positions[i]);
    });
}

bool operator==(const SearchSpace& a, const SearchSpace& b) {
    const auto same_parameter = [](const Parameter& p, const Parameter& q) {
        const auto text = [](const Parameter& each) { return each.condition ? each.condition->text() : std::string(); };
        return p.name == q.name && p.domain == q.domain && text(p) == text(q);
    };
    const auto same_rule = [](const Rule& p, const Rule& q) {
        return p.forbids == q.forbids && p.condition.text() == q.condition.text();
    };
    return std::ranges::equal(a.parameters_, b.parameters_, same_parameter) &&
           std::ranges::equal(a.rules_, b.rules_, same_rule);
}

std::uint64_t SearchSpace::grid_point(const Configuration& configuration) const {
    if (grid_size_ == 1) return 0;
    std::uint64_t point = 0;
    for (const Parameter& parameter : parameters_) {
        const auto* grid = std::get_if<Grid>(&parameter.domain);
        if (grid == nullptr) continue;
        point *= grid->values.size();
        const Value* const value = configuration.find(parameter.name);
        const auto at = value == nullptr ? grid->values.begin() : std::ranges::find(grid->values, *value);
        if (at != grid->values.end()) point += static_cast<std::uint64_t>(at - grid->values.begin());
    }
    return point;
}

std::vector<double> SearchSpace::encode(const Configuration& configuration) const {
    for (const Configuration::Entry entry : configuration.entries()) {
        const Parameter* const parameter = find(entry.name);
        if (parameter == nullptr) throw base::UsageError("'" + entry.name + "' is not in the search space");
        // A schedule sets constants to what is no value of theirs.
        if (!std::holds_alternative<Constant>(parameter->domain) && !space::contains(parameter->domain, entry.value))
            throw base::UsageError(entry.name + " = " + entry.value.literal() + " is not in " +
                                   text(parameter->domain));
    }
    std::vector<double> unit;
    unit.reserve(dimensions_);
    for (const Parameter& parameter : parameters_) {
        if (!has_coordinate(parameter.domain)) continue;
        const Value* const value = configuration.find(parameter.name);
        unit.push_back(value == nullptr ? 0.5 : space::encode(parameter.domain, *value));
    }
    return unit;
}

} // namespace ranktune::space
