// SPDX-License-Identifier: Apache-2.0
#include "tuner/retell.hpp"

#include <string>
#include <utility>
#include <vector>

#include "tuner/rules/limits.hpp"

namespace ranktune::tuner {
namespace {

/// New metrics are defined before the report that brought them.
Retold report_behind(std::span<const study::Record> records, const State& state) {
    std::vector<std::string> names = state.metrics;
    std::size_t at = 0;
    for (; at < records.size(); ++at) {
        const auto* metric = std::get_if<study::MetricDefined>(&records[at]);
        if (metric == nullptr) break;
        names.push_back(metric->name);
    }
    if (at == records.size()) return {{}, true};
    const auto retold = [&](const auto& report) -> Retold {
        study::ReportArrived body{report.trial,     report.attempt, state.incarnation,
                                  report.iteration, report.seconds, {}};
        for (const auto& metric : report.metrics) {
            if (metric.id.value() >= names.size()) return {};
            body.metrics.push_back({names[metric.id.value()], metric.value});
        }
        return {study::Event{report.at, std::move(body)}};
    };
    if (const auto* report = std::get_if<study::Reported>(&records[at])) return retold(*report);
    if (const auto* held = std::get_if<study::ReportHeld>(&records[at])) return retold(*held);
    return {};
}

/// The death of a job and the beginning of the next incarnation are one event.
Retold beginning_behind(const study::JobDied& death, std::span<const study::Record> records) {
    if (records.size() == 1) return {{}, true};
    const auto* began = std::get_if<study::IncarnationBegan>(&records[1]);
    if (began == nullptr) return {};
    study::Began body{began->incarnation, began->workers, began->wall_time, study::JobDeath{}};
    for (const auto& entry : death.notes) body.death->notes.push_back(entry.note);
    return {study::Event{death.at, std::move(body)}};
}

study::EventBody event_behind(const study::DrainBegan& r) {
    if (is_limit(r.reason) || r.reason == Reason::deadline) return study::TimerFired{};
    return study::StopRequested{r.why, r.reason, r.by};
}

} // namespace

Retold retell(std::span<const study::Record> records, const State& state) {
    const study::Record& first = records.front();
    const auto told = [](StudyTime at, study::EventBody body) { return Retold{study::Event{at, std::move(body)}}; };
    if (const auto* r = std::get_if<study::IncarnationBegan>(&first))
        return told(r->at, study::Began{r->incarnation, r->workers, r->wall_time, {}});
    if (const auto* r = std::get_if<study::JobDied>(&first)) return beginning_behind(*r, records);
    if (std::holds_alternative<study::MetricDefined>(first) || std::holds_alternative<study::Reported>(first) ||
        std::holds_alternative<study::ReportHeld>(first))
        return report_behind(records, state);
    if (const auto* r = std::get_if<study::CheckpointCommitted>(&first))
        return told(r->at, study::CheckpointSaved{r->trial, r->attempt, state.incarnation, r->checkpoint});
    if (const auto* r = std::get_if<study::AttemptEnded>(&first))
        return told(r->at, study::AttemptOver{r->trial, r->attempt, state.incarnation, r->outcome, r->failure});
    if (const auto* r = std::get_if<study::SideReported>(&first))
        return told(r->at, study::ReportArrived{unit_of(r->task), r->attempt, state.incarnation, 1, 0.0, r->metrics});
    if (const auto* r = std::get_if<study::SideEnded>(&first))
        return told(r->at, study::AttemptOver{unit_of(r->task), r->attempt, state.incarnation, r->outcome, r->failure});
    if (const auto* r = std::get_if<study::RankLost>(&first))
        return told(r->at, study::RankGone{r->rank, r->why, r->guilty});
    if (const auto* r = std::get_if<study::DrainBegan>(&first)) return told(r->at, event_behind(*r));
    if (const auto* r = std::get_if<study::TicketPrepared>(&first))
        return told(r->at, study::Prepared{r->ticket, r->configuration, r->why, r->basis});
    if (const auto* r = std::get_if<study::Steered>(&first)) return told(r->at, study::SteerAsked{r->who, r->ask});
    if (const auto* r = std::get_if<study::StudyEnded>(&first)) return told(r->at, study::TimerFired{});
    if (const auto* r = std::get_if<study::SideStarted>(&first)) return told(r->at, study::TimerFired{});
    if (const auto* r = std::get_if<study::DeadlineSet>(&first)) return told(r->at, study::DeadlineKnown{r->deadline});
    return {};
}

} // namespace ranktune::tuner
