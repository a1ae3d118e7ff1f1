// SPDX-License-Identifier: Apache-2.0
#pragma once
// A condition on trials, as people type it.

#include <functional>
#include <optional>
#include <string>

#include "ranktune/space/condition.hpp"

namespace ranktune::report {

/// `state == running and lr < 0.1` (space::Condition::parse_filter).
class TrialFilter {
  public:
    /// Called with each name in the text; throws for one that is unknown. `at`: "at column 5".
    using Check = std::function<void(const std::string& name, const std::string& at)>;

    /// Called with each word that a name is compared with; throws for one that the name can never be. Empty: not
    /// called.
    using CheckWord = std::function<void(const std::string& name, const std::string& word, const std::string& at)>;

    /// Throws base::UsageError with what was expected at which column of the text (counted from 1).
    TrialFilter(const std::string& text, const Check& check, const CheckWord& check_word = {});

    /// `value_of`: nothing where a trial has no value; a comparison with it is false.
    [[nodiscard]] bool holds(const std::function<std::optional<space::Value>(const std::string&)>& value_of) const;

  private:
    space::Condition condition_;
};

} // namespace ranktune::report
