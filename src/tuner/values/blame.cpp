// SPDX-License-Identifier: Apache-2.0
#include "tuner/values/blame.hpp"

#include <algorithm>
#include <stdexcept>

#include "ranktune/base/digest.hpp"
#include "ranktune/base/text.hpp"
#include "tuner/causes.hpp"

namespace ranktune::tuner {

// ---- questions

bool Blame::is_bad(std::uint32_t position, const Placement& placement) const {
    const auto& failed = hosts_[position].failed;
    if (placement.hosts()[position].retired || failed.size() < failures_to_retire) return false;
    const auto unstarted = static_cast<std::size_t>(std::ranges::count_if(failed, &HostRecord::Failure::unstarted));
    const auto well = [&](const WorkerState& worker) {
        return worker.host != position && placement.serves(worker) && hosts_[worker.host].well;
    };
    return unstarted >= failures_to_retire || std::ranges::any_of(placement.workers(), well);
}

std::vector<TrialId> Blame::failed_on(std::uint32_t host) const {
    std::vector<TrialId> trials;
    for (const auto& failure : hosts_[host].failed)
        if (std::ranges::find(trials, failure.trial) == trials.end()) trials.push_back(failure.trial);
    return trials;
}

bool Blame::alone_says(std::uint32_t host, TrialId trial) const {
    return std::ranges::any_of(hosts_[host].failed, [&](const HostRecord::Failure& failure) {
        return failure.trial == trial && failure.unstarted;
    });
}

std::string Blame::row_message(const Trials& trials, std::size_t limit) const {
    struct Said {
        std::uint64_t words = 0;
        std::size_t times = 0;
        TrialId first;
    };
    std::vector<Said> all;
    for (const TrialId id : in_a_row_) {
        const std::uint64_t words = digest_of_words(base::gist(trials[id].failure.message));
        const auto known = std::ranges::find(all, words, &Said::words);
        if (known == all.end())
            all.push_back({words, 1, id});
        else
            ++known->times;
    }
    const auto most = std::ranges::max_element(all, {}, &Said::times);
    const std::string number = std::to_string(in_a_row_.size());
    const std::string who = most->times == in_a_row_.size() ? "They" : std::to_string(most->times) + " of them";
    const std::string words = base::gist(trials[most->first].failure.message);
    return number + " trials in a row failed before their first report. " + who + " said: " + words +
           ". This looks like a fault of their surroundings, so none of them counts as failed: mend it, and the same "
           "command tries them again. When the configurations are at fault, a larger failure.in_a_row (now " +
           std::to_string(limit) + ") lets the study go on";
}

bool Blame::is_the_same(const TrialState& t, Iteration at, const std::string& message) {
    return t.failures > 0 && t.failed_at == at && t.failure_digest == base::digest_of(message);
}

// ---- mutators

void Blame::begin(std::size_t hosts) {
    hosts_.assign(hosts, {});
    words_.clear();
}

void Blame::heard(TrialId id, TrialState& t, const Trials& trials, const Occupancy& occupancy) {
    if (!t.reported) early_failures_ = 0;
    if (!t.unheard) return;
    t.unheard = false;
    // (No trial of the row has reported, so `since` is its start.)
    std::erase_if(in_a_row_, [&](TrialId failed) { return occupancy.began_before(failed, trials[failed], id, t); });
}

void Blame::got_on(TrialId id, TrialState& t, Iteration iteration, const Placement& placement) {
    hosts_[placement.worker(t.ranks.front()).host].well = true;
    if (t.deaths > 0 && iteration > t.died_at) clear_of_suspicion(id, t); // it got further than at the death
}

void Blame::attempt_ended(TrialId id, TrialState& t, AttemptOutcome outcome, const std::string& message,
                          const Placement& placement) {
    const Saying& saying = saying_of(outcome);
    if (saying.against_host) {
        if (const auto host = placement.only_host_of(t.ranks))
            note_on(*host, id, outcome == AttemptOutcome::unstarted, message);
    } else if (saying.clears_host) {
        for (const Rank rank : t.ranks) hosts_[placement.worker(rank).host].failed.clear();
    }
    if (saying.clears_trial) clear_of_suspicion(id, t);
}

/// Bad configurations fail on every host with the same message; a bad host has messages of its own. (Every attempt that
/// cannot be set up counts, also of the same trial.)
void Blame::note_on(std::uint32_t host, TrialId id, bool unstarted, const std::string& message) {
    const std::uint64_t digest = digest_of_words(message);
    auto known = std::ranges::find(words_, digest, &FailureWords::digest);
    if (known == words_.end()) {
        if (words_.size() == max_failure_words) return;
        known = words_.insert(known, {digest, host, false});
    }
    if (known->host != host && !known->elsewhere) {
        known->elsewhere = true;
        for (HostRecord& each : hosts_)
            std::erase_if(each.failed, [&](const HostRecord::Failure& failure) { return failure.words == digest; });
    }
    if (known->elsewhere) return;
    auto& failed = hosts_[host].failed;
    const auto same = [&](const HostRecord::Failure& failure) { return failure.trial == id && !failure.unstarted; };
    if (unstarted || std::ranges::none_of(failed, same)) failed.push_back({id, digest, unstarted});
}

void Blame::note_failure(TrialState& t, Iteration at, const std::string& message) {
    ++t.failures;
    t.failed_at = at;
    t.failure_digest = base::digest_of(message);
}

void Blame::closed(TrialId id, const TrialState& t, TrialPhase phase, bool any_report) {
    if (phase == TrialPhase::failed && !t.reported && !any_report) ++early_failures_;
    if (phase == TrialPhase::failed && t.unheard) in_a_row_.push_back(id);
    suspects_.erase(id);
}

void Blame::reopened(TrialId id, TrialState& t) {
    forget_row();
    begin_silence(t);
    t.losses = 0;
    forgive(t);
    clear_of_suspicion(id, t);
}

void Blame::forgive(TrialState& t) {
    t.failures = 0;
    t.failed_at = 0;
    t.failure_digest = 0;
}

void Blame::job_died(Trials& trials) {
    std::vector<TrialId> ran;
    bool tried = false; // a suspect was being tried; only cleared trials ran beside it
    for (std::uint32_t i = 0; i < trials.size(); ++i) {
        const TrialPhase phase = trials[i].phase;
        if (phase != TrialPhase::running && phase != TrialPhase::ending) continue;
        ran.emplace_back(i);
        tried = tried || suspects_.contains(TrialId{i});
    }
    for (const TrialId id : ran) {
        TrialState& t = trials.at(id);
        if (tried && !suspects_.contains(id)) continue;
        ++t.deaths;
        if (tried) ++t.deaths_alone;
        t.died_at = std::max(t.died_at, t.attempt_iteration);
        if (t.deaths >= deaths_to_suspect) suspects_.insert(id);
    }
    if (tried) ++deaths_alone_;
}

void Blame::clear_of_suspicion(TrialId id, TrialState& t) {
    t.deaths = t.deaths_alone = 0;
    t.died_at = 0;
    suspects_.erase(id);
}

void Blame::restored(const Trials& trials) {
    suspects_.clear();
    for (std::uint32_t i = 0; i < trials.size(); ++i)
        if (trials[i].deaths >= deaths_to_suspect && !is_final(trials[i].phase)) suspects_.insert(TrialId{i});
}

void Blame::check_invariants(const Trials& trials) const {
    Blame again;
    again.restored(trials);
    if (again.suspects_ != suspects_) throw std::logic_error("the list of suspects is off");
}

} // namespace ranktune::tuner
