// SPDX-License-Identifier: Apache-2.0
#include "tuner/values/blame.hpp"

#include <algorithm>
#include <stdexcept>

#include "ranktune/base/digest.hpp"
#include "ranktune/base/text.hpp"
#include "tuner/rules/causes.hpp"

namespace ranktune::tuner {
namespace {

using Failures = std::vector<PlaceRecord::Failure>;

/// Attempts that ranktune itself could not set up are the fault of the place, whatever goes on elsewhere.
bool is_at_fault(const Failures& failed) {
    return static_cast<std::size_t>(std::ranges::count_if(failed, &PlaceRecord::Failure::unstarted)) >=
           failures_to_retire;
}

/// A trial counts once, but for attempts that could not be set up.
void add_failure(Failures& failed, const PlaceRecord::Failure& failure) {
    const auto same = [&](const PlaceRecord::Failure& each) { return each.trial == failure.trial && !each.unstarted; };
    if (failure.unstarted || std::ranges::none_of(failed, same)) failed.push_back(failure);
}

void forget_words(std::vector<PlaceRecord>& places, std::uint64_t digest) {
    for (PlaceRecord& each : places)
        std::erase_if(each.failed, [&](const PlaceRecord::Failure& failure) { return failure.words == digest; });
}

} // namespace

// ---- questions

bool Blame::is_bad(std::uint32_t position, const Placement& placement) const {
    const auto& failed = hosts_[position].failed;
    if (placement.hosts()[position].retired || failed.size() < failures_to_retire) return false;
    const std::uint32_t device = failed.front().device;
    const bool one_device =
        device != no_device &&
        std::ranges::all_of(failed, [&](const PlaceRecord::Failure& failure) { return failure.device == device; });
    if (one_device && placement.has_neighbour(device)) return false;
    return is_at_fault(failed) || std::ranges::any_of(placement.workers(), [&](const WorkerState& worker) {
               return worker.host != position && placement.serves(worker) && hosts_[worker.host].well;
           });
}

bool Blame::is_bad_device(std::uint32_t position, const Placement& placement) const {
    const auto& failed = devices_[position].failed;
    const DeviceState& device = placement.devices()[position];
    if (device.retired || placement.hosts()[device.host].retired || failed.size() < failures_to_retire) return false;
    if (!placement.has_neighbour(position)) return false;
    return is_at_fault(failed) || std::ranges::any_of(placement.workers(), [&](const WorkerState& worker) {
               const PlaceRecord& place = worker.device == no_device ? hosts_[worker.host] : devices_[worker.device];
               // How trials without GPUs do says nothing of a GPU.
               const bool comparable = worker.device != no_device || !placement.keeps_kinds_apart();
               return worker.device != position && comparable && placement.serves(worker) && place.well;
           });
}

std::vector<TrialId> Blame::failed_on(const PlaceRecord& place) {
    std::vector<TrialId> trials;
    for (const auto& failure : place.failed)
        if (std::ranges::find(trials, failure.trial) == trials.end()) trials.push_back(failure.trial);
    return trials;
}

bool Blame::alone_says(const PlaceRecord& place, TrialId trial) {
    return std::ranges::any_of(
        place.failed, [&](const PlaceRecord::Failure& failure) { return failure.trial == trial && failure.unstarted; });
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

bool Blame::is_the_same(const Trial& t, Iteration at, const std::string& message) {
    return t.failures > 0 && t.failed_at == at && t.failure_digest == base::digest_of(message);
}

// ---- mutators

void Blame::begin(std::size_t hosts, std::size_t devices) {
    hosts_.assign(hosts, {});
    devices_.assign(devices, {});
    words_.clear();
}

void Blame::heard(Trial& t, const Trials& trials, const std::function<bool(TrialId)>& began_before) {
    if (!t.reported) early_failures_ = 0;
    t.unheard = false;
    // (No trial of the row has reported, so `since` is its start.)
    std::erase_if(in_a_row_,
                  [&](TrialId failed) { return trials[failed].workers == t.workers && began_before(failed); });
}

void Blame::got_on(TrialId id, Trial& t, Iteration iteration, const Placement& placement) {
    const WorkerState& leader = placement.worker(t.attempt.ranks.front());
    hosts_[leader.host].well = true;
    if (leader.device != no_device) devices_[leader.device].well = true;
    if (t.deaths > 0 && iteration > t.died_at) clear_of_suspicion(id, t); // it got further than at the death
}

void Blame::attempt_ended(TrialId id, Trial& t, AttemptOutcome outcome, const Failure& failure,
                          const Placement& placement) {
    const Saying& saying = saying_of(outcome);
    if (saying.against_host) {
        note(id, outcome, failure, t.attempt.ranks, placement);
    } else if (saying.clears_host) {
        for (const Rank rank : t.attempt.ranks) {
            const WorkerState& worker = placement.worker(rank);
            hosts_[worker.host].failed.clear();
            if (worker.device != no_device) devices_[worker.device].failed.clear();
        }
    }
    if (saying.clears_trial) clear_of_suspicion(id, t);
}

/// Bad configurations fail everywhere with the same message; a bad host, or GPU, has messages of its own. (Every
/// attempt that cannot be set up counts, also of the same trial.)
void Blame::note(TrialId id, AttemptOutcome outcome, const Failure& failure, std::span<const Rank> ranks,
                 const Placement& placement) {
    const auto host = placement.only_host_of(ranks);
    const auto device = placement.device_of(ranks, failure.rank);
    if (!host && !device) return;
    const std::uint32_t where = host ? *host : placement.devices()[*device].host;
    const std::uint64_t digest = digest_of_words(failure.message);
    auto known = std::ranges::find(words_, digest, &FailureWords::digest);
    if (known == words_.end()) {
        if (words_.size() == max_failure_words) return;
        known = words_.insert(known, {digest, where, false, device.value_or(no_device), false});
    }
    if (known->host != where && !known->elsewhere) {
        known->elsewhere = true;
        forget_words(hosts_, digest);
    }
    const PlaceRecord::Failure noted{id, digest, outcome == AttemptOutcome::unstarted, device.value_or(no_device)};
    if (host && !known->elsewhere) add_failure(hosts_[*host].failed, noted);
    if (!device) return;
    if (known->device == no_device) known->device = *device;
    if (known->device != *device && !known->on_others) {
        known->on_others = true;
        forget_words(devices_, digest);
    }
    if (!known->on_others) add_failure(devices_[*device].failed, noted);
}

void Blame::retired_device(std::uint32_t device, const Placement& placement) {
    devices_[device].failed.clear();
    std::erase_if(hosts_[placement.devices()[device].host].failed,
                  [&](const PlaceRecord::Failure& failure) { return failure.device == device; });
}

void Blame::note_failure(Trial& t, Iteration at, const std::string& message) {
    ++t.failures;
    t.failed_at = at;
    t.failure_digest = base::digest_of(message);
}

void Blame::closed(TrialId id, const Trial& t, TrialPhase phase, Reason reason, bool any_report) {
    const bool failed = phase == TrialPhase::failed && reason != Reason::cancelled; // which is the user's doing
    if (failed && !t.reported && !any_report) ++early_failures_;
    if (failed && t.unheard) in_a_row_.push_back(id);
    suspects_.erase(id);
}

void Blame::reopened(TrialId id, Trial& t) {
    forget_row();
    begin_silence(t);
    t.losses = 0;
    forgive(t);
    clear_of_suspicion(id, t);
}

void Blame::forgive(Trial& t) {
    t.failures = 0;
    t.failed_at = 0;
    t.failure_digest = 0;
}

void Blame::job_died(Trials& trials) {
    std::vector<TrialId> ran;
    bool tried = false; // a suspect was being tried; only cleared trials ran beside it
    for (std::uint32_t i = 0; i < trials.size(); ++i) {
        if (!trials[i].attempt.live || is_final(trials[i].phase)) continue;
        ran.emplace_back(i);
        tried = tried || suspects_.contains(TrialId{i});
    }
    for (const TrialId id : ran) {
        Trial& t = trials.at(id);
        if (tried && !suspects_.contains(id)) continue;
        ++t.deaths;
        if (tried) ++t.deaths_alone;
        t.died_at = std::max(t.died_at, t.attempt.iteration);
        if (t.deaths >= deaths_to_suspect) suspects_.insert(id);
    }
    if (tried) ++deaths_alone_;
}

void Blame::clear_of_suspicion(TrialId id, Trial& t) {
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
