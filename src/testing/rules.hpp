// SPDX-License-Identifier: Apache-2.0
#pragma once
// The rules of the contract suites: stating one, and collecting those that an algorithm breaks.

#include <algorithm>
#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ranktune/space/search_space.hpp"

namespace ranktune::testing {

/// Throws std::logic_error with the broken rule.
inline void require(bool holds, const std::string& rule) {
    if (!holds) throw std::logic_error(rule);
}

/// Whether the configuration is in the space: each parameter is present exactly if its condition holds, with a value
/// from its domain, in file order, and nothing else, and it keeps the rules.
[[nodiscard]] inline bool lies_in(const space::SearchSpace& space, const space::Configuration& configuration) {
    std::size_t next = 0; // in file order
    for (const space::Parameter& p : space.parameters())
        if (next < configuration.size() && configuration.entries()[next].name == p.name) ++next;
    return next == configuration.size() && space.why_outside(configuration).empty() &&
           space.broken_by(configuration) == nullptr;
}

/// Collects the rules that an algorithm breaks: each once, with the settings that broke it first.
class BrokenRules {
  public:
    /// Calls `check`; the message of its exception is the broken rule.
    template <class Check>
    void look(const std::string& where, Check check) {
        try {
            check();
        } catch (const std::exception& error) {
            const std::string rule = error.what();
            if (std::ranges::find(seen_, rule) != seen_.end()) return;
            seen_.push_back(rule);
            texts_.push_back(where + ": " + rule);
        }
    }
    [[nodiscard]] std::vector<std::string> take() { return std::exchange(texts_, {}); }

  private:
    std::vector<std::string> seen_;
    std::vector<std::string> texts_;
};

} // namespace ranktune::testing
