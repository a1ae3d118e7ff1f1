// SPDX-License-Identifier: Apache-2.0
#include "tuner/values/trials.hpp"

#include <algorithm>
#include <stdexcept>

#include "tuner/causes.hpp"

namespace ranktune::tuner {
namespace {

const CheckpointRef* own_checkpoint(const TrialState& trial, std::uint32_t generation) {
    const auto& all = trial.checkpoints;
    const auto found = std::find_if(
        all.rbegin(), all.rend(), [&](const CheckpointRef& checkpoint) { return checkpoint.generation == generation; });
    return found == all.rend() ? nullptr : &*found;
}

} // namespace

Start start_of(const TrialState& trial) {
    if (const auto* own = own_checkpoint(trial, trial.generation())) return {*own, own->iteration};
    if (trial.takeovers.empty() || trial.takeovers.back().settled) return {};
    return {trial.takeovers.back().donor, trial.takeovers.back().iteration};
}

std::vector<const Donor*> depends_on(const TrialState& trial) {
    std::vector<const Donor*> donors;
    if (trial.phase == TrialPhase::finished || trial.phase == TrialPhase::stopped) return donors;
    for (auto each = trial.takeovers.rbegin(); each != trial.takeovers.rend() && !each->settled; ++each)
        donors.push_back(&each->donor);
    return donors;
}

bool is_stranded(const TrialState& trial) {
    return !trial.takeovers.empty() && trial.takeovers.back().settled &&
           own_checkpoint(trial, trial.generation()) == nullptr;
}

void Trials::unknown(TrialId id) { impossible(named(id) + " was never created"); }

void Trials::add(TrialState trial) {
    if (!table_.empty()) trial.configuration.share_names(table_.back().configuration);
    if (trial.phase == TrialPhase::waiting)
        waiting_.insert(waiting_.end(), TrialId{static_cast<std::uint32_t>(size())});
    ++count_[static_cast<std::size_t>(trial.phase)];
    table_.push_back(std::move(trial));
}

void Trials::set_phase(TrialId id, TrialPhase phase) {
    TrialState& t = at(id);
    --count_[static_cast<std::size_t>(t.phase)];
    ++count_[static_cast<std::size_t>(phase)];
    if (t.phase == TrialPhase::waiting) waiting_.erase(id);
    if (phase == TrialPhase::waiting) waiting_.insert(id);
    t.phase = phase;
}

void Trials::recount() {
    std::fill(std::begin(count_), std::end(count_), 0);
    waiting_.clear();
    for (std::uint32_t i = 0; i < table_.size(); ++i) {
        ++count_[static_cast<std::size_t>(table_[i].phase)];
        if (table_[i].phase == TrialPhase::waiting) waiting_.insert(waiting_.end(), TrialId{i});
    }
}

void Trials::check_invariants() const {
    Trials again = *this;
    again.recount();
    if (!std::equal(std::begin(count_), std::end(count_), std::begin(again.count_)))
        throw std::logic_error("the counts by phase are off");
    if (waiting_ != again.waiting_) throw std::logic_error("the list of waiting trials is off");
}

} // namespace ranktune::tuner
