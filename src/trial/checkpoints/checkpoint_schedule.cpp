// SPDX-License-Identifier: Apache-2.0
#include "trial/checkpoints/checkpoint_schedule.hpp"

#include <utility>

namespace ranktune::trial {

CheckpointSchedule::CheckpointSchedule(const study::StudySpec& spec, const Assignment& assignment, AttemptPort& port)
    : port_(port),
      trial_(assignment.start.trial),
      clock_(spec.checkpoint, assignment.start.between_failures, assignment.first_iteration(),
             assignment.start.seconds) {}

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

} // namespace ranktune::trial
