// SPDX-License-Identifier: Apache-2.0
#include "worker/checkpoints/checkpoint_schedule.hpp"

#include <limits>
#include <utility>

#include "ranktune/study/objective.hpp"

namespace ranktune::worker {

CheckpointSchedule::CheckpointSchedule(const study::StudySpec& spec, const Assignment& assignment, AttemptPort& port)
    : port_(port),
      trial_(assignment.start.trial),
      clock_(spec.checkpoint, assignment.start.between_failures, assignment.first_iteration(),
             assignment.start.seconds),
      mode_(spec.objective.mode),
      keeps_best_(spec.checkpoint.interval != study::CheckpointSpec::Interval::none && !spec.objective.several()),
      to_beat_(assignment.start.to_beat) {}

bool CheckpointSchedule::is_best(const TrialPoint& point) {
    if (!keeps_best_ || !point.value) return false;
    const double best = to_beat_ ? study::score(*to_beat_, mode_) : -std::numeric_limits<double>::infinity();
    if (study::score(*point.value, mode_) <= best) return false;
    to_beat_ = point.value;
    return clock_.affords_more(point.seconds);
}

void CheckpointSchedule::saved(study::CheckpointRef checkpoint, std::optional<double> value) {
    checkpoint.value = value;
    port_.saved(std::move(checkpoint));
}

void CheckpointSchedule::missed(const std::string& why) {
    if (++missed_ == 1) port_.log(trial_, "no checkpoint: " + why + "; training goes on");
    port_.unsaved(why);
}

void CheckpointSchedule::close() {
    if (missed_ > 1)
        port_.log(trial_, "no checkpoint, " + std::to_string(missed_) + " times in this attempt; the first is above");
}

} // namespace ranktune::worker
