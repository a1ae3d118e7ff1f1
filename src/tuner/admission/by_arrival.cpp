// SPDX-License-Identifier: Apache-2.0
#include "tuner/admission/by_arrival.hpp"

#include <algorithm>
#include <stdexcept>

namespace ranktune::tuner {

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
    if (trials_.in(TrialPhase::running) > 0 || !trials_.waiting().empty()) return true;
    const auto held = std::ranges::count_if(trials_.on_hold(),
                                            [this](TrialId id) { return trials_[id].phase == TrialPhase::waiting; });
    return trials_.in(TrialPhase::waiting) > static_cast<std::uint64_t>(held); // once their attempts have wound down
}

void ByArrival::visit_line(const std::function<bool(TrialId)>& visit) const {
    for (const TrialId id : trials_.waiting())
        if (!visit(id)) return;
}

void ByArrival::apply(const study::Record& record) {
    if (std::holds_alternative<study::Reported>(record)) return; // most records
    if (const auto* closed = std::get_if<study::TrialClosed>(&record)) {
        forget(closed->trial);
    } else if (const auto* retired = std::get_if<study::HostRetired>(&record)) {
        for (const TrialId id : retired->trials) forget(id);
    } else if (std::holds_alternative<study::IncarnationBegan>(record)) {
        ends_.clear();
    }
}

void ByArrival::check_invariants() const {
    if (!ends_.empty()) throw std::logic_error("an end of an attempt has not taken effect");
}

} // namespace ranktune::tuner
