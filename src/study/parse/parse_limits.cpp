// SPDX-License-Identifier: Apache-2.0
// [failure], [journal], [run], [slurm] and [hooks]: tolerated failures, journal syncs, time-outs of ranks, the end of
// the job, and commands to run.
#include "study/parse/parse_tables.hpp"

namespace ranktune::study {
namespace {

/// Three heartbeats, which ranks send each second (HeadOptions::heartbeat_interval): with fewer, a rank that is
/// slightly late would count as dead.
constexpr base::Duration shortest_heartbeat_timeout = std::chrono::seconds(3);
/// Hundreds of studies must not keep Slurm's controller busy.
constexpr base::Duration shortest_poll_interval = std::chrono::seconds(10);

} // namespace

void parse_limits(ParseContext& context) {
    TableReader failure = context.reader("failure");
    FailureSpec& limits = context.spec.failure;
    limits.tolerate = failure.number("tolerate", 0.0, 1.0).value_or(limits.tolerate);
    limits.max_failures =
        static_cast<std::uint32_t>(failure.integer("max_failures", 0, 1'000'000).value_or(limits.max_failures));
    limits.max_losses =
        static_cast<std::uint32_t>(failure.integer("max_losses", 1, 1'000'000).value_or(limits.max_losses));
    if (const auto in_a_row = failure.integer("in_a_row", 2, 1'000'000))
        limits.in_a_row = static_cast<std::uint32_t>(*in_a_row);
    limits.report_timeout = failure.duration("report_timeout");
    limits.collective_timeout = failure.duration("collective_timeout").value_or(limits.collective_timeout);
    limits.forming_timeout = failure.duration("forming_timeout").value_or(limits.forming_timeout);
    failure.finish();

    OutputSpec& output = context.spec.output;
    TableReader journal = context.reader("journal");
    output.commit_interval = journal.duration("commit_interval").value_or(output.commit_interval);
    journal.finish();

    TableReader run = context.reader("run");
    output.abort_grace = run.duration("abort_grace").value_or(output.abort_grace);
    output.heartbeat_timeout =
        run.duration("heartbeat_timeout", context.trust_trainable ? base::Duration{} : shortest_heartbeat_timeout,
                     "ranks give a sign of life each second, and one that is late by a moment is not dead")
            .value_or(output.heartbeat_timeout);
    if (const auto spares = run.integer("spares", 0, 1'000'000)) output.spares = static_cast<std::uint32_t>(*spares);
    run.finish();

    TableReader job = context.reader("slurm");
    SlurmSpec& slurm = context.spec.slurm;
    slurm.requeue = job.boolean("requeue").value_or(slurm.requeue);
    slurm.max_requeues =
        static_cast<std::uint32_t>(job.integer("max_requeues", 1, 1'000'000).value_or(slurm.max_requeues));
    slurm.lead_time = job.duration("lead_time").value_or(slurm.lead_time);
    slurm.poll_interval = job.duration("poll_interval", shortest_poll_interval,
                                       "many studies that ask more often are a load for Slurm's controller")
                              .value_or(slurm.poll_interval);
    job.finish();

    TableReader hooks = context.reader("hooks");
    HookSpec& commands = context.spec.hooks;
    commands.on_trial_end = hooks.string("on_trial_end").value_or("");
    commands.on_study_end = hooks.string("on_study_end").value_or("");
    commands.timeout = hooks.duration("timeout").value_or(commands.timeout);
    hooks.finish();
}

} // namespace ranktune::study
