// SPDX-License-Identifier: Apache-2.0
#include "ranktune/space/enumeration.hpp"

#include <algorithm>
#include <cassert>
#include <string>

#include "ranktune/base/error.hpp"
#include "space/arithmetic.hpp"

namespace ranktune::space {
namespace {

bool is_same(const Value& a, const Value& b) {
    return a == b || (a.is_number() && b.is_number() && a.as_double() == b.as_double());
}

std::optional<std::uint64_t> position_of(const Domain& domain, const Value& value) {
    const std::uint64_t count = *cardinality(domain);
    const bool ascends = !std::holds_alternative<Choice>(domain) && !std::holds_alternative<Grid>(domain);
    std::uint64_t position = 0;
    if (ascends && value.is_number()) {
        std::uint64_t end = count;
        while (position < end) {
            const std::uint64_t middle = position + (end - position) / 2;
            const Value other = value_at(domain, middle);
            if (other.is_number() && other.as_double() < value.as_double())
                position = middle + 1;
            else
                end = middle;
        }
    } else {
        while (position < count && !is_same(value_at(domain, position), value)) ++position;
    }
    if (position == count || !is_same(value_at(domain, position), value)) return std::nullopt;
    return position;
}

} // namespace

Enumeration::Enumeration(const SearchSpace& space) : space_(space) {
    std::string continuous;
    bool conditions = !space.rules().empty();
    for (const Parameter& parameter : space.parameters()) {
        const auto count = cardinality(parameter.domain);
        if (!count) continuous += (continuous.empty() ? "" : ", ") + parameter.name + " = " + text(parameter.domain);
        counts_.push_back(count.value_or(1));
        size_ = saturating_product(size_, counts_.back());
        conditions = conditions || parameter.condition.has_value();
    }
    if (!continuous.empty())
        throw base::UsageError(
            "a grid needs a finite number of values for every parameter; give a list, grid(...), an "
            "integer range or a quantised one for " +
            continuous);
    if (!conditions) return;
    if (size_ > most_points_with_conditions)
        throw base::UsageError("a grid of a space with conditions or rules can have at most " +
                               std::to_string(most_points_with_conditions) + " points, this one has " +
                               std::to_string(size_));
    collect_distinct();
}

std::vector<std::uint64_t> Enumeration::positions(std::uint64_t point) const {
    std::vector<std::uint64_t> at(counts_.size());
    for (std::size_t i = counts_.size(); i-- > 0;) {
        at[i] = point % counts_[i];
        point /= counts_[i];
    }
    return at;
}

void Enumeration::collect_distinct() {
    for (std::uint64_t point = 0; point < size_; ++point) {
        std::vector<std::uint64_t> left = positions(point);
        const Configuration configuration = space_.assemble([&](std::size_t i) {
            const std::uint64_t position = left[i];
            left[i] = 0;
            return value_at(space_.parameters()[i].domain, position);
        });
        // Positions that were not read belong to absent parameters.
        if (std::all_of(left.begin(), left.end(), [](std::uint64_t p) { return p == 0; }) &&
            space_.broken_by(configuration) == nullptr)
            distinct_.push_back(point);
    }
    size_ = distinct_.size();
}

Configuration Enumeration::at(std::uint64_t index) const {
    assert(index < size_);
    const std::vector<std::uint64_t> at = positions(distinct_.empty() ? index : distinct_[index]);
    return space_.assemble([&](std::size_t i) { return value_at(space_.parameters()[i].domain, at[i]); });
}

std::optional<std::uint64_t> Enumeration::find(const Configuration& configuration) const {
    if (size_ >= std::uint64_t{1} << 63U) return std::nullopt; // saturated
    std::uint64_t point = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
        const Parameter& parameter = space_.parameters()[i];
        const Value* value = configuration.find(parameter.name);
        const auto position =
            value == nullptr ? std::optional<std::uint64_t>(0) : position_of(parameter.domain, *value);
        if (!position) return std::nullopt;
        point = point * counts_[i] + *position;
    }
    if (distinct_.empty()) return point;
    const auto found = std::ranges::lower_bound(distinct_, point);
    if (found == distinct_.end() || *found != point) return std::nullopt;
    return static_cast<std::uint64_t>(found - distinct_.begin());
}

} // namespace ranktune::space
