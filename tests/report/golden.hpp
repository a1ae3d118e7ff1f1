// SPDX-License-Identifier: Apache-2.0
#pragma once
// Screens as expected output in files.

#include <string>

#include "support/golden.hpp"

namespace ranktune::report::testing {

/// What `text` has to equal: the contents of tests/report/golden/<name>.txt.
[[nodiscard]] inline std::string golden(const std::string& name, const std::string& text) {
    return ranktune::testing::golden("report", name, text);
}

} // namespace ranktune::report::testing
