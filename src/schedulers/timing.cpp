// SPDX-License-Identifier: Apache-2.0
#include "ranktune/schedulers/scheduler.hpp"

#include "ranktune/study/spec.hpp"

namespace ranktune::schedulers {

Timing timing_of(const study::StudySpec& study) {
    return {.paused_with_verdict = study.deterministic, .saved_before_verdict = study.deterministic};
}

} // namespace ranktune::schedulers
