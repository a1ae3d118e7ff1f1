// SPDX-License-Identifier: Apache-2.0
#pragma once
// OwnEnd: which trials end at their last iteration without waiting for the head.

#include <optional>

#include "ranktune/study/command.hpp"
#include "ranktune/study/spec.hpp"

namespace ranktune::worker {

/// A trial stops at its last iteration, whatever it reports. Only whether its state is kept depends on others, and that
/// is certain where it does not lead and cannot come to: nobody keeps it. One that was started before may have led
/// then. Where reports wait for their turn or for those of others, the state may be needed until then.
class OwnEnd {
  public:
    OwnEnd(const study::StudySpec& spec, const study::StartTrial& start);

    /// Each report of the attempt. nullopt: not finite, or a constraint is violated.
    void reported(std::optional<double> value);
    /// The verdict on the report of `iteration`, where nobody needs to be asked.
    [[nodiscard]] std::optional<study::Verdict> verdict_at(base::Iteration iteration) const;

  private:
    base::Iteration last_;
    study::Mode mode_;
    std::optional<double> to_beat_;
    bool asks_; ///< the trial may lead, or its study needs the head's word
};

} // namespace ranktune::worker
