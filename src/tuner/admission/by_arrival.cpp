// SPDX-License-Identifier: Apache-2.0
#include "tuner/admission/by_arrival.hpp"

#include <algorithm>
#include <stdexcept>

#include "tuner/outcomes.hpp"

namespace ranktune::tuner {

/// The trial failed through no fault of its own: it waits again, or ends as it was told to.
void ByArrival::excuse(TrialId trial) {
    if (trials_[trial].phase != TrialPhase::ending) return forget(trial);
    for (EndFact& end : ends_)
        if (end.trial == trial) end = {trial, AttemptOutcome::stopped, {}};
}

void ByArrival::forget(TrialId trial) {
    std::erase_if(ends_, [&](const EndFact& end) { return end.trial == trial; });
}

std::optional<Fact> ByArrival::next() const {
    if (ends_.empty()) return {};
    return ends_.front();
}

bool ByArrival::has_ended(TrialId trial) const {
    return std::any_of(ends_.begin(), ends_.end(), [&](const EndFact& end) { return end.trial == trial; });
}

bool ByArrival::any_active() const {
    return trials_.in(TrialPhase::running) + trials_.in(TrialPhase::ending) > 0 || !trials_.waiting().empty();
}

void ByArrival::visit_line(const std::function<bool(TrialId)>& visit) const {
    for (const TrialId id : trials_.waiting())
        if (!visit(id)) return;
}

void ByArrival::apply(const study::Record& record) {
    if (std::holds_alternative<study::Reported>(record)) return; // most records
    if (const auto* ended = std::get_if<study::AttemptEnded>(&record)) {
        if (!ended->retry && ends_trial(ended->outcome))
            ends_.push_back({ended->trial, ended->outcome, ended->failure});
    } else if (const auto* closed = std::get_if<study::TrialClosed>(&record)) {
        forget(closed->trial);
    } else if (const auto* retired = std::get_if<study::HostRetired>(&record)) {
        for (const TrialId id : retired->trials) excuse(id);
    } else if (std::holds_alternative<study::IncarnationBegan>(record)) {
        ends_.clear();
    }
}

void ByArrival::check_invariants() const {
    if (!ends_.empty()) throw std::logic_error("an end of an attempt has not taken effect");
}

} // namespace ranktune::tuner
