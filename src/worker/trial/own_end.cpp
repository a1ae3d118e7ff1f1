// SPDX-License-Identifier: Apache-2.0
#include "worker/trial/own_end.hpp"

#include "ranktune/study/objective.hpp"

namespace ranktune::worker {

OwnEnd::OwnEnd(const study::StudySpec& spec, const study::StartTrial& start)
    : last_(spec.max_iterations),
      mode_(spec.objective.mode),
      to_beat_(start.to_beat),
      asks_(!to_beat_ || start.attempt.value() > 1 || spec.deterministic || study::needs_checkpoints(spec.scheduler) ||
            spec.checkpoint.every_trial || spec.evaluates_checkpoints() || spec.searcher.repeats > 1 ||
            spec.objective.several()) {}

void OwnEnd::reported(std::optional<double> value) {
    if (value && to_beat_ && study::score(*value, mode_) >= study::score(*to_beat_, mode_)) asks_ = true;
}

std::optional<study::Verdict> OwnEnd::verdict_at(base::Iteration iteration) const {
    if (asks_ || iteration < last_) return std::nullopt;
    return study::Verdict{study::Verb::discard, study::Reason::max_iterations, 0.0, 0.0};
}

} // namespace ranktune::worker
