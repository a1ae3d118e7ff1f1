// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ranges and lists of values written as a text, as command lines and other tools have them. In [space] they would be
// constants, and nothing would be tuned.

#include <string>

namespace ranktune::study {

/// What to say about a text that is meant as a range or a list of values although it is no call: `uniform[0:1]`,
/// `uniform 0 1`, `0.1..0.9`, `0.1:1`, `(0, 1)`, `0.1, 0.2, 0.3`, `sgd,adam`, `a|b`. Empty: it is none, such as a
/// sentence or `2024-01-31`. `name`: of the hyper-parameter, without those of the tables around it.
[[nodiscard]] std::string foreign_text(const std::string& text, const std::string& name);

} // namespace ranktune::study
