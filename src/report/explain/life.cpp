// SPDX-License-Identifier: Apache-2.0
#include "report/explain/life.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "report/explain/origin_text.hpp"
#include "report/screens/text.hpp"
#include "storage/journal/journal.hpp"

#include <fmt/format.h>

namespace ranktune::report {
namespace {

std::string with_reason(const std::string& text, study::Reason reason, double a, double b) {
    const std::string why = study::describe(reason, a, b);
    return why.empty() ? text : text + ": " + why;
}

} // namespace

TrialLife::TrialLife(study::TrialId trial, std::string metric) : trial_(trial), metric_name_(std::move(metric)) {}

void TrialLife::line(study::StudyTime at, const std::string& text) {
    lines_.push_back(pad_left(short_duration(base::to_seconds(at)), label_width - 2) + "  " + text);
}

void TrialLife::tell(const study::TrialStarted& start) {
    std::string text = fmt::format("attempt {} started", start.attempt.value());
    std::vector<std::string> hosts;
    for (const auto rank : start.ranks) {
        const auto here = std::ranges::find(workers_, rank, &study::RankInfo::rank);
        if (here != workers_.end() && std::ranges::find(hosts, here->host) == hosts.end()) hosts.push_back(here->host);
    }
    for (std::size_t i = 0; i < hosts.size(); ++i) text += (i == 0 ? " on " : ", ") + hosts[i];
    text += " (" + ranks_text(start.ranks);
    for (const study::Role& role : start.roles) text += fmt::format(", {} {}", role.size, role.name);
    text += "), ";
    if (const auto* checkpoint = std::get_if<study::CheckpointRef>(&start.from))
        text += fmt::format("from iteration {}", checkpoint->iteration);
    else if (const auto* donor = std::get_if<study::Donor>(&start.from))
        text += fmt::format("from iteration {}", donor->checkpoint.iteration) +
                (donor->trial == start.trial ? "" : fmt::format(" of #{}", donor->trial.value()));
    else
        text += "from scratch";
    line(start.at, text);
}

void TrialLife::tell(const study::Reported& report) {
    const auto& verdict = report.verdict;
    const bool decided = verdict.verb != study::Verb::go_on ||
                         (verdict.reason != study::Reason::none && verdict.reason != study::Reason::below_rung);
    if (!decided) return;
    std::string text = fmt::format("iteration {}", report.iteration);
    for (const auto& metric : report.metrics)
        if (metric.id.value() < metrics_.size() && metrics_[metric.id.value()] == metric_name_)
            text += fmt::format(": {} {}", metric_name_, metric_text(metric.value));
    const std::string verb = verdict.verb == study::Verb::go_on ? "goes on" : std::string(study::name(verdict.verb));
    line(report.at, with_reason(text + ", " + verb, verdict.reason, verdict.a, verdict.b));
}

void TrialLife::tell(const study::TrialCreated& created) {
    line(created.at, "created");
    configuration_ = created.configuration;
}

void TrialLife::tell(const study::Exploited& exploited) {
    const study::Iteration iteration = exploited.donor.checkpoint.iteration;
    std::string text = exploited.donor.trial == exploited.trial
                           ? fmt::format("goes on from iteration {}", iteration)
                           : fmt::format("takes over iteration {} of #{}", iteration, exploited.donor.trial.value());
    text += changes_text(configuration_, exploited.configuration);
    line(exploited.at, text);
    before_.push_back(std::exchange(configuration_, exploited.configuration));
}

void TrialLife::tell(const study::ExploitUndone& undone) {
    const char* why = undone.why == study::StateLoss::anew ? "a user has it begin from scratch"
                      : undone.why == study::StateLoss::evicted
                          ? "checkpoint.max_bytes leaves no state since its takeover"
                          : "the state that it took over is lost";
    line(undone.at, fmt::format("{}: it goes back to what it was before", why));
    if (undone.generation >= before_.size()) return;
    configuration_ = before_[undone.generation];
    before_.resize(undone.generation);
}

void TrialLife::tell(const study::AttemptEnded& ended) {
    std::string text = fmt::format("attempt {} {}", ended.attempt.value(), study::name(ended.outcome));
    if (!ended.failure.empty()) text += ": " + first_line(study::describe(ended.failure));
    if (ended.retry) text += "; tried again";
    line(ended.at, text);
}

void TrialLife::add(const study::Record& record) {
    if (const auto* metric = std::get_if<study::MetricDefined>(&record)) {
        metrics_.push_back(metric->name);
    } else if (const auto* began = std::get_if<study::IncarnationBegan>(&record)) {
        workers_ = began->workers;
    }
    const auto* after = std::get_if<study::SideEnded>(&record);
    if (after != nullptr && after->task == study::SideTask{study::SideTask::Kind::after_trial, trial_}) {
        std::string text = fmt::format("after the trial: {}", study::name(after->outcome));
        if (!after->failure.empty()) text += ": " + first_line(study::describe(after->failure));
        const bool reopened = after->retry && after->failure.empty() && after->outcome == study::AttemptOutcome::failed;
        line(after->at, reopened ? "after the trial: tried again" : text + (after->retry ? "; tried again" : ""));
    }
    std::visit(
        [this](const auto& r) {
            using R = std::decay_t<decltype(r)>;
            if constexpr (requires { r.trial.value(); }) {
                if (r.trial != trial_) return;
                if constexpr (requires { tell(r); }) {
                    tell(r);
                } else if constexpr (std::is_same_v<R, study::CheckpointCommitted>) {
                    line(r.at,
                         fmt::format("checkpoint of iteration {}: {}", r.checkpoint.iteration, r.checkpoint.path));
                } else if constexpr (std::is_same_v<R, study::TrialPromoted>) {
                    line(r.at, study::describe(r.reason, static_cast<double>(r.from), static_cast<double>(r.target)));
                } else if constexpr (std::is_same_v<R, study::TrialClosed>) {
                    line(r.at, with_reason(std::string(study::name(r.phase)), r.reason, r.a, r.b));
                } else if constexpr (std::is_same_v<R, study::TrialReopened>) {
                    line(r.at, r.from_scratch ? "tried again from scratch" : "tried again from its last checkpoint");
                }
            }
        },
        record);
}

std::vector<std::string> life_of(storage::FileSystem& files, const std::string& directory, study::TrialId trial,
                                 const std::string& metric) {
    TrialLife life(trial, metric);
    storage::read_journal(files, directory, [&](study::Record&& record) { life.add(record); });
    return life.lines();
}

} // namespace ranktune::report
