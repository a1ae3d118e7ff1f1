// SPDX-License-Identifier: Apache-2.0
#pragma once
// The searchers of this library.

#include <memory>
#include <string_view>
#include <vector>

#include "ranktune/study/algorithm.hpp"

namespace ranktune::searchers {

/// In the order of the list in src/searchers/meson.build: the first one is the default.
[[nodiscard]] std::vector<std::shared_ptr<const study::SearcherInfo>> built_in();

/// One of them with its defaults, but for `values`. Throws base::UsageError for a name or an option that there is not,
/// and for a value that the option does not take.
[[nodiscard]] study::SearcherSpec chosen(std::string_view name, const std::vector<study::OptionValue>& values = {});

} // namespace ranktune::searchers
