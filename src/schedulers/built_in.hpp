// SPDX-License-Identifier: Apache-2.0
#pragma once
// The built-in schedulers, and making the one that a study asks for.

#include <memory>
#include <string_view>
#include <vector>

#include "ranktune/schedulers/scheduler.hpp"
#include "ranktune/study/algorithm.hpp"
#include "ranktune/study/spec.hpp"

namespace ranktune::schedulers {

/// In the order of the list in src/schedulers/meson.build; the first one is the default.
[[nodiscard]] std::vector<std::shared_ptr<const study::SchedulerInfo>> built_in();

/// The built-in one of this name, with `values` in place of its defaults. Throws base::UsageError for an unknown name
/// or option, and for a value that the option does not take.
[[nodiscard]] study::SchedulerSpec chosen(std::string_view name, const std::vector<study::OptionValue>& values = {});

/// The scheduler that the study asks for, built-in or registered. Throws base::UsageError for settings that it cannot
/// work with.
[[nodiscard]] std::unique_ptr<Scheduler> make_scheduler(const study::StudySpec& spec);

} // namespace ranktune::schedulers
