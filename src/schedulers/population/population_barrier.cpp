// SPDX-License-Identifier: Apache-2.0
// Synchronous population-based training: members wait for each other at their ready points.
#include <algorithm>
#include <variant>

#include "schedulers/population/population.hpp"

namespace ranktune::schedulers {

using base::Iteration;
using base::TrialId;
using study::Verb;

// ---- decisions

bool Population::is_barrier(TrialId trial, Iteration iteration) const {
    return options_.synchronous && options_.points.contain(iteration) && iteration > member(trial).judged;
}

Report Population::held_report(TrialId trial) const {
    const Member& at = member(trial);
    return {trial, at.judged, at.score};
}

bool Population::must_wait(const Choice& choice, Iteration barrier) const {
    return choice.donor && is_to_save(*choice.donor, barrier);
}

std::optional<TrialId> Population::next_verdict(Iteration barrier) const {
    if (barrier == barrier_) return ready_.empty() ? std::nullopt : std::optional(*ready_.begin());
    if (!to_save(barrier).empty()) return {};
    for (auto at = held_.lower_bound({barrier, TrialId{}}); at != held_.end() && at->first == barrier; ++at) {
        const Report report = held_report(at->second);
        if (!must_wait(choose(report, standing_of(report)), barrier)) return at->second;
    }
    return {};
}

std::vector<TrialId> Population::to_save(Iteration barrier) const {
    std::vector<TrialId> donors;
    if (!options_.pauses_to_save || barrier == barrier_) return donors;
    for (auto at = held_.lower_bound({barrier, TrialId{}}); at != held_.end() && at->first == barrier; ++at) {
        const Report report = held_report(at->second);
        const Choice choice = choose(report, standing_of(report));
        if (must_wait(choice, barrier)) donors.push_back(*choice.donor);
    }
    return donors;
}

bool Population::is_to_save(TrialId trial, Iteration iteration) const {
    const Member& at = member(trial);
    if (!options_.synchronous || at.phase != Phase::running || at.judged != iteration) return false;
    return std::ranges::none_of(at.saved, [&](const SavedState& each) {
        return each.generation == at.generation() && each.iteration >= iteration;
    });
}

bool Population::can_donate(TrialId trial, Iteration iteration) const {
    return publication(member(trial)) != nullptr || is_to_save(trial, iteration);
}

// ---- state

void Population::held(const study::ReportHeld& record) {
    require_record(is_barrier(record.trial, record.iteration), record.trial, "waits at no barrier");
    arrived(record.trial, record.iteration, objective_.score(objective_.value(record)));
    member(record.trial).held = true;
    held_.insert({record.iteration, record.trial});
}

/// Everybody at the barrier chooses.
void Population::begin_verdicts(Iteration barrier) {
    std::vector<std::pair<TrialId, Choice>> choices;
    for (auto at = held_.lower_bound({barrier, TrialId{}}); at != held_.end() && at->first == barrier; ++at) {
        const Report report = held_report(at->second);
        choices.emplace_back(at->second, choose(report, standing_of(report)));
    }
    barrier_ = barrier;
    ready_.clear();
    followers_.clear();
    for (const auto& [trial, choice] : choices) {
        member(trial).choice = choice;
        list_follower(trial);
    }
}

/// Into the lists of those at the barrier.
void Population::list_follower(TrialId trial) {
    const Choice& choice = member(trial).choice;
    const bool waits = must_wait(choice, barrier_);
    if (!waits) ready_.insert(trial);
    if (!choice.donor) return;
    Followers& followers = followers_[*choice.donor];
    followers.wait = waits;
    followers.members.push_back(trial);
}

/// A donor that a record is about may have saved its state, or will not do so any more.
void Population::look_at_donors(const study::Record& record) {
    const auto look = [this](TrialId donor, Followers& followers) {
        const bool wait = is_to_save(donor, barrier_);
        if (wait == followers.wait) return;
        followers.wait = wait;
        for (const TrialId trial : followers.members) {
            if (!member(trial).held || member(trial).judged != barrier_) continue;
            if (wait)
                ready_.erase(trial);
            else
                ready_.insert(trial);
        }
    };
    if (std::holds_alternative<study::IncarnationBegan>(record))
        for (auto& [donor, followers] : followers_) look(donor, followers);
    std::visit(
        [&](const auto& r) {
            if constexpr (requires { r.trial; })
                if (const auto found = followers_.find(r.trial); found != followers_.end())
                    look(found->first, found->second);
        },
        record);
}

/// Its report is held no longer.
void Population::release(TrialId trial) {
    Member& at = member(trial);
    if (!at.held) return;
    held_.erase({at.judged, trial});
    ready_.erase(trial);
    at.held = false;
    at.choice = {};
}

void Population::check_barrier() const {
    std::size_t held = 0;
    for (std::size_t i = 0; i < members_.size(); ++i) {
        const Member& at = members_[i];
        const TrialId trial(static_cast<std::uint32_t>(i));
        require(at.held == held_.contains({at.judged, trial}), "pbt: member ", i, " and its barrier disagree");
        require(!at.held || (!is_over(at.phase) && options_.synchronous), "pbt: member ", i, " cannot be at a barrier");
        if (at.held) ++held;
        const bool is_ready = at.held && at.judged == barrier_ && !must_wait(at.choice, barrier_);
        require(is_ready == ready_.contains(trial), "pbt: member ", i, " waits for a donor, or does not");
    }
    require(held == held_.size(), "pbt: somebody is at a barrier twice");
}

} // namespace ranktune::schedulers
