// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a contract suite says that a rule is broken.

#include <stdexcept>
#include <string>

namespace ranktune::testing {

/// Throws std::logic_error with the rule that does not hold.
inline void require(bool holds, const std::string& rule) {
    if (!holds) throw std::logic_error(rule);
}

} // namespace ranktune::testing
