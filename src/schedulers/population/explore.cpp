// SPDX-License-Identifier: Apache-2.0
#include "schedulers/population/explore.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <variant>

#include "space/arithmetic.hpp"

namespace ranktune::schedulers {
namespace {

using space::Domain;
using space::Value;

Value drawn(const Domain& domain, base::RngStream& random) {
    if (const auto* grid = std::get_if<space::Grid>(&domain)) return grid->values[random.below(grid->values.size())];
    return space::drawn(domain, random.uniform());
}

/// The evenly spaced value nearest to `wanted`, at least one step from `value` if the domain has such a value.
Value stepped(const Domain& domain, double quantum, double value, double wanted) {
    const std::uint64_t last = *space::cardinality(domain) - 1;
    const double first = space::value_at(domain, 0).as_double();
    const auto index = [&](double x) {
        return std::clamp(std::round((x - first) / quantum), 0.0, static_cast<double>(last));
    };
    double at = index(wanted);
    if (at == index(value)) at = std::clamp(at + (wanted > value ? 1.0 : -1.0), 0.0, static_cast<double>(last));
    return space::value_at(domain, at >= 0x1p64 ? last : std::min(static_cast<std::uint64_t>(at), last));
}

/// `value` times `factor`, or nothing where that moves nothing.
struct Move {
    const Value& value;
    double factor;
    const Domain& domain;

    [[nodiscard]] std::optional<Value> operator()(const space::FloatRange& range) const {
        const double x = value.as_double();
        const double wanted = x * factor;
        if (wanted == x) return std::nullopt;
        if (range.lower == range.upper) return Value(range.lower);
        if (range.quantum > 0.0) return stepped(domain, range.quantum, x, wanted);
        return std::clamp(wanted, range.lower, std::nextafter(range.upper, range.lower)); // the bound itself is outside
    }
    [[nodiscard]] std::optional<Value> operator()(const space::IntRange& range) const {
        const auto x = static_cast<double>(value.as_int());
        if (x * factor == x) return std::nullopt;
        return stepped(domain, static_cast<double>(range.quantum), x, x * factor);
    }
    [[nodiscard]] std::optional<Value> operator()(const space::Normal& normal) const {
        constexpr double most = std::numeric_limits<double>::max();
        const double x = value.as_double();
        const double wanted = std::clamp(x * factor, -most, most);
        if (wanted == x) return std::nullopt;
        if (normal.quantum == 0.0) return wanted;
        const space::Multiples multiples(normal.quantum);
        const double before = multiples.nearest(x);
        const double nearest = multiples.nearest(wanted);
        return multiples.at(nearest != before ? nearest : wanted > x ? before + 1.0 : before - 1.0);
    }
    [[nodiscard]] std::optional<Value> operator()(const space::Choice& choice) const {
        const auto found = std::ranges::find(choice.values, value);
        if (!choice.ordered || found == choice.values.end()) return std::nullopt;
        if (factor < 1.0) return found == choice.values.begin() ? *found : *std::prev(found);
        return std::next(found) == choice.values.end() ? *found : *std::next(found);
    }
    [[nodiscard]] std::optional<Value> operator()(const space::Grid&) const { return std::nullopt; }
    [[nodiscard]] std::optional<Value> operator()(const space::Constant& constant) const { return constant.value; }
};

} // namespace

Value explored(const Domain& domain, const Value& value, const std::vector<double>& factors, base::RngStream& random) {
    if (!factors.empty()) {
        const double factor = factors[random.below(factors.size())];
        if (auto moved = std::visit(Move{value, factor, domain}, domain)) return *std::move(moved);
    }
    return drawn(domain, random);
}

space::Configuration explored(const space::SearchSpace& space, const space::Configuration& donor,
                              const std::vector<study::Explored>& rules, double resample, const std::string& kept,
                              const space::Configuration& own, base::RngStream& random) {
    const auto& parameters = space.parameters();
    const space::Configuration changed = space.assemble([&](std::size_t i) -> Value {
        const space::Parameter& parameter = parameters[i];
        if (parameter.name == kept)
            if (const Value* value = own.find(kept)) return *value;
        const Value* before = donor.find(parameter.name);
        if (before == nullptr) return drawn(parameter.domain, random);
        const auto rule = std::ranges::find(rules, parameter.name, &study::Explored::name);
        if (rule == rules.end()) return *before;
        if (random.uniform() < resample) return drawn(parameter.domain, random);
        return explored(parameter.domain, *before, rule->factors, random);
    });
    if (space.broken_by(changed) == nullptr) return changed;
    space::Configuration fixed; // what goes with the donor's state
    space::Configuration taken = donor;
    for (const auto& [name, value] : changed.entries()) {
        if (std::ranges::find(rules, name, &study::Explored::name) == rules.end()) fixed.set(name, value);
        if (name == kept) taken.set(name, value);
    }
    return space.nearest(changed, fixed).value_or(taken);
}

} // namespace ranktune::schedulers
