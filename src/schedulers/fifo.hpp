// SPDX-License-Identifier: Apache-2.0
#pragma once
// FIFO: every trial trains to the ceiling, in the order of creation.

#include "ranktune/schedulers/scheduler.hpp"

namespace ranktune::schedulers {

class Fifo final : public Scheduler {
  public:
    explicit Fifo(base::Iteration ceiling) : ceiling_(ceiling) {}

    [[nodiscard]] std::string_view name() const override { return "fifo"; }
    [[nodiscard]] study::Verdict decide(const Report& report, bool contended) const override;
    [[nodiscard]] Work next(const Pool& pool) const override {
        return pool.can_create ? Work(Create{}) : Work(NothingLeft{});
    }
    [[nodiscard]] base::Iteration next_decision_point(base::TrialId trial, base::Iteration current) const override;
    void apply(const study::Record&) override {}
    void snapshot(study::Encoder& out) const override;
    void restore(study::Decoder& in) override;
    [[nodiscard]] bool pauses() const override { return false; }

  private:
    base::Iteration ceiling_;
};

} // namespace ranktune::schedulers
