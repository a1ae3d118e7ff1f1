// SPDX-License-Identifier: Apache-2.0
#include "head/asktell/refusals.hpp"

#include "ranktune/schedulers/scheduler.hpp"
#include "study/outside.hpp"

namespace ranktune::head {

std::vector<std::string> refusals(const study::StudySpec& spec) {
    std::vector<std::string> why;
    if (!is_outside(spec))
        why.emplace_back(
            "trainable: only trials of builtin = \"outside\" are asked for and told; this study is run by "
            "`ranktune run`");
    const study::ResourceSpec& resources = spec.resources;
    if (resources.ranks != 1 || !resources.ranks_parameter.empty() || !resources.roles.empty() ||
        resources.cpus_per_rank != 1 || resources.gpus != study::GpuUse::granted || resources.gpu_metrics ||
        resources.bind != study::Bind::automatic)
        why.emplace_back("resources: no rank trains the trials that are asked for; leave the table out");
    // The core fills its places at once; here a place is made with the first ask that needs it.
    if (spec.max_concurrent != 0)
        why.emplace_back(
            "study.max_concurrent: the loop decides how many trials it asks for before it tells; leave it out, and "
            "what needs it");
    if (spec.output.spares != 0) why.emplace_back("run.spares: there are no ranks to keep idle; leave it out");
    if (spec.failure.report_timeout || spec.failure.iteration_timeout)
        why.emplace_back("failure: nobody waits for a loop of yours; leave report_timeout and iteration_timeout out");
    if (spec.scheduler.algorithm->make(spec)->synchronous())
        why.emplace_back("scheduler: " + spec.scheduler.algorithm->name +
                         " judges reports together, so a report would wait for others; take \"asha\" with variant = "
                         "\"stop\", or \"median\"");
    return why;
}

} // namespace ranktune::head
