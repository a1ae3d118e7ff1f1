// SPDX-License-Identifier: Apache-2.0
#include "tuner/values/side_tasks.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "tuner/rules/causes.hpp"

namespace ranktune::tuner {
namespace {

using SideKind = SideTask::Kind;
using SidePhase = SideWork::Phase;

constexpr SideTask first_task{SideKind::before, {}};
constexpr SideTask last_task{SideKind::after, {}};

} // namespace

std::string_view name(SideWork::Phase phase) {
    constexpr std::string_view words[] = {"waiting", "running", "done", "failed"};
    return words[static_cast<std::size_t>(phase)];
}

const SideWork* SideTasks::find(const SideTask& task) const {
    const auto found = table_.find(unit_of(task));
    return found == table_.end() ? nullptr : &found->second;
}

bool SideTasks::is_prepared() const {
    const SideWork* work = find(first_task);
    return work == nullptr || work->phase == SidePhase::done;
}

bool SideTasks::lacks(TrialId trial) const {
    if (table_.empty()) return false;
    const SideWork* work = find({SideKind::after_trial, trial});
    return work != nullptr && work->phase != SidePhase::done;
}

const SideWork* SideTasks::current(TrialId unit, AttemptId attempt) const {
    const auto found = table_.find(unit);
    if (found == table_.end() || found->second.phase != SidePhase::running || found->second.attempt != attempt)
        return nullptr;
    return &found->second;
}

SideWork& SideTasks::at(const SideTask& task) {
    const auto found = table_.find(unit_of(task));
    if (found == table_.end()) impossible("the task " + describe(task) + " was never due");
    return found->second;
}

void SideTasks::set_phase(SideWork& work, SidePhase phase) {
    const TrialId unit = unit_of(work.task);
    if (work.phase == SidePhase::waiting) waiting_.erase(unit);
    if (work.phase == SidePhase::running) running_.erase(unit);
    work.phase = phase;
    if (phase == SidePhase::waiting) waiting_.insert(unit);
    if (phase == SidePhase::running) running_.insert(unit);
}

void SideTasks::add(const SideTask& task, StudyTime now) {
    const auto [at, added] = table_.try_emplace(unit_of(task));
    if (!added) return;
    at->second.task = task;
    at->second.due = now;
    waiting_.insert(at->first);
}

void SideTasks::forget(const SideTask& task) {
    waiting_.erase(unit_of(task));
    running_.erase(unit_of(task));
    table_.erase(unit_of(task));
}

void SideTasks::plan(const StudySpec& spec, bool has_trials, StudyTime now) {
    const SideWork* before = find(first_task);
    if (spec.before.command.empty() && before != nullptr && before->phase != SidePhase::done)
        forget(first_task);
    else if (!spec.before.command.empty() && !has_trials)
        add(first_task, now);
    if (spec.after.command.empty())
        forget(last_task);
    else
        add(last_task, now);
    if (!spec.after_trial.command.empty()) return;
    std::set<TrialId> left = waiting_;
    left.insert(running_.begin(), running_.end());
    for (const TrialId unit : left)
        if (const SideTask task = *side_task_of(unit); task.kind == SideKind::after_trial) forget(task);
}

void SideTasks::add_after(TrialId trial, StudyTime now) { add({SideKind::after_trial, trial}, now); }
void SideTasks::forget_after(TrialId trial) {
    const SideTask task{SideKind::after_trial, trial};
    if (waiting_.contains(unit_of(task))) forget(task);
}

void SideTasks::study_goes_on() {
    const auto found = table_.find(unit_of(last_task));
    if (found == table_.end()) return;
    if (found->second.phase == SidePhase::running) {
        found->second.again = true;
        return;
    }
    found->second.failures = found->second.losses = 0;
    set_phase(found->second, SidePhase::waiting);
}

void SideTasks::job_died() {
    for (const TrialId unit : running_) ++table_.at(unit).losses;
}

void SideTasks::begin_incarnation(std::uint32_t max_losses) {
    for (auto& [unit, work] : table_) {
        const bool of_trial = work.task.kind == SideKind::after_trial;
        const bool again = work.phase == SidePhase::failed && !of_trial;
        if (again) work.failures = work.losses = 0;
        if (!again && work.phase != SidePhase::running) continue;
        const bool given_up = of_trial && work.losses > max_losses;
        if (given_up) work.failure.message = "the job died " + std::to_string(work.losses) + " times while it ran";
        work.again = false; // it waits for those trials
        set_phase(work, given_up ? SidePhase::failed : SidePhase::waiting);
    }
}

void SideTasks::begin(const SideStarted& started) {
    SideWork& work = at(started.task);
    if (work.phase != SidePhase::waiting) impossible("the task " + describe(started.task) + " is started twice");
    if (started.attempt != work.attempt.next()) impossible("attempts of a task are not 1, 2, 3, ...");
    work.attempt = started.attempt;
    work.rank = started.rank;
    work.checkpoint = started.checkpoint;
    work.started = started.at;
    work.metrics.clear();
    set_phase(work, SidePhase::running);
}

void SideTasks::report(const SideReported& reported) {
    SideWork& work = at(reported.task);
    for (const NamedMetric& metric : reported.metrics) {
        const auto known = std::ranges::find(work.metrics, metric.name, &NamedMetric::name);
        if (known == work.metrics.end())
            work.metrics.push_back(metric);
        else
            known->value = metric.value;
    }
}

void SideTasks::end(const SideEnded& ended, bool charged) {
    SideWork& work = at(ended.task);
    if (work.phase == SidePhase::done || work.phase == SidePhase::failed)
        impossible("the task " + describe(ended.task) + " ends twice");
    const bool well = ended.outcome == AttemptOutcome::finished;
    if (charged && !well) ++(ended.outcome == AttemptOutcome::lost ? work.losses : work.failures);
    work.failure = ended.failure;
    work.ended = ended.at;
    if (std::exchange(work.again, false)) {
        work.failures = work.losses = 0;
        return set_phase(work, SidePhase::waiting);
    }
    set_phase(work, ended.retry ? SidePhase::waiting : well ? SidePhase::done : SidePhase::failed);
}

void SideTasks::reopen(const SideTask& task) {
    SideWork& work = at(task);
    work.failures = work.losses = 0;
    set_phase(work, SidePhase::waiting);
}

void SideTasks::recount() {
    waiting_.clear();
    running_.clear();
    for (const auto& [unit, work] : table_) {
        if (work.phase == SidePhase::waiting) waiting_.insert(waiting_.end(), unit);
        if (work.phase == SidePhase::running) running_.insert(running_.end(), unit);
    }
}

void SideTasks::check_invariants() const {
    SideTasks again = *this;
    again.recount();
    if (waiting_ != again.waiting_ || running_ != again.running_)
        throw std::logic_error("the lists of side tasks that wait or run are off");
}

} // namespace ranktune::tuner
