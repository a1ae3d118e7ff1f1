// SPDX-License-Identifier: Apache-2.0
#pragma once
// [scheduler.schedule]: which values hyper-parameters have from given iterations on.

#include <string>

#include "ranktune/study/spec.hpp"

namespace ranktune::study {

/// Why the iterations of these changes are no schedule, in words, or an empty string.
[[nodiscard]] std::string changes_problem(const Scheduled& scheduled);
/// Why the hyper-parameter cannot have these values while a trial trains, in words, or an empty string. `trainable`:
/// whose options they are, or null where that is not known.
[[nodiscard]] std::string schedule_problem(const Scheduled& scheduled, const space::Parameter& parameter,
                                           const TrainableInfo* trainable);
/// The value as the domain has it: an integer for a float is a float.
[[nodiscard]] space::Value as_in(const space::Domain& domain, const space::Value& value);

} // namespace ranktune::study
