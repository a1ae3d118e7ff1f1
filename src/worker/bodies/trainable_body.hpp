// SPDX-License-Identifier: Apache-2.0
#pragma once
// The bodies of trainables in this process: a class or a function.

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/bodies/trial_body.hpp"
#include "worker/checkpoints/trial_checkpoints.hpp"
#include "worker/trial/attempt_context.hpp"

namespace ranktune::worker {

/// What both forms share: all ranks end an iteration together, the leader's word is one reduction, and the state goes
/// through a sink.
class StateBody : public TrialBody {
  public:
    [[nodiscard]] Saves saves() override;
    [[nodiscard]] Word tell(const Word& word, const TrialPoint& point) override;
    void save(const TrialPoint& point) override;
    void end(const Word& word, const TrialPoint& point) override;
    void close(bool abandoned) override { checkpoints_.close(abandoned); }

  protected:
    explicit StateBody(const AttemptParts& parts);
    [[nodiscard]] const AttemptParts& parts() const { return parts_; }
    /// Sets how user code saves its state; until then there is none.
    void saves_by(TrialCheckpoints::Save save) { save_state_ = std::move(save); }
    /// Collective.
    void restore(const study::CheckpointRef& checkpoint, const TrialCheckpoints::Load& load) {
        checkpoints_.restore(checkpoint, load);
    }

  private:
    [[nodiscard]] std::uint64_t leaders(std::uint64_t bits);
    void need_save() const;

    AttemptParts parts_;
    TrialCheckpoints checkpoints_;
    TrialCheckpoints::Save save_state_;
};

/// The class form: setup, load, step after step.
class ClassBody final : public StateBody {
  public:
    /// May reuse the object in `spare`, and leaves its own object there if it can be reused.
    ClassBody(const AttemptParts& parts, Spare& spare);
    void start(const study::CheckpointRef* checkpoint) override;
    [[nodiscard]] study::Verb train(const Report& report) override;

  private:
    [[nodiscard]] bool take_over_spare();

    AttemptContext<trainables::TrialContext> context_;
    Spare& spare_;
    std::unique_ptr<trainables::Trainable> trainable_;
};

/// The function form: the function trains and calls `report`.
class FunctionBody final : public StateBody {
  public:
    explicit FunctionBody(const AttemptParts& parts);
    void start(const study::CheckpointRef* checkpoint) override { to_restore_ = checkpoint; }
    [[nodiscard]] study::Verb train(const Report& report) override;
    [[nodiscard]] std::string why_no_state() const override;

  private:
    class Context;
    [[nodiscard]] bool report(const trainables::Metrics& metrics);
    void checkpoints(TrialCheckpoints::Save save, const TrialCheckpoints::Load& load);

    const Report* report_ = nullptr;
    const study::CheckpointRef* to_restore_ = nullptr; ///< null: nothing left to restore
    study::Verb told_ = study::Verb::go_on;
    std::exception_ptr error_; ///< from a call of the context; counts even if the function caught it
};

} // namespace ranktune::worker
