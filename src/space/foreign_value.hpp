// SPDX-License-Identifier: Apache-2.0
#pragma once
// Values from elsewhere: other tools write 64.0 for 64, or 0.30000000000000004 for 0.3.

#include <string_view>

#include "ranktune/space/domain.hpp"

namespace ranktune::space {

/// The value of the domain that is meant: an integer for a float without a fraction, the entry of a list that is the
/// same number, the multiple of the quantum next to it, the last value below an upper bound that is excluded; a float
/// in a domain of floats. A value that the domain does not have is returned as it is (see `contains`).
[[nodiscard]] Value as_meant(const Domain& domain, const Value& value);
/// The same from text, as in a table: numbers and booleans ("True", too) as the domain needs them. A text that it does
/// not have is returned as a number if it is one, otherwise as a string.
[[nodiscard]] Value as_meant(const Domain& domain, std::string_view text);

} // namespace ranktune::space
