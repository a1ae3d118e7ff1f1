// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collects the rules that an algorithm breaks: each once, with the settings under which it was seen first.

#include <algorithm>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "ranktune/testing/contract.hpp"

namespace ranktune::testing {

/// `{eta = 2.0, variant = 'stop'}`; empty for the defaults.
[[nodiscard]] std::string settings_text(const Settings& settings);

class BrokenRules {
  public:
    /// Calls `check`; what it throws is the rule that is broken.
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
    [[nodiscard]] std::vector<std::string> take() { return std::move(texts_); }

  private:
    std::vector<std::string> seen_;
    std::vector<std::string> texts_;
};

} // namespace ranktune::testing
