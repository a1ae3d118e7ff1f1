// SPDX-License-Identifier: Apache-2.0
// FIFO: every trial trains to the ceiling, in the order of creation.
#include <algorithm>

#include "ranktune/schedulers/scheduler.hpp"
#include "ranktune/study/spec.hpp"
#include "schedulers/checks.hpp"

namespace ranktune::schedulers {
namespace {

constexpr std::uint8_t fifo_version = 1;

class Fifo final : public Scheduler {
  public:
    explicit Fifo(base::Iteration ceiling) : ceiling_(ceiling) {}

    [[nodiscard]] std::string_view name() const override { return "fifo"; }
    [[nodiscard]] study::Verdict decide(const Report& report, bool) const override {
        if (report.iteration < ceiling_) return {study::Verb::go_on, study::Reason::none};
        return {study::Verb::stop, study::Reason::max_iterations, static_cast<double>(ceiling_)};
    }
    [[nodiscard]] Work next(const Pool& pool) const override {
        return pool.can_create ? Work(Create{}) : Work(NothingLeft{});
    }
    [[nodiscard]] base::Iteration next_decision_point(base::TrialId, base::Iteration current) const override {
        return std::max(ceiling_, current + 1);
    }
    void apply(const study::Record&) override {}
    void snapshot(study::Encoder& out) const override { out.u8(fifo_version); }
    void restore(study::Decoder& in) override {
        require_format(in.u8() == fifo_version, "fifo", "has another version");
    }
    [[nodiscard]] bool pauses() const override { return false; }

  private:
    base::Iteration ceiling_;
};

} // namespace

study::SchedulerInfo describe_fifo() {
    study::SchedulerInfo info;
    info.name = "fifo";
    info.description = "every trial runs to the end.";
    info.several_objectives = true;
    info.foreign_names = {"none"};
    info.trains_all = true;
    info.make = [](const study::StudySpec& spec) { return std::make_unique<Fifo>(spec.max_iterations); };
    info.plan = [](const study::StudySpec&) {
        return study::SchedulerPlan{.words = "every trial to the end",
                                    .certainty = study::SchedulerPlan::Certainty::exact};
    };
    return info;
}

} // namespace ranktune::schedulers
