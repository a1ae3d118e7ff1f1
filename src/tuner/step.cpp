// SPDX-License-Identifier: Apache-2.0
// A round: takes the next record until there is none.

#include <algorithm>

#include "ranktune/base/digest.hpp"
#include "tuner/apply.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::tuner {

void Tuner::create(const std::string& uuid, const std::string& resolved_spec, const std::string& version, Output& out,
                   const std::string& simulation) {
    Round round{core_.state.now};
    const std::uint64_t digest = base::digest_of(resolved_spec);
    commit(out.records.emplace_back(study::StudyCreated{uuid, resolved_spec, digest, version, simulation}), round, out);
    run(round, out);
}

void Tuner::warm_start(study::WarmStarted earlier, Output& out) {
    Round round{core_.state.now};
    commit(out.records.emplace_back(std::move(earlier)), round, out);
    run(round, out);
}

void Tuner::change(const std::string& resolved_spec, const std::string& version, StudyTime now, Output& out) {
    Round round{now};
    commit(out.records.emplace_back(study::StudyChanged{now, resolved_spec, base::digest_of(resolved_spec), version}),
           round, out);
    run(round, out);
}

void Tuner::reopen(TrialId id, bool from_scratch, StudyTime now, Output& out) {
    Round round{now};
    study::Record record = study::TrialReopened{id, now, from_scratch};
    if (const auto task = study::side_task_of(id)) record = reopened_side(core_, *task, now);
    commit(out.records.emplace_back(std::move(record)), round, out);
    run(round, out);
}

void Tuner::step(const study::Event& event, Output& out) {
    Round round(std::max(event.now, core_.state.now));
    round.todo.swap(spare_);
    std::visit(
        [&](const auto& body) {
            using Body = std::decay_t<decltype(body)>;
            constexpr bool frees_ranks =
                std::is_same_v<Body, study::Began> || std::is_same_v<Body, study::AttemptOver> ||
                std::is_same_v<Body, study::RankGone> || std::is_same_v<Body, study::SteerAsked>;
            constexpr bool ends = std::is_same_v<Body, study::TimerFired> ||
                                  std::is_same_v<Body, study::StopRequested> ||
                                  std::is_same_v<Body, study::Prepared>; // what it held up may have ended the study
            if constexpr (frees_ranks || ends) round.push(End{});
            if constexpr (frees_ranks) round.push(Fill{});
        },
        event.body);
    if (const auto* report = std::get_if<study::ReportArrived>(&event.body); report != nullptr && report->ends)
        if (is_current(core_, report->trial, report->attempt, report->incarnation)) sent_to(report->trial).over = true;
    take_in(event, round, out);
    run(round, out);
    if (round.stale) ++out.stale;
    round.todo.swap(spare_); // empty
}

/// The event's own records. The definition of a metric and the death of a job come before another one.
void Tuner::take_in(const study::Event& event, Round& round, Output& out) {
    bool another = true;
    while (another) {
        Next record = std::visit([&](const auto& body) { return take(core_, body, round); }, event.body);
        if (!record) return;
        another =
            std::holds_alternative<study::MetricDefined>(*record) || std::holds_alternative<study::JobDied>(*record);
        commit(out.records.emplace_back(*std::move(record)), round, out); // large: moved once, to where it stays
    }
}

void Tuner::run(Round& round, Output& out) {
    while (!round.todo.empty()) {
        if (Next record = std::visit([&](auto& task) { return decide(core_, task, round); }, round.todo.back()))
            commit(out.records.emplace_back(*std::move(record)), round, out);
        else
            round.todo.pop_back();
    }
}

Sent& Tuner::sent_to(TrialId id) {
    const Attempt& attempt = core_.state.trials[id].attempt;
    const std::size_t leader = attempt.ranks.front().value();
    if (leader >= sent_.size()) sent_.resize(leader + 1);
    SentTo& to = sent_[leader];
    if (to.trial != id || to.attempt != attempt.id) to = {id, attempt.id, {}};
    return to.sent;
}

void Tuner::tell(TrialId id, Output& out) {
    if (core_.state.trials[id].attempt.live) tuner::tell(core_, id, sent_to(id), out.commands);
}

/// Sends what follows from a record.
void Tuner::send(const study::Record& record, Output& out) {
    if (std::holds_alternative<study::DrainBegan>(record)) {
        tell_all(core_, [&](TrialId id) { tell(id, out); });
        if (stops_early(core_.state))
            for (const TrialId unit : core_.state.side.running()) interrupt_side(core_, unit, out.commands);
        return;
    }
    if (const auto* started = std::get_if<study::SideStarted>(&record))
        return tell_side(core_, unit_of(started->task), out.commands);
    if (const auto* lost = std::get_if<study::RankLost>(&record)) {
        if (const auto& holder = core_.state.placement.worker(lost->rank).lost_from) tell(*holder, out);
    } else if (const auto* steered = std::get_if<study::Steered>(&record)) {
        if (steered->spec.empty()) tell(steered->ask.trial, out);
    } else if (const auto* released = std::get_if<study::CheckpointReleased>(&record)) {
        if (!released->stays) out.commands.emplace_back(study::DeleteCheckpoint{released->path, released->shards});
    } else if (const auto* opened = std::get_if<study::TicketOpened>(&record)) {
        out.commands.emplace_back(study::Prepare{opened->ticket});
    } else if (std::holds_alternative<study::IncarnationBegan>(record) ||
               std::holds_alternative<study::StudyEnded>(record)) {
        for (study::Command& command : pending_commands()) out.commands.push_back(std::move(command));
    } else {
        std::visit(
            [&](const auto& r) {
                if constexpr (requires { r.trial; }) tell(r.trial, out);
            },
            record);
    }
}

void Tuner::commit(const study::Record& record, Round& round, Output& out) {
    tuner::apply(core_, record);
    send(record, out);
    add_tasks(core_, record, round);
}

} // namespace ranktune::tuner
