// SPDX-License-Identifier: Apache-2.0
// What deaths of the job and failures on hosts say about trials and hosts. The mutators are called by apply(), live and
// in replay; what is decided, by step().

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tuner/core.hpp"

namespace ranktune::tuner {

std::uint64_t digest_of_words(const std::string& message) {
    std::string words = message;
    std::erase_if(words, [](char c) { return c >= '0' && c <= '9'; });
    return digest_of_failure(words);
}

// ---- mutators ----

void Tuner::Impl::apply_one(const study::JobDied& r) {
    state.now = std::max(state.now, r.at);
    for (const auto& [note, retry] : r.notes) {
        TrialState& t = trial(note.trial);
        if (t.attempt != note.attempt) impossible("a crash note is about another attempt");
        ++t.failures;
        t.failed_at = last_report(note.trial);
        t.failure = digest_of_failure(note.message);
        t.message = note.message;
    }
    // Reports that were on their way went with the job: how far a trial that is closed now had got depends on the time.
    if (spec.deterministic && std::any_of(r.notes.begin(), r.notes.end(), [](const auto& n) { return !n.retry; }))
        mark_nondeterministic();
    if (!r.notes.empty()) return; // it is known who it was
    std::vector<TrialId> ran;
    bool tried = false; // a suspect was being tried: the others ran beside it because they are above suspicion
    for (std::uint32_t i = 0; i < state.trials.size(); ++i) {
        const TrialId id{i};
        const TrialPhase phase = state.trials[i].phase;
        if (phase != TrialPhase::running && phase != TrialPhase::ending) continue;
        ran.push_back(id);
        tried = tried || suspects.contains(id);
    }
    for (const TrialId id : ran) {
        TrialState& t = trial(id);
        if (tried && !suspects.contains(id)) continue;
        ++t.deaths;
        if (tried) ++t.deaths_alone;
        t.died_at = std::max(t.died_at, t.attempt_iteration);
        if (t.deaths >= deaths_to_suspect) suspects.insert(id);
    }
    if (tried) ++state.deaths_alone;
}

void Tuner::Impl::apply_one(const study::HostRetired& r) {
    state.now = std::max(state.now, r.at);
    const auto host =
        std::find_if(state.hosts.begin(), state.hosts.end(), [&](const HostState& h) { return h.name == r.host; });
    if (host == state.hosts.end() || host->retired) impossible("host " + r.host + " is taken out of service");
    host->retired = true;
    host->failed.clear();
    const auto position = static_cast<std::uint32_t>(host - state.hosts.begin());
    for (const WorkerState& worker : state.workers)
        if (worker.host == position && worker.alive) ledger.lose(worker.info.rank, !worker.trial.has_value());
    for (const TrialId id : r.trials) {
        TrialState& t = trial(id);
        t.failures = 0;
        t.failed_at = 0;
        t.failure = 0;
    }
}

void Tuner::Impl::clear_of_suspicion(TrialId id) {
    TrialState& t = trial(id);
    t.deaths = t.deaths_alone = 0;
    t.died_at = 0;
    suspects.erase(id);
}

bool Tuner::Impl::serves(const WorkerState& worker) const { return worker.alive && !state.hosts[worker.host].retired; }

/// Which host a failure speaks against is only clear when the trial ran on one.
std::optional<std::uint32_t> Tuner::Impl::only_host_of(TrialId id) const {
    const TrialState& t = state.trials[id.value()];
    const auto host_of = [&](Rank rank) { return state.workers[rank.value() - 1].host; };
    const std::uint32_t host = host_of(t.ranks.front());
    const bool alone = std::all_of(t.ranks.begin(), t.ranks.end(), [&](Rank rank) { return host_of(rank) == host; });
    return alone ? std::optional(host) : std::nullopt;
}

void Tuner::Impl::note_on_hosts(TrialId id, AttemptOutcome outcome, const std::string& message) {
    if (speaks_against_host(outcome)) {
        if (const auto host = only_host_of(id)) note_failure(*host, id, outcome, message);
    } else if (outcome == AttemptOutcome::paused || outcome == AttemptOutcome::stopped ||
               outcome == AttemptOutcome::finished) {
        for (const Rank rank : trial(id).ranks) state.hosts[state.workers[rank.value() - 1].host].failed.clear();
    }
}

/// Configurations that cannot work fail on every host in the same words; a bad host has words of its own.
/// (A trial that cannot be set up again and again says no more than different ones.)
void Tuner::Impl::note_failure(std::uint32_t host, TrialId id, AttemptOutcome outcome, const std::string& message) {
    const std::uint64_t digest = digest_of_words(message);
    auto known = std::find_if(state.words.begin(), state.words.end(),
                              [&](const FailureWords& words) { return words.digest == digest; });
    if (known == state.words.end()) {
        if (state.words.size() == max_failure_words) return;
        known = state.words.insert(known, {digest, host, false});
    }
    if (known->host != host && !known->elsewhere) {
        known->elsewhere = true;
        for (HostState& each : state.hosts)
            std::erase_if(each.failed, [&](const HostState::Failure& failure) { return failure.words == digest; });
    }
    if (known->elsewhere) return;
    auto& failed = state.hosts[host].failed;
    const bool unstarted = outcome == AttemptOutcome::unstarted;
    const auto same = [&](const HostState::Failure& failure) { return failure.trial == id && !failure.unstarted; };
    if (unstarted || std::none_of(failed.begin(), failed.end(), same)) failed.push_back({id, digest, unstarted});
}

// ---- decisions ----

/// Records the death, and answers with the trials that are not tried again.
std::vector<TrialId> Tuner::Impl::job_died(const study::JobDeath& death, StudyTime now, Output& out) {
    std::vector<TrialId> convicted;
    study::JobDied record{now, {}};
    for (const auto& note : death.notes) {
        if (!is_current(note.trial, note.attempt, state.incarnation)) continue;
        const auto same = [&](const study::JobDied::Note& entry) { return entry.note.trial == note.trial; };
        if (std::any_of(record.notes.begin(), record.notes.end(), same)) continue; // two ranks of one trial
        // (One that has left its slot is judged already.)
        record.notes.push_back({note, trial(note.trial).winding || may_retry(note.trial, note.message)});
        if (!record.notes.back().retry) convicted.push_back(note.trial);
    }
    // Whoever left word had been given up by the head before the job died: dealt with, and nobody else is suspected.
    if (record.notes.empty() && !death.notes.empty()) return convicted;
    commit(std::move(record), out);
    for (const TrialId id : suspects)
        if (trial(id).deaths_alone >= deaths_to_convict) convicted.push_back(id);
    return convicted;
}

/// Ranks in service on other hosts.
std::uint32_t Tuner::Impl::ranks_beside(std::uint32_t host) const {
    return static_cast<std::uint32_t>(
        std::count_if(state.workers.begin(), state.workers.end(),
                      [&](const WorkerState& worker) { return worker.host != host && serves(worker); }));
}

/// A host on which one trial after the other fails, while trials get on elsewhere, is at fault and not the trials.
/// (Where ranktune itself fails, no trial has to get on elsewhere first: no configuration can be the cause.)
void Tuner::Impl::retire_bad_host(TrialId id, StudyTime now, Output& out) {
    const auto position = only_host_of(id);
    if (!position || state.draining) return;
    const HostState& host = state.hosts[*position];
    if (host.retired || host.failed.size() < failures_to_retire) return;
    const auto well = [&](const WorkerState& worker) {
        return worker.host != *position && serves(worker) && state.hosts[worker.host].well;
    };
    const auto unstarted = std::count_if(host.failed.begin(), host.failed.end(),
                                         [](const HostState::Failure& failure) { return failure.unstarted; });
    if (static_cast<std::size_t>(unstarted) < failures_to_retire &&
        std::none_of(state.workers.begin(), state.workers.end(), well))
        return;
    if (ranks_beside(*position) < spec.max_ranks_per_trial()) return;
    std::vector<TrialId> forgiven;
    for (const auto& failure : host.failed)
        if (std::find(forgiven.begin(), forgiven.end(), failure.trial) == forgiven.end())
            forgiven.push_back(failure.trial);
    commit(study::HostRetired{host.name, now, forgiven}, out);
    if (spec.deterministic) return; // what was admitted stays, wherever it ran
    for (const TrialId one : forgiven)
        if (trial(one).phase == TrialPhase::failed) reopen(one, false, now, out);
}

/// An attempt could not be set up, and waits again. As long as one host alone says so, and there are others for its
/// trials, it may be that host; otherwise the next trial would meet the same.
void Tuner::Impl::judge_set_up(TrialId id, const std::string& message, StudyTime now, Output& out) {
    retire_bad_host(id, now, out);
    if (state.draining) return;
    const auto position = only_host_of(id);
    const auto noted = [&](const HostState::Failure& failure) { return failure.trial == id && failure.unstarted; };
    if (position) {
        const HostState& host = state.hosts[*position];
        const bool alone = std::any_of(host.failed.begin(), host.failed.end(), noted);
        if (host.retired || (alone && ranks_beside(*position) >= spec.max_ranks_per_trial())) return;
    }
    const std::string place = position ? " on " + state.hosts[*position].name : std::string();
    drain(Reason::unstarted,
          "trial #" + std::to_string(id.value()) + " could not be set up" + place + ": " +
              std::string(without_place(message)) +
              ". No trial counts as failed for this: mend it, and the same command goes on",
          now, out);
}

} // namespace ranktune::tuner
