// SPDX-License-Identifier: Apache-2.0
#include "searchers/results/first_results.hpp"

#include <utility>

namespace ranktune::searchers {

std::optional<FirstResults::Result> FirstResults::read(const Observation& line) {
    auto& trials = is_earlier(line.trial) ? earlier_ : trials_;
    const std::size_t slot = line.trial.value() - (is_earlier(line.trial) ? first_earlier_trial : 0U);
    if (slot >= trials.size()) trials.resize(slot + 1);
    Trial& trial = trials[slot];
    switch (line.kind) {
        case Observation::Kind::asked:
            return {};
        case Observation::Kind::reported:
            trial.last = line.score;
            return {};
        case Observation::Kind::over:
        case Observation::Kind::paused:
            break;
    }
    if (std::exchange(trial.counted, true)) return {};
    const bool failed = line.kind == Observation::Kind::over && line.phase == study::TrialPhase::failed;
    const study::Score result = failed ? study::Score() : trial.last;
    return Result{line.trial, line.point, result.order(), result};
}

} // namespace ranktune::searchers
