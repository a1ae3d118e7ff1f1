// SPDX-License-Identifier: Apache-2.0
#include "schedulers/fifo.hpp"

#include <algorithm>

#include "ranktune/study/spec.hpp"
#include "schedulers/checks.hpp"

namespace ranktune::schedulers {
namespace {
constexpr std::uint8_t fifo_version = 1;
} // namespace

study::Verdict Fifo::decide(const Report& report, bool) const {
    if (report.iteration < ceiling_) return {study::Verb::go_on, study::Reason::none};
    return {study::Verb::stop, study::Reason::max_iterations, static_cast<double>(ceiling_)};
}

base::Iteration Fifo::next_decision_point(base::TrialId, base::Iteration current) const {
    return std::max(ceiling_, current + 1);
}

void Fifo::snapshot(study::Encoder& out) const { out.u8(fifo_version); }

void Fifo::restore(study::Decoder& in) { require_format(in.u8() == fifo_version, "fifo", "has another version"); }

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
