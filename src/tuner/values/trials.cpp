// SPDX-License-Identifier: Apache-2.0
#include "tuner/values/trials.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "ranktune/study/schema.hpp"
#include "tuner/rules/causes.hpp"

namespace ranktune::tuner {
namespace {

const CheckpointRef* own_checkpoint(const Trial& trial, std::uint32_t generation) {
    const auto& all = trial.checkpoints;
    const auto end = all.rend() - trial.of_earlier_life;
    const auto found = std::find_if(
        all.rbegin(), end, [&](const CheckpointRef& checkpoint) { return checkpoint.generation == generation; });
    return found == end ? nullptr : &*found;
}

} // namespace

Start start_of(const Trial& trial) {
    if (const auto* own = own_checkpoint(trial, trial.generation())) return {*own, own->iteration};
    if (trial.unsettled == 0) return {};
    return {trial.takeovers.back().donor, trial.takeovers.back().iteration};
}

std::span<const Takeover> depends_on(const Trial& trial) {
    if (trial.unsettled == 0 || trial.phase == TrialPhase::finished || trial.phase == TrialPhase::stopped) return {};
    return std::span(trial.takeovers).last(trial.unsettled);
}

bool is_stranded(const Trial& trial) {
    return !trial.takeovers.empty() && trial.unsettled == 0 && own_checkpoint(trial, trial.generation()) == nullptr;
}

Origins origins_of(const Trial& trial, std::uint32_t takeover) {
    const auto& all = trial.takeovers;
    if (takeover == 0) return {nullptr, all.empty() ? &trial.configuration : &all.front().before};
    for (std::size_t i = 0; i < all.size(); ++i)
        if (all[i].number == takeover) return {&all[i], i + 1 < all.size() ? &all[i + 1].before : &trial.configuration};
    for (const UndoneTakeover& each : trial.undone)
        if (each.takeover.number == takeover) return {&each.takeover, &each.after};
    impossible("a trial never took over its state number " + std::to_string(takeover));
}

std::uint32_t takeover_of(const Trial& trial, std::uint32_t generation) {
    return generation == 0 || generation > trial.generation() ? 0 : trial.takeovers[generation - 1].number;
}

void Trials::unknown(TrialId id) { impossible(named(id) + " was never created"); }

void Trials::add(Trial trial) {
    if (!table_.empty()) trial.configuration.share_names(table_.back().configuration);
    const TrialId id{static_cast<std::uint32_t>(size())};
    ++count_[static_cast<std::size_t>(trial.phase)];
    if (trial.attempt.live) ++live_;
    if (can_start(trial)) waiting_.insert(waiting_.end(), id);
    table_.push_back(std::move(trial));
}

void Trials::list(TrialId id) {
    if (can_start(at(id)))
        waiting_.insert(id);
    else
        waiting_.erase(id);
}

void Trials::set_phase(TrialId id, TrialPhase phase) {
    Trial& t = at(id);
    if (t.phase == phase) return;
    --count_[static_cast<std::size_t>(t.phase)];
    ++count_[static_cast<std::size_t>(phase)];
    if (t.on_hold && is_final(phase)) set_on_hold(id, false);
    const bool waited = t.phase == TrialPhase::waiting;
    t.phase = phase;
    if (waited || phase == TrialPhase::waiting) list(id);
}

void Trials::set_on_hold(TrialId id, bool held) {
    at(id).on_hold = held;
    if (held)
        on_hold_.insert(id);
    else
        on_hold_.erase(id);
    list(id);
}

void Trials::begin_attempt(const study::TrialStarted& started, Iteration from) {
    at(started.trial).attempt = {.id = started.attempt,
                                 .live = true,
                                 .iteration = from,
                                 .since = started.at,
                                 .ranks = started.ranks,
                                 .roles = started.roles};
    ++live_;
    set_phase(started.trial, TrialPhase::running);
}

void Trials::end_attempt(TrialId id) {
    Attempt& attempt = at(id).attempt;
    if (!attempt.live) impossible("attempt " + std::to_string(attempt.id.value()) + " of " + named(id) + " ends twice");
    attempt.live = attempt.abandoned = attempt.at_fault = false;
    --live_;
    list(id);
}

void Trials::recount() {
    std::fill(std::begin(count_), std::end(count_), 0);
    live_ = 0;
    waiting_.clear();
    on_hold_.clear();
    for (std::uint32_t i = 0; i < table_.size(); ++i) {
        const Trial& t = table_[i];
        ++count_[static_cast<std::size_t>(t.phase)];
        if (t.on_hold) on_hold_.insert(on_hold_.end(), TrialId{i});
        if (t.attempt.live) ++live_;
        if (can_start(t)) waiting_.insert(waiting_.end(), TrialId{i});
    }
}

void Trials::snapshot(study::Encoder& out) const {
    study::put(out, table_.size());
    for (const Trial& trial : table_) study::put(out, trial);
}

void Trials::restore(study::Decoder& in) {
    table_.clear();
    for (auto left = study::decoded<std::size_t>(in); left > 0; --left) {
        auto trial = study::decoded<Trial>(in);
        // Mostly the same parameters.
        if (!table_.empty()) trial.configuration.share_names(table_.back().configuration);
        for (Takeover& each : trial.takeovers) each.before.share_names(trial.configuration);
        for (UndoneTakeover& each : trial.undone) each.after.share_names(trial.configuration);
        table_.push_back(std::move(trial));
    }
    recount();
}

void Trials::check_invariants() const {
    Trials again = *this;
    again.recount();
    if (!std::equal(std::begin(count_), std::end(count_), std::begin(again.count_)))
        throw std::logic_error("the counts by phase are off");
    if (live_ != again.live_) throw std::logic_error("the number of attempts is off");
    if (waiting_ != again.waiting_) throw std::logic_error("the list of waiting trials is off");
    if (on_hold_ != again.on_hold_) throw std::logic_error("the list of trials on hold is off");
    for (const TrialId id : on_hold_)
        if (is_final(at(id).phase)) throw std::logic_error("a trial that is over is on hold");
    for (const Trial& trial : table_) {
        if (trial.phase == TrialPhase::running && !trial.attempt.live)
            throw std::logic_error("a trial runs without an attempt");
        if (trial.unsettled > trial.takeovers.size())
            throw std::logic_error("a trial needs states of more donors than it took over");
    }
}

} // namespace ranktune::tuner
