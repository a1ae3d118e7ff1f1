// SPDX-License-Identifier: Apache-2.0
#include "ranktune/study/side_task.hpp"

#include <limits>

namespace ranktune::study {
namespace {

constexpr TrialId::rep first_unit = TrialId::rep{1} << 31U;
constexpr TrialId::rep unit_of_before = std::numeric_limits<TrialId::rep>::max();
constexpr TrialId::rep unit_of_after = unit_of_before - 1;

} // namespace

std::string_view name(SideTask::Kind kind) {
    if (kind == SideTask::Kind::after_trial) return "after_trial";
    return kind == SideTask::Kind::before ? "before" : "after";
}

std::string describe(const SideTask& task) {
    std::string text(name(task.kind));
    if (task.kind == SideTask::Kind::after_trial) text += " " + std::to_string(task.trial.value());
    return text;
}

TrialId unit_of(const SideTask& task) {
    if (task.kind == SideTask::Kind::after_trial) return TrialId{first_unit + task.trial.value()};
    return TrialId{task.kind == SideTask::Kind::before ? unit_of_before : unit_of_after};
}

std::optional<SideTask> side_task_of(TrialId unit) {
    if (unit.value() < first_unit) return std::nullopt;
    if (unit.value() == unit_of_before) return SideTask{SideTask::Kind::before, {}};
    if (unit.value() == unit_of_after) return SideTask{SideTask::Kind::after, {}};
    return SideTask{SideTask::Kind::after_trial, TrialId{unit.value() - first_unit}};
}

std::string unit_text(TrialId unit) {
    const auto task = side_task_of(unit);
    if (!task) return std::to_string(unit.value());
    if (task->kind == SideTask::Kind::after_trial) return std::to_string(task->trial.value()) + ".after";
    return std::string(name(task->kind));
}

} // namespace ranktune::study
