// SPDX-License-Identifier: Apache-2.0
#pragma once
// The schedulers of this library.

#include <memory>
#include <string_view>
#include <vector>

#include "ranktune/study/algorithm.hpp"

namespace ranktune::schedulers {

/// In the order of the list in src/schedulers/meson.build: the first one is the default.
[[nodiscard]] std::vector<std::shared_ptr<const study::SchedulerInfo>> built_in();

/// One of them with its defaults, but for `values`. Throws base::UsageError for a name or an option that there is not,
/// and for a value that the option does not take.
[[nodiscard]] study::SchedulerSpec chosen(std::string_view name, const std::vector<study::OptionValue>& values = {});

} // namespace ranktune::schedulers
