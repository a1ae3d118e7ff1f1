// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a condition can ever hold.

#include <functional>
#include <string_view>

#include "ranktune/space/condition.hpp"
#include "ranktune/space/domain.hpp"

namespace ranktune::space {

/// What a parameter can be, as far as a condition can tell.
struct Range {
    const Domain* domain = nullptr; ///< without a `problem`; null: not known
    bool may_be_absent = false;     ///< it has a condition itself
};

/// False only when no values of the parameters satisfy the condition. In doubt true: for a parameter that is not known,
/// and when there are too many combinations to look at (10 000). `range_of` is asked for each name once.
[[nodiscard]] bool can_hold(const Condition& condition, const std::function<Range(std::string_view name)>& range_of);

} // namespace ranktune::space
