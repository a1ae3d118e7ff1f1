// SPDX-License-Identifier: Apache-2.0
#pragma once
// The searchers and schedulers that study files of this process may name: the built-in ones, and those that a program
// registers. Example: jobs/custom-scheduler.

#include "ranktune/schedulers/scheduler.hpp"
#include "ranktune/searchers/searcher.hpp"
#include "ranktune/study/algorithm.hpp"

namespace ranktune::trainables {

/// Makes an algorithm known to this process under info.name. Call before ranktune::run_program, in the process of every
/// rank. Throws base::UsageError for a name that is taken and for a description that cannot be used
/// (study::check_description).
void register_scheduler(study::SchedulerInfo info);
void register_searcher(study::SearcherInfo info);

/// All that a study file can name: the built-in ones, then the registered ones in order of registration.
[[nodiscard]] study::Algorithms known_algorithms();

} // namespace ranktune::trainables
