// SPDX-License-Identifier: Apache-2.0
#pragma once
// The searchers and schedulers that study files of this process may name: those of the library, and what a program
// registers. Example: jobs/custom-scheduler.

#include "ranktune/schedulers/scheduler.hpp"
#include "ranktune/searchers/searcher.hpp"
#include "ranktune/study/algorithm.hpp"

namespace ranktune::algorithms {

/// Makes an algorithm known to this process under info.name. Call before ranktune::run_program, in every rank's process
/// (they are the same program). The name may not be taken. Throws base::UsageError, also for a description that cannot
/// be used (study::check_description).
void register_scheduler(study::SchedulerInfo info);
void register_searcher(study::SearcherInfo info);

/// Everything that can be named in a study file: those of the library first, then what was registered, in that order.
[[nodiscard]] study::Algorithms known_algorithms();

} // namespace ranktune::algorithms
