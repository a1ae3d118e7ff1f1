// SPDX-License-Identifier: Apache-2.0
// hosts: the list of hosts of a job, for the job scripts. Compute nodes need not have Slurm's programs.

#include <iostream>

#include "cli/terminal.hpp"
#include "cli/verbs/verbs.hpp"
#include "process/environment.hpp"
#include "ranktune/base/error.hpp"
#include "slurm/allocation.hpp"

namespace ranktune::cli {

int hosts() {
    const auto job = slurm::allocation(process::environment_variables());
    if (!job) throw base::UsageError("there is no Slurm job here (SLURM_JOB_ID): this is a part of the job scripts");
    if (!job->nodes || job->nodes->empty())
        throw base::UsageError("the nodes of the job are not told: SLURM_JOB_NODELIST='" +
                               process::environment_variable("SLURM_JOB_NODELIST") + "' is no list of hosts");
    const std::string workers = process::environment_variable("SLURM_NTASKS_PER_NODE");
    if (workers.empty() || workers.size() > 6 || workers.find_first_not_of("0123456789") != std::string::npos ||
        std::stoul(workers) == 0)
        throw base::UsageError("SLURM_NTASKS_PER_NODE is '" + workers +
                               "': give sbatch the workers of each node, --ntasks-per-node=4, and not --ntasks");
    std::string text = job->nodes->front() + "\n";
    for (const auto& node : *job->nodes)
        for (unsigned long task = 0; task < std::stoul(workers); ++task) text += node + "\n";
    std::cout << text << std::flush;
    return 0;
}

} // namespace ranktune::cli
