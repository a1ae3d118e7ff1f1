// SPDX-License-Identifier: Apache-2.0
#include "slurm/allocation.hpp"

#include "base/number_in.hpp"
#include "slurm/lists.hpp"

namespace ranktune::slurm {

namespace {

template <class Number>
std::optional<Number> number(const base::Variables& variables, std::string_view name) {
    const auto text = base::value_of(variables, name);
    return text ? base::number_in<Number>(*text) : std::nullopt;
}

/// The value of the first variable that is set.
std::string_view either(const base::Variables& variables, std::string_view name, std::string_view otherwise) {
    const auto text = base::value_of(variables, name);
    return text ? *text : base::value_of(variables, otherwise).value_or("");
}

} // namespace

std::optional<Allocation> allocation(const base::Variables& variables) {
    const auto job = either(variables, "SLURM_JOB_ID", "SLURM_JOBID");
    if (job.empty()) return std::nullopt;
    Allocation found;
    found.job = found.name = job;
    const auto array = base::value_of(variables, "SLURM_ARRAY_JOB_ID");
    const auto task = base::value_of(variables, "SLURM_ARRAY_TASK_ID");
    if (array && task) found.name = std::string(*array) + "_" + std::string(*task);
    if (const auto step = base::value_of(variables, "SLURM_STEP_ID")) found.step = *step;
    found.partition = base::value_of(variables, "SLURM_JOB_PARTITION").value_or("");
    found.restarts = number<std::uint32_t>(variables, "SLURM_RESTART_COUNT").value_or(0);
    found.nodes = expand_hostlist(either(variables, "SLURM_JOB_NODELIST", "SLURM_NODELIST"));
    found.tasks_by_node = expand_counts(either(variables, "SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"));
    found.cpus_per_task = number<std::uint32_t>(variables, "SLURM_CPUS_PER_TASK");
    found.end = number<std::int64_t>(variables, "SLURM_JOB_END_TIME");
    return found;
}

std::string switches_above(const base::Variables& variables, std::string_view node) {
    const auto address = base::value_of(variables, "SLURM_TOPOLOGY_ADDR");
    const auto pattern = base::value_of(variables, "SLURM_TOPOLOGY_ADDR_PATTERN");
    if (!address || !pattern || !pattern->ends_with("switch.node")) return {};
    const std::string end = "." + std::string(node);
    if (!address->ends_with(end)) return {};
    return std::string(address->substr(0, address->size() - end.size()));
}

std::optional<std::uint32_t> cpus_on_node(const base::Variables& variables) {
    const auto counts = expand_counts(base::value_of(variables, "SLURM_CPUS_ON_NODE").value_or(""));
    if (!counts || counts->size() != 1 || !base::value_of(variables, "SLURM_JOB_ID")) return std::nullopt;
    return counts->front();
}

} // namespace ranktune::slurm
