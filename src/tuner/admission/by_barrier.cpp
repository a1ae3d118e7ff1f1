// SPDX-License-Identifier: Apache-2.0
#include "tuner/admission/by_barrier.hpp"

#include <algorithm>
#include <vector>

#include "ranktune/base/error.hpp"
#include "ranktune/study/schema.hpp"
#include "schedulers/checks.hpp"
#include "tuner/rules/causes.hpp"
#include "tuner/rules/limits.hpp"

namespace ranktune::tuner {

using schedulers::require;

// ---- facts

Standing ByBarrier::standing(TrialId trial, Iteration iteration) const {
    const Standing standing = ByArrival::standing(trial, iteration);
    if (standing != Standing::next || iteration <= released_) return standing; // late: the others have gone on
    return scheduler_.is_barrier(trial, iteration) ? Standing::early : Standing::next;
}

bool ByBarrier::can_start(TrialId trial) const { return trials_[trial].wanted_ranks <= placement_.alive(); }

bool ByBarrier::is_complete() const {
    if (!training_.empty()) return false;
    return std::ranges::none_of(line_, [this](TrialId id) { return !absent_.contains(id) && can_start(id); });
}

std::optional<Fact> ByBarrier::next() const {
    const auto fact_of = [this](TrialId id) {
        const study::ReportHeld& report = held_.at(id).front();
        return ReportFact{id, report.attempt, report.iteration, report.seconds, report.metrics};
    };
    if (!ends_.empty()) // the trial leaves: its report comes before its end
        return at_barrier(ends_.front().trial) ? fact_of(ends_.front().trial) : ByArrival::next();
    if (held_.empty() || drain_ == Drain::resumable) return {};
    const auto& [barrier, first] = *order_.begin();
    if (drain_ == Drain::for_good) return fact_of(first);
    if (barrier > released_ && !is_complete()) return {};
    const auto trial = scheduler_.next_verdict(barrier);
    if (!trial) return {};
    return fact_of(*trial);
}

const std::deque<study::ReportHeld>* ByBarrier::held(TrialId trial) const {
    static const std::deque<study::ReportHeld> none;
    const auto found = held_.find(trial);
    return found == held_.end() ? &none : &found->second;
}

// ---- work and ranks

Admission::Room ByBarrier::room() const {
    if (!ends_.empty()) return Room::none;
    const bool nobody_comes = training_.empty() && line_.empty();
    const bool spare = line_.size() < parked_.size() || (!held_.empty() && nobody_comes);
    return spare && drain_ == Drain::no ? Room::one : Room::by_ranks;
}

std::optional<TrialId> ByBarrier::last_parked() const {
    for (auto at = parked_.rbegin(); at != parked_.rend(); ++at)
        if (!leaving_.contains(*at)) return *at;
    return {};
}

std::optional<TrialId> ByBarrier::to_yield(std::optional<TrialId>, std::uint32_t wanted, std::uint32_t free) const {
    return free + returning_ >= wanted ? std::nullopt : last_parked();
}

std::optional<TrialId> ByBarrier::surplus(std::uint32_t free, bool full) const {
    if (!last_parked()) return {};
    if (drain_ == Drain::no && is_complete())
        for (const TrialId id : scheduler_.to_save(order_.begin()->first))
            if (parked_.contains(id) && !leaving_.contains(id)) return id;
    // Ranks wanted by those in line; if the study has as many trials as it may, a place each.
    std::uint64_t wanted = 0;
    const std::uint64_t provided = full ? leaving_.size() : std::uint64_t{free} + returning_;
    for (auto id = line_.begin(); id != line_.end() && wanted <= provided; ++id)
        if (can_start(*id)) wanted += full ? 1 : trials_[*id].wanted_ranks;
    return wanted <= provided ? std::nullopt : last_parked();
}

// ---- mutators

void ByBarrier::apply(const study::Record& record) {
    ByArrival::apply(record);
    std::optional<TrialId> about;
    std::visit(
        [&](const auto& r) {
            if constexpr (requires { r.trial; }) about = r.trial;
        },
        record);
    if (const auto* report = std::get_if<study::Reported>(&record)) {
        admit(*report);
    } else if (const auto* early = std::get_if<study::ReportHeld>(&record)) {
        held_[early->trial] = {*early};
        order_.emplace(early->iteration, early->trial);
        absent_.erase(early->trial);
    } else if (const auto* ended = std::get_if<study::AttemptEnded>(&record)) {
        lose(*ended);
    } else if (std::holds_alternative<study::TrialClosed>(record)) {
        release(*about);
        absent_.erase(*about);
    } else if (std::holds_alternative<study::YieldAsked>(record)) {
        set_leaving(*about, true);
    } else if (const auto* drained = std::get_if<study::DrainBegan>(&record)) {
        drain_ = is_limit(drained->reason) ? Drain::for_good : Drain::resumable;
    } else if (std::holds_alternative<study::IncarnationBegan>(record)) {
        drain_ = Drain::no;
        leaving_.clear();
        absent_.clear(); // all were lost
        returning_ = 0;
    }
    const bool about_many = std::holds_alternative<study::IncarnationBegan>(record) ||
                            std::holds_alternative<study::RankLost>(record) ||
                            std::holds_alternative<study::HostRetired>(record); // excuses trials
    if (about_many) refresh_all();
    if (about) refresh(*about);
}

void ByBarrier::admit(const study::Reported& report) {
    absent_.erase(report.trial);
    // (A trial that is told to stop, or has ended by itself, leaves alone.)
    if (at_barrier(report.trial) && report.verdict.verb != Verb::stop && !has_ended(report.trial))
        released_ = std::max(released_, report.iteration);
    release(report.trial);
}

void ByBarrier::lose(const study::AttemptEnded& record) {
    set_leaving(record.trial, false);
    if (record.outcome == AttemptOutcome::lost && record.retry && !at_barrier(record.trial))
        absent_.insert(record.trial);
}

/// Its report is held no longer.
void ByBarrier::release(TrialId trial) {
    const auto found = held_.find(trial);
    if (found == held_.end()) return;
    order_.erase({found->second.front().iteration, trial});
    held_.erase(found);
}

void ByBarrier::set_leaving(TrialId trial, bool leaves) {
    const auto ranks = static_cast<std::uint32_t>(trials_[trial].attempt.ranks.size());
    if (leaves && leaving_.insert(trial).second) returning_ += ranks;
    if (!leaves && leaving_.erase(trial) > 0) returning_ -= ranks;
}

ByBarrier::Place ByBarrier::place_of(TrialId trial) const {
    const Trial& t = trials_[trial];
    if (at_barrier(trial)) return t.phase == TrialPhase::running && !t.attempt.abandoned ? Place::parked : Place::none;
    if (t.phase == TrialPhase::waiting) return has_ended(trial) ? Place::none : Place::in_line;
    return t.phase == TrialPhase::running && !absent_.contains(trial) ? Place::trains : Place::none;
}

void ByBarrier::refresh(TrialId trial) {
    if (winds_down(trials_[trial])) set_leaving(trial, true);
    const Place place = place_of(trial);
    const auto put = [trial](std::set<TrialId>& set, bool in) {
        if (in)
            set.insert(trial);
        else
            set.erase(trial);
    };
    put(training_, place == Place::trains);
    put(line_, place == Place::in_line);
    put(parked_, place == Place::parked);
}

void ByBarrier::refresh_all() {
    for (std::uint32_t i = 0; i < trials_.size(); ++i) refresh(TrialId{i});
}

// ---- snapshot and invariants

void ByBarrier::snapshot(study::Encoder& out) const {
    std::vector<study::ReportHeld> reports;
    for (const auto& [trial, held] : held_) reports.push_back(held.front());
    study::put(out, reports);
    study::put(out, std::vector<TrialId>(leaving_.begin(), leaving_.end()));
    study::put(out, std::vector<TrialId>(absent_.begin(), absent_.end()));
    study::put(out, released_);
    study::put(out, drain_);
}

void ByBarrier::restore(study::Decoder& in) {
    ByArrival::restore(in);
    auto reports = study::decoded<std::vector<study::ReportHeld>>(in);
    const auto leaving = study::decoded<std::vector<TrialId>>(in);
    const auto absent = study::decoded<std::vector<TrialId>>(in);
    study::get(in, released_);
    study::get(in, drain_);
    const auto exists = [this](TrialId id) {
        if (id.value() >= trials_.size()) throw base::FormatError("a barrier holds a trial that was never created");
    };
    held_.clear();
    order_.clear();
    leaving_.clear();
    absent_.clear();
    returning_ = 0;
    for (study::ReportHeld& report : reports) {
        exists(report.trial);
        order_.emplace(report.iteration, report.trial);
        held_[report.trial].push_back(std::move(report));
    }
    for (const TrialId id : leaving) {
        exists(id);
        set_leaving(id, true);
    }
    for (const TrialId id : absent) {
        exists(id);
        absent_.insert(id);
    }
    training_.clear();
    line_.clear();
    parked_.clear();
    refresh_all();
}

void ByBarrier::check_invariants() const {
    ByArrival::check_invariants();
    require(order_.size() == held_.size(), "the order of the reports at a barrier is off");
    for (const auto& [trial, held] : held_) {
        const Trial& t = trials_[trial];
        require(held.size() == 1, named(trial) + " waits at more than one barrier");
        require(!is_final(t.phase) && t.phase != TrialPhase::waiting,
                named(trial) + " waits at a barrier but is " + std::string(name(t.phase)));
        require(order_.contains({held.front().iteration, trial}), named(trial) + " has no place at its barrier");
        require(!absent_.contains(trial), named(trial) + " is at a barrier that does not wait for it");
    }
    std::uint32_t returning = 0;
    for (const TrialId id : leaving_) {
        require(trials_[id].attempt.live, named(id) + " is waited for but holds no ranks");
        returning += static_cast<std::uint32_t>(trials_[id].attempt.ranks.size());
    }
    require(returning == returning_, "the number of ranks that come back is off");
    for (std::uint32_t i = 0; i < trials_.size(); ++i) {
        const TrialId id{i};
        const Place place = place_of(id);
        require(training_.contains(id) == (place == Place::trains) && line_.contains(id) == (place == Place::in_line) &&
                    parked_.contains(id) == (place == Place::parked),
                named(id) + " and the lists of those on their way to the barrier disagree");
    }
}

} // namespace ranktune::tuner
