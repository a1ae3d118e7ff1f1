// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ranktune/schedulers/scheduler.hpp"
#include "ranktune/study/spec.hpp"

namespace ranktune::schedulers {

/// The scheduler that the study asks for. Throws base::UsageError for settings that it cannot work with.
[[nodiscard]] std::unique_ptr<Scheduler> make_scheduler(const study::StudySpec& spec);

} // namespace ranktune::schedulers
