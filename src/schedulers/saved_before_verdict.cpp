// SPDX-License-Identifier: Apache-2.0
#include "ranktune/schedulers/scheduler.hpp"

#include "ranktune/study/spec.hpp"

namespace ranktune::schedulers {

bool saved_before_verdict(const study::StudySpec& study) { return study.deterministic; }

} // namespace ranktune::schedulers
