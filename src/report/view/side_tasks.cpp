// SPDX-License-Identifier: Apache-2.0
#include "report/view/side_tasks.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "ranktune/base/text.hpp"
#include "ranktune/space/value.hpp"
#include "report/screens/text.hpp"

namespace ranktune::report {
namespace {

using study::SideTask;
using tuner::SideWork;
using SidePhase = SideWork::Phase;

const SideWork* work_after(const tuner::State& state, study::TrialId trial) {
    return state.side.find({SideTask::Kind::after_trial, trial});
}

/// "done after 12 s", "running for 12 s", "waiting", "failed after 12 s".
std::string state_of(const SideWork& work, study::StudyTime now) {
    const std::string phase(tuner::name(work.phase));
    const auto lasted = [](study::StudyTime from, study::StudyTime to) {
        return short_duration(base::to_seconds(to - from));
    };
    if (work.phase == SidePhase::running) return phase + " for " + lasted(work.started, now);
    if (work.phase == SidePhase::waiting || work.attempt == study::AttemptId{}) return phase;
    return phase + " after " + lasted(work.started, work.ended);
}

std::string failure_of(const SideWork& work) {
    return describe(work.task) + ": " + printable(first_line(study::describe(work.failure)));
}

} // namespace

std::string side_tasks_text(const tuner::State& state, double elapsed_s) {
    const auto now = std::max(
        state.now,
        study::StudyTime{std::chrono::duration_cast<base::Duration>(std::chrono::duration<double>(elapsed_s))});
    std::array<std::uint64_t, 4> of_trials{};
    std::vector<std::string> parts;
    const auto add = [&](SideTask::Kind kind) {
        if (const SideWork* work = state.side.find({kind, {}}))
            parts.push_back(std::string(study::name(kind)) + ": " + state_of(*work, now));
    };
    add(SideTask::Kind::before);
    for (const auto& [unit, work] : state.side.all())
        if (work.task.kind == SideTask::Kind::after_trial) ++of_trials[static_cast<std::size_t>(work.phase)];
    std::vector<std::string> counts;
    for (const SidePhase phase : {SidePhase::done, SidePhase::failed, SidePhase::running, SidePhase::waiting})
        if (const auto count = of_trials[static_cast<std::size_t>(phase)]; count > 0)
            counts.push_back(fmt::format("{} {}", count, tuner::name(phase)));
    if (!counts.empty()) parts.push_back("after_trial: " + base::join(counts));
    add(SideTask::Kind::after);
    return base::join(parts, "; ");
}

std::string failed_side_tasks_text(const tuner::State& state) {
    const SideWork* first = nullptr;
    std::uint64_t count = 0;
    for (const auto& [unit, work] : state.side.all()) {
        if (work.phase != SidePhase::failed) continue;
        if (count++ == 0) first = &work;
    }
    if (first == nullptr) return {};
    return failure_of(*first) + (count == 1 ? "" : fmt::format("; and {} more", count - 1));
}

std::string after_trial_text(const tuner::State& state, study::TrialId trial) {
    const SideWork* work = work_after(state, trial);
    if (work == nullptr) return {};
    if (work->phase == SidePhase::failed) return "failed: " + printable(first_line(study::describe(work->failure)));
    std::vector<std::string> values;
    for (const study::NamedMetric& metric : work->metrics)
        values.push_back(metric.name + " " + space::number_text(metric.value));
    if (work->phase != SidePhase::done || values.empty()) return state_of(*work, state.now);
    return base::join(values);
}

std::vector<std::string> side_metrics(const tuner::State& state) {
    std::set<std::string> names;
    for (const auto& [unit, work] : state.side.all())
        if (work.task.kind == SideTask::Kind::after_trial)
            for (const study::NamedMetric& metric : work.metrics) names.insert(metric.name);
    return {names.begin(), names.end()};
}

std::optional<double> side_metric(const tuner::State& state, study::TrialId trial, const std::string& metric) {
    const SideWork* work = work_after(state, trial);
    if (work == nullptr) return std::nullopt;
    const auto found = std::ranges::find(work->metrics, metric, &study::NamedMetric::name);
    return found == work->metrics.end() ? std::nullopt : std::optional(found->value);
}

} // namespace ranktune::report
