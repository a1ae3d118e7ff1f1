// SPDX-License-Identifier: Apache-2.0
#pragma once
// PredictBody: a range of samples that programs predict ([predict] command).

#include "worker/bodies/task_body.hpp"
#include "worker/trial/attempt_context.hpp"

namespace ranktune::worker {

/// Takes the programs from `spare`, or starts them, and leaves them there unless the range fails.
class PredictBody final : public StatelessBody {
  public:
    PredictBody(const AttemptParts& parts, Spare& spare) : parts_(parts), context_(parts), spare_(spare) {}

    void start(const study::CheckpointRef* checkpoint) override;
    [[nodiscard]] study::Verb train(const Report& report) override;
    [[nodiscard]] bool is_done() const override { return done_; }

  private:
    AttemptParts parts_;
    AttemptContext<trainables::TrialContext> context_;
    Spare& spare_;
    std::unique_ptr<PredictPrograms> programs_;
    bool done_ = false;
};

} // namespace ranktune::worker
