// SPDX-License-Identifier: Apache-2.0
#include "simulate/faults.hpp"

#include "ranktune/base/time.hpp"
#include "simulate/file_keys.hpp"

namespace ranktune::simulate {
namespace {

void take_duration(study::TableReader& table, const char* key, double& seconds) {
    if (const auto duration = table.duration(key)) seconds = base::to_seconds(*duration);
}

} // namespace

const std::vector<std::string>& fault_keys() {
    static const std::vector<std::string> keys = names_of(fault_key_infos());
    return keys;
}

FaultModel parse_faults(const std::string& text, const std::string& file) {
    FaultModel faults;
    read_tables(text, file, fault_keys(), [&](const TableNamed& table) {
        study::TableReader trials = table("trials");
        faults.trial_rate = trials.number("rate", 0.0, 0.999).value_or(0.0);
        trials.finish();
        study::TableReader ranks = table("ranks");
        take_duration(ranks, "mean_time_to_failure", faults.rank_mean_s);
        ranks.finish();
        study::TableReader job = table("job");
        take_duration(job, "mean_time_to_failure", faults.job_mean_s);
        take_duration(job, "walltime", faults.walltime_s);
        take_duration(job, "wait", faults.wait_s);
        if (const auto jobs = job.integer("jobs", 1, 1'000'000)) faults.jobs = static_cast<std::uint32_t>(*jobs);
        if (!faults.has_jobs())
            for (const char* key : {"wait", "jobs"})
                if (job.has(key))
                    job.complain(key,
                                 "needs job.walltime, job.mean_time_to_failure or ranks.mean_time_to_failure: "
                                 "without them there is one job");
        job.finish();
    });
    return faults;
}

} // namespace ranktune::simulate
