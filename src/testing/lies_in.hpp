// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a configuration is one of the space.

#include <cstddef>

#include "ranktune/space/search_space.hpp"

namespace ranktune::testing {

/// Each parameter is there exactly if its condition holds, with a value of its domain, in file order, and nothing else.
[[nodiscard]] inline bool lies_in(const space::SearchSpace& space, const space::Configuration& configuration) {
    std::size_t next = 0;
    for (const space::Parameter& p : space.parameters()) {
        const bool active = !p.condition || p.condition->holds(configuration);
        if (active != configuration.contains(p.name)) return false;
        if (!active) continue;
        if (next == configuration.entries().size() || configuration.entries()[next].name != p.name) return false;
        if (!space::contains(p.domain, configuration.entries()[next].value)) return false;
        ++next;
    }
    return next == configuration.entries().size();
}

} // namespace ranktune::testing
