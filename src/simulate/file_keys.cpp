// SPDX-License-Identifier: Apache-2.0
#include "simulate/file_keys.hpp"

#include "ranktune/study/parse.hpp"
#include "study/parse/key_table.hpp"
#include "study/parse/toml_tree.hpp"

namespace ranktune::simulate {
namespace {

constexpr study::KeyInfo of_models[] = {
    {"curves.file", "path", "none", "A table of measured curves: CSV, or HDF5 if its name ends in `.h5` or `.hdf5`."},
    {"curves.study", "path", "none", "Directory of an earlier study, real or simulated; its journal has the curves."},
    {"curves.best", "number 0 to 1", "0.95", "Limit of the best configuration."},
    {"curves.worst", "number 0 to 1", "0.45", "Limit of the worst configuration."},
    {"curves.skew", "number 0.1 to 100", "2.0",
     "1: limits are spread evenly between `worst` and `best`; larger: more are near `best`."},
    {"curves.start", "number 0 to 1", "0.1",
     "Lowest quality after the first iteration; the gap is 0.5 to 1 times `limit - start`."},
    {"curves.roughness", "number 0 to 1", "0.005",
     "Up to so much is taken from the limit of each configuration, whatever its neighbours have."},
    {"curves.slowest", "number 0.01 to 10", "0.5", "Smallest `speed`."},
    {"curves.fastest", "number 0.01 to 10", "1.5", "Largest `speed`."},
    {"curves.crossing", "number 0 to 1", "0.5",
     "1: the better the limit, the slower, so that curves cross often; 0: speed does not depend on the limit."},
    {"curves.noise", "number 0 to 1", "0.005", "Standard deviation of the noise of a report."},
    {"curves.forgetting", "number 0 to 1", "0.2",
     "Share of the lead over its curve that a trial loses in one iteration, after an exploit."},
    {"curves.seed", "integer >= 0", "`study.seed`",
     "Seed of curves, speeds, stragglers and failures. Given: the studies of `--seeds` share one set of curves."},
    {"time.iteration", "number 1e-06 to 1e+07", "60",
     "Seconds of an iteration of a configuration of middle speed, for groups of any size."},
    {"time.spread", "number 0 to 5", "0.3",
     "Iterations of a configuration take between `exp(-spread)` and `exp(spread)` times as long."},
    {"time.jitter", "number 0 to 0.99", "0.05", "A single iteration takes up to this share more or less."},
    {"time.stragglers", "number 0 to 1", "0.02", "Share of the ranks that are slow; a group with one of them is slow."},
    {"time.straggler_factor", "number 1 to 1000", "1.5", "How much longer iterations take there."},
    {"time.start", "number 0 to 1e+07", "10",
     "Seconds from the assignment of ranks to the first iteration, loading a checkpoint included."},
    {"time.first_start", "number 0 to 1e+07", "`start`",
     "In place of `start` for the first trial of a rank in a job: it opens libraries and data."},
    {"time.checkpoint", "number 0 to 1e+07", "2",
     "Seconds to write a checkpoint at a pause or at the end; those of running trials take no time."},
    {"time.exploit", "number 0 to 1e+07", "5", "In place of `start` when a trial takes over the state of another one."},
    {"time.report", "number 0 to 1e+07", "0",
     "Seconds between two iterations: the report, and waiting for the answer."},
    {"time.head", "number 0 to 1e+07", "0",
     "Seconds of the head for one event. Events wait for each other. Measured: 8e-6 to 2e-5."},
    {"time.suggestion", "number 0 to 1e+07", "0",
     "Seconds for a suggestion that is prepared ahead, on a thread. Until it is ready, trials take stopgaps."},
    {"cluster.ranks_per_host", "integer 1 to 100000", "8",
     "Ranks that share a host. Trials that fail one after the other on one host take it out of service."},
};

constexpr study::KeyInfo of_faults[] = {
    {"trials.rate", "number 0 to 0.999", "0",
     "Probability that a training of `study.max_iterations` fails. A failed trial is retried as `failure.max_failures` "
     "says."},
    {"ranks.mean_time_to_failure", "duration", "never",
     "Of one rank, for the rest of its job. Its trial goes on elsewhere, from its last checkpoint."},
    {"job.mean_time_to_failure", "duration", "never",
     "Of the job. What was not saved is lost, and the next job goes on."},
    {"job.walltime", "duration", "no limit", "Length of a job. The study knows the deadline and saves before it."},
    {"job.wait", "duration", "0",
     "From the end of a job to the next one. Counts for \"to 1 %\", not for core-hours or `study.time_budget`."},
    {"job.jobs", "integer 1 to 1000000", "1000", "At most so many jobs. Then the study remains resumable."},
};

} // namespace

std::span<const study::KeyInfo> model_key_infos() { return of_models; }
std::span<const study::KeyInfo> fault_key_infos() { return of_faults; }

std::vector<std::string> names_of(std::span<const study::KeyInfo> keys) {
    std::vector<std::string> names;
    for (const study::KeyInfo& key : keys) names.emplace_back(key.key);
    return names;
}

void read_tables(const std::string& text, const std::string& file, const std::vector<std::string>& keys,
                 const std::function<void(const TableNamed&)>& read) {
    study::Mistakes mistakes;
    study::Node root;
    try {
        root = study::parse_toml(text);
    } catch (const study::TomlError& error) {
        mistakes.add(error.at(), "", "not valid TOML: " + std::string(error.what()));
        throw study::StudyFileError(file, mistakes.sorted());
    }
    const study::KeyTable known(keys);
    for (const auto& [name, node] : root.members)
        if (!known.has_table(name)) mistakes.key(node, name, known.explain_unknown_table(name));
    read([&](const char* name) { return study::TableReader(root.find(name), name, known, mistakes); });
    if (!mistakes.empty()) throw study::StudyFileError(file, mistakes.sorted());
}

} // namespace ranktune::simulate
