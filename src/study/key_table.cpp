// SPDX-License-Identifier: Apache-2.0
#include "study/key_table.hpp"

#include <algorithm>
#include <array>

#include "ranktune/base/text.hpp"

namespace ranktune::study {
namespace {

using View = std::string_view;

constexpr View keys[] = {
    "study.name",
    "study.metric",
    "study.mode",
    "study.num_trials",
    "study.max_iterations",
    "study.seed",
    "study.max_concurrent",
    "study.time_budget",
    "study.deterministic",
    "trainable.builtin",
    "trainable.name",
    "trainable.command",
    "trainable.shell",
    "trainable.flags",
    "trainable.directory",
    "trainable.checkpoints",
    "trainable.env",
    "trainable.keep_env",
    "trainable.tf_config",
    "trainable.jax",
    "resources.ranks",
    "resources.cpus_per_rank",
    "resources.gpus",
    "resources.bind",
    "searcher.type",
    "searcher.scramble",
    "scheduler.type",
    "scheduler.variant",
    "scheduler.rule",
    "scheduler.eta",
    "scheduler.first_rung",
    "scheduler.brackets",
    "scheduler.finish_top",
    "scheduler.restart_paused",
    "scheduler.stop_last_trials",
    "scheduler.grace",
    "scheduler.min_samples",
    "scheduler.hard_stop",
    "stop.metric",
    "stop.time",
    "stop.plateau",
    "stop.plateau.metric",
    "stop.plateau.std",
    "stop.plateau.results",
    "stop.plateau.grace",
    "stop.plateau.threshold",
    "failure.tolerate",
    "failure.max_failures",
    "failure.max_losses",
    "failure.in_a_row",
    "failure.report_timeout",
    "checkpoint.interval",
    "checkpoint.mean_time_between_failures",
    "checkpoint.at_rungs",
    "checkpoint.supported",
    "checkpoint.keep",
    "checkpoint.max_bytes",
    "checkpoint.direct",
    "journal.commit_interval",
    "run.abort_grace",
    "run.heartbeat_timeout",
    "slurm.requeue",
    "slurm.max_requeues",
    "slurm.lead_time",
};

constexpr View tables[] = {"study",   "trainable",  "resources", "space", "searcher", "scheduler", "stop",
                           "failure", "checkpoint", "journal",   "run",   "slurm",    "inputs"};

/// Another tool's name and ours. `table`: only there; empty: anywhere. `ours` is a dotted key, or words when it has a
/// space in it.
struct Foreign {
    View table;
    View name;
    View tool;
    View ours;
};

constexpr Foreign foreign[] = {
    {"stop.plateau", "grace_period", "Ray Tune", "stop.plateau.grace"},
    {"stop.plateau", "num_results", "Ray Tune", "stop.plateau.results"},
    {"stop.plateau", "metric_threshold", "Ray Tune", "stop.plateau.threshold"},
    {"", "num_samples", "Ray Tune", "study.num_trials"},
    {"", "time_budget_s", "Ray Tune", "study.time_budget"},
    {"", "max_concurrent_trials", "Ray Tune", "study.max_concurrent"},
    {"", "search_alg", "Ray Tune", "searcher.type"},
    {"", "tune", "Ray Tune", "the tables [study], [searcher] and [scheduler]"},
    {"", "param_space", "Ray Tune", "the table [space]"},
    {"", "tune_config", "Ray Tune", "the table [study]"},
    {"", "run_config", "Ray Tune", "the tables [study], [stop] and [failure]"},
    {"", "failure_config", "Ray Tune", "the table [failure]"},
    {"", "grace_period", "Ray Tune", "scheduler.first_rung (asha) or scheduler.grace (median)"},
    {"", "reduction_factor", "Ray Tune", "scheduler.eta"},
    {"", "max_t", "Ray Tune", "study.max_iterations"},
    {"", "time_attr", "Ray Tune", "time is always counted in iterations"},
    {"", "min_samples_required", "Ray Tune", "scheduler.min_samples"},
    {"", "num_results", "Ray Tune", "stop.plateau.results"},
    {"", "metric_threshold", "Ray Tune", "stop.metric, as in \"val_accuracy >= 0.99\""},
    {"", "training_iteration", "Ray Tune", "study.max_iterations"},
    {"", "time_total_s", "Ray Tune", "stop.time"},
    {"", "resources_per_trial", "Ray Tune", "the table [resources]"},
    {"", "resources_per_worker", "Ray Train", "the table [resources]"},
    {"", "num_workers", "Ray Train", "resources.ranks"},
    {"", "num_cpus", "Ray", "resources.cpus_per_rank"},
    {"", "num_gpus", "Ray", "resources.gpus"},
    {"", "gpu", "Ray Tune", "resources.gpus"},
    {"", "use_gpu", "Ray Train", "resources.gpus"},
    {"", "random_state", "Ray Tune", "study.seed"},
    {"", "random_state_seed", "Ray Tune", "study.seed"},
    {"", "checkpoint_frequency", "Ray Tune", "checkpoint.interval"},
    {"", "checkpoint_config", "Ray Tune", "the table [checkpoint]"},
    {"", "num_to_keep", "Ray Tune", "checkpoint.keep"},
    {"", "keep_checkpoints_num", "Ray Tune", "checkpoint.keep"},
    {"", "storage_path", "Ray Tune", "-o DIR on the command line"},
    {"", "n_trials", "Optuna", "study.num_trials"},
    {"", "direction", "Optuna", "study.mode"},
    {"", "study_name", "Optuna", "study.name"},
    {"", "timeout", "Optuna", "study.time_budget"},
    {"", "n_jobs", "Optuna", "study.max_concurrent"},
    {"", "sampler", "Optuna", "searcher.type"},
    {"", "pruner", "Optuna", "scheduler.type"},
    {"", "min_resource", "Optuna", "scheduler.first_rung"},
    {"", "max_resource", "Optuna", "study.max_iterations"},
    {"", "min_early_stopping_rate", "Optuna", "scheduler.brackets"},
    {"", "n_warmup_steps", "Optuna", "scheduler.grace"},
    {"", "n_min_trials", "Optuna", "scheduler.min_samples"},
    {"", "n_startup_trials", "Optuna", "scheduler.min_samples"},
    {"", "goal", "W&B", "study.mode"},
    {"", "method", "W&B", "searcher.type"},
    {"", "run_cap", "W&B", "study.num_trials"},
    {"", "early_terminate", "W&B", "the table [scheduler]"},
    {"", "parameters", "W&B", "the table [space]"},
    {"", "min_iter", "W&B", "scheduler.first_rung"},
    {"", "max_iter", "W&B", "study.max_iterations"},
    {"", "objective", "Keras Tuner", "study.metric"},
    {"", "max_trials", "Keras Tuner", "study.num_trials"},
    {"", "max_epochs", "Keras Tuner", "study.max_iterations"},
    {"", "factor", "Keras Tuner", "scheduler.eta"},
    {"", "max_evals", "DeepHyper", "study.num_trials"},
    {"", "min_budget", "BOHB", "scheduler.first_rung"},
    {"", "max_budget", "BOHB", "study.max_iterations"},
    {"", "max_resource_level", "Syne Tune", "study.max_iterations"},
    {"", "n_workers", "Syne Tune", "study.max_concurrent"},
    {"", "optimize_mode", "NNI", "study.mode"},
    {"", "trialConcurrency", "NNI", "study.max_concurrent"},
    {"", "maxTrialNumber", "NNI", "study.num_trials"},
    {"", "maxExperimentDuration", "NNI", "study.time_budget"},
    {"", "cpus_per_task", "Slurm", "resources.cpus_per_rank"},
    {"", "cpu_bind", "Slurm", "resources.bind"},
    {"", "bind_to", "mpirun", "resources.bind"},
    {"", "ntasks", "Slurm", "resources.ranks"},
    {"", "gpus_per_task", "Slurm", "resources.gpus"},
    {"", "gpus_per_node", "Slurm", "resources.gpus"},
};

/// Keys and tables that belong to later versions: refused by name, with what to do today.
struct Later {
    View key;
    View advice;
};
constexpr Later later[] = {
    {"trainable.protocol", "a program is started by ranktune, once per rank and trial"},
    {"resources.gpus_per_rank", "a rank has one GPU; write gpus = N for N ranks with one each"},
    {"resources.memory", "ranks are placed without looking at memory"},
    {"resources.nodes", "groups are placed by the number of ranks alone"},
    {"failure.fail_fast", "a study goes on when trials fail, up to failure.tolerate"},
    {"searcher.points_to_evaluate", "all configurations come from the searcher"},
    {"study.unit_cost", "in a deterministic study every unit, from one report to the next, costs 1"},
    {"study.directions", "a study has one metric"},
    {"study.metrics", "a study has one metric"},
    {"output", "the tables and files of a study are always written"},
};

/// Words of type-like keys. `meant`: our word for the same thing; empty: this version has nothing like it.
struct WordHint {
    View key;
    View word;
    View meant;
};
constexpr WordHint words[] = {
    {"study.mode", "maximize", "max"},
    {"study.mode", "maximise", "max"},
    {"study.mode", "minimize", "min"},
    {"study.mode", "minimise", "min"},
    {"searcher.type", "variant_generator", "random"},
    {"searcher.type", "basic_variant", "random"},
    {"searcher.type", "random_search", "random"},
    {"searcher.type", "grid_search", "grid"},
    {"searcher.type", "qmc", "sobol"},
    {"searcher.type", "quasirandom", "sobol"},
    {"searcher.type", "tpe", ""},
    {"searcher.type", "hyperopt", ""},
    {"searcher.type", "optuna", ""},
    {"searcher.type", "gp", ""},
    {"searcher.type", "bayes", ""},
    {"searcher.type", "bayesopt", ""},
    {"searcher.type", "bo", ""},
    {"searcher.type", "ax", ""},
    {"searcher.type", "hebo", ""},
    {"searcher.type", "cmaes", ""},
    {"searcher.type", "cma-es", ""},
    {"searcher.type", "nevergrad", ""},
    {"searcher.type", "zoopt", ""},
    {"searcher.type", "bohb", ""},
    {"searcher.type", "evolution", ""},
    {"scheduler.type", "asynchyperband", "asha"},
    {"scheduler.type", "async_hyperband", "asha"},
    {"scheduler.type", "successive_halving", "asha"},
    {"scheduler.type", "medianstopping", "median"},
    {"scheduler.type", "median_stopping_rule", "median"},
    {"scheduler.type", "none", "fifo"},
    {"scheduler.type", "pbt", ""},
    {"scheduler.type", "pbt_replay", ""},
    {"scheduler.type", "pb2", ""},
    {"scheduler.type", "hyperband", ""},
    {"scheduler.type", "bohb", ""},
    {"scheduler.type", "hb_bohb", ""},
    {"scheduler.type", "dehb", ""},
    {"scheduler.type", "pasha", ""},
    {"scheduler.type", "resource_changing", ""},
    {"scheduler.variant", "promotion", "promote"},
    {"scheduler.variant", "stopping", "stop"},
};

View last_part(View dotted) { return dotted.substr(dotted.rfind('.') + 1); }
View table_of(View dotted) {
    const auto dot = dotted.rfind('.');
    return dot == View::npos ? View() : dotted.substr(0, dot);
}

std::string explain_foreign(View table, View name) {
    for (const Foreign& entry : foreign) {
        if (entry.name != name || (!entry.table.empty() && entry.table != table)) continue;
        const bool same_table = entry.ours.find(' ') == View::npos && table_of(entry.ours) == table;
        return "is " + std::string(entry.tool) +
               "'s name; here: " + std::string(same_table ? last_part(entry.ours) : entry.ours);
    }
    return "";
}

std::string explain_later(View dotted) {
    for (const Later& entry : later)
        if (entry.key == dotted) return "is not supported by this version: " + std::string(entry.advice);
    return "";
}

/// A key of the same name in other tables: "study.mode".
std::vector<View> same_name_elsewhere(View key) {
    std::vector<View> found;
    for (const View known : keys)
        if (last_part(known) == key) found.push_back(known);
    return found;
}

} // namespace

std::span<const std::string_view> accepted_keys() { return keys; }
std::span<const std::string_view> accepted_tables() { return tables; }

std::string explain_unknown_key(std::string_view table, std::string_view key) {
    const std::string dotted = std::string(table) + "." + std::string(key);
    if (std::string text = explain_later(dotted); !text.empty()) return text;
    if (std::string text = explain_foreign(table, key); !text.empty()) return text;
    if (const auto elsewhere = same_name_elsewhere(key); !elsewhere.empty())
        return "unknown key here; it belongs to " + base::join(elsewhere, " or ");
    std::vector<View> here;
    for (const View known : keys)
        if (table_of(known) == table) here.push_back(last_part(known));
    if (const View best = base::nearest(key, here); !best.empty())
        return "unknown key; did you mean '" + std::string(best) + "'?";
    return "unknown key; known: " + base::join(here);
}

std::string explain_unknown_table(std::string_view name) {
    if (std::string text = explain_later(name); !text.empty()) return text;
    if (std::string text = explain_foreign("", name); !text.empty()) return text;
    // One letter too many is nearer than a key of another table.
    for (const View known : tables)
        if (base::edit_distance(name, known) <= 1) return "unknown table; did you mean [" + std::string(known) + "]?";
    if (const auto elsewhere = same_name_elsewhere(name); !elsewhere.empty())
        return "unknown table; did you mean the key " + base::join(elsewhere, " or ") + "?";
    if (const View best = base::nearest(name, std::span<const View>(tables)); !best.empty())
        return "unknown table; did you mean [" + std::string(best) + "]?";
    return "unknown table; known: " + base::join(std::span<const View>(tables));
}

std::string explain_unknown_word(std::string_view dotted_key, std::string_view word) {
    for (const WordHint& hint : words) {
        if (hint.key != dotted_key || hint.word != word) continue;
        if (!hint.meant.empty()) return "here it is called \"" + std::string(hint.meant) + "\"";
        return "not supported by this version";
    }
    return "";
}

bool means_max_iterations(std::string_view option) {
    constexpr std::array<View, 10> names = {"epochs",     "num_epochs",        "n_epochs",     "max_epochs",
                                            "iterations", "num_iterations",    "n_iterations", "max_iterations",
                                            "max_iter",   "training_iteration"};
    return std::ranges::find(names, option) != names.end();
}

} // namespace ranktune::study
