// SPDX-License-Identifier: Apache-2.0
#include "searchers/first_results.hpp"

#include <limits>

namespace ranktune::searchers {
namespace {

constexpr double no_score = -std::numeric_limits<double>::infinity();

} // namespace

std::optional<FirstResults::Result> FirstResults::read(const Observation& line) {
    if (line.trial.value() >= trials_.size()) trials_.resize(line.trial.value() + 1, {no_score});
    Trial& trial = trials_[line.trial.value()];
    switch (line.kind) {
        case Observation::Kind::asked:
            return {};
        case Observation::Kind::reported:
            trial.last = line.score.rank();
            return {};
        case Observation::Kind::over:
        case Observation::Kind::paused:
            break;
    }
    if (std::exchange(trial.counted, true)) return {};
    const bool failed = line.kind == Observation::Kind::over && line.phase == study::TrialPhase::failed;
    return Result{line.trial, line.point, failed ? no_score : trial.last};
}

} // namespace ranktune::searchers
