// SPDX-License-Identifier: Apache-2.0
#include "tuner/values/trials.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "tuner/causes.hpp"

namespace ranktune::tuner {
namespace {

const CheckpointRef* own_checkpoint(const TrialState& trial, std::uint32_t generation) {
    const auto& all = trial.checkpoints;
    const auto end = all.rend() - trial.of_earlier_life;
    const auto found = std::find_if(
        all.rbegin(), end, [&](const CheckpointRef& checkpoint) { return checkpoint.generation == generation; });
    return found == end ? nullptr : &*found;
}

} // namespace

Start start_of(const TrialState& trial) {
    if (const auto* own = own_checkpoint(trial, trial.generation())) return {*own, own->iteration};
    if (trial.unsettled == 0) return {};
    return {trial.takeovers.back().donor, trial.takeovers.back().iteration};
}

std::span<const Takeover> depends_on(const TrialState& trial) {
    if (trial.unsettled == 0 || trial.phase == TrialPhase::finished || trial.phase == TrialPhase::stopped) return {};
    return std::span(trial.takeovers).last(trial.unsettled);
}

bool is_stranded(const TrialState& trial) {
    return !trial.takeovers.empty() && trial.unsettled == 0 && own_checkpoint(trial, trial.generation()) == nullptr;
}

Origins origins_of(const TrialState& trial, std::uint32_t takeover) {
    const auto& all = trial.takeovers;
    if (takeover == 0) return {nullptr, all.empty() ? &trial.configuration : &all.front().before};
    for (std::size_t i = 0; i < all.size(); ++i)
        if (all[i].number == takeover) return {&all[i], i + 1 < all.size() ? &all[i + 1].before : &trial.configuration};
    for (const UndoneTakeover& each : trial.undone)
        if (each.takeover.number == takeover) return {&each.takeover, &each.after};
    impossible("a trial never took over its state number " + std::to_string(takeover));
}

std::uint32_t takeover_of(const TrialState& trial, std::uint32_t generation) {
    return generation == 0 || generation > trial.generation() ? 0 : trial.takeovers[generation - 1].number;
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
    if (t.on_hold && is_final(phase)) set_on_hold(id, false);
    if (t.phase == TrialPhase::waiting) waiting_.erase(id);
    if (phase == TrialPhase::waiting && !t.on_hold) waiting_.insert(id);
    t.phase = phase;
}

void Trials::set_on_hold(TrialId id, bool held) {
    TrialState& t = at(id);
    t.on_hold = held;
    if (held) {
        on_hold_.insert(id);
        waiting_.erase(id);
    } else {
        on_hold_.erase(id);
        if (t.phase == TrialPhase::waiting) waiting_.insert(id);
    }
}

void Trials::recount() {
    std::fill(std::begin(count_), std::end(count_), 0);
    waiting_.clear();
    on_hold_.clear();
    for (std::uint32_t i = 0; i < table_.size(); ++i) {
        const TrialState& t = table_[i];
        ++count_[static_cast<std::size_t>(t.phase)];
        if (t.on_hold) on_hold_.insert(on_hold_.end(), TrialId{i});
        if (t.phase == TrialPhase::waiting && !t.on_hold) waiting_.insert(waiting_.end(), TrialId{i});
    }
}

void Trials::check_invariants() const {
    Trials again = *this;
    again.recount();
    if (!std::equal(std::begin(count_), std::end(count_), std::begin(again.count_)))
        throw std::logic_error("the counts by phase are off");
    if (waiting_ != again.waiting_) throw std::logic_error("the list of waiting trials is off");
    if (on_hold_ != again.on_hold_) throw std::logic_error("the list of trials on hold is off");
    for (const TrialId id : on_hold_)
        if (is_final(at(id).phase)) throw std::logic_error("a trial that is over is on hold");
    for (const TrialState& trial : table_)
        if (trial.unsettled > trial.takeovers.size())
            throw std::logic_error("a trial needs states of more donors than it took over");
}

} // namespace ranktune::tuner
