// SPDX-License-Identifier: Apache-2.0
#include "study/parse/key_table.hpp"

#include <algorithm>
#include <array>
#include <ranges>

#include "ranktune/base/text.hpp"
#include "study/algorithm_options.hpp"
#include "study/parse/keys.hpp"

namespace ranktune::study {
namespace {

using View = std::string_view;

/// Another tool's name for a key, and ours. (The descriptions of algorithms hold those of their options.) `table`: the
/// only table for which this applies; empty: any. `ours`: a dotted key, or, with a space in it, a phrase.
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
    {"", "points_to_evaluate", "Ray Tune", "searcher.start"},
    {"", "tune", "Ray Tune", "the tables [study], [searcher] and [scheduler]"},
    {"", "param_space", "Ray Tune", "the table [space]"},
    {"", "tune_config", "Ray Tune", "the table [study]"},
    {"", "run_config", "Ray Tune", "the tables [study], [stop] and [failure]"},
    {"", "failure_config", "Ray Tune", "the table [failure]"},
    {"", "max_t", "Ray Tune", "study.max_iterations"},
    {"", "time_attr", "Ray Tune", "time is always counted in iterations"},
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
    {"", "directions", "Optuna", "study.mode"},
    {"", "study_name", "Optuna", "study.name"},
    {"", "timeout", "Optuna", "study.time_budget"},
    {"", "n_jobs", "Optuna", "study.max_concurrent"},
    {"", "sampler", "Optuna", "searcher.type"},
    {"", "pruner", "Optuna", "scheduler.type"},
    {"", "max_resource", "Optuna", "study.max_iterations"},
    {"", "goal", "W&B", "study.mode"},
    {"", "method", "W&B", "searcher.type"},
    {"", "run_cap", "W&B", "study.num_trials"},
    {"", "early_terminate", "W&B", "the table [scheduler]"},
    {"", "parameters", "W&B", "the table [space]"},
    {"", "max_iter", "W&B", "study.max_iterations"},
    {"", "objective", "Keras Tuner", "study.metric"},
    {"", "max_trials", "Keras Tuner", "study.num_trials"},
    {"", "max_epochs", "Keras Tuner", "study.max_iterations"},
    {"", "max_evals", "DeepHyper", "study.num_trials"},
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

/// Keys and tables that this version does not support, with advice.
struct Advised {
    View key;
    View advice;
};
constexpr Advised unsupported[] = {
    {"trainable.protocol", "a program is started by ranktune, once per rank and trial"},
    {"resources.gpus_per_rank", "a rank has one GPU; write gpus = N for N ranks with one each"},
    {"resources.memory", "ranks are placed without looking at memory"},
    {"resources.nodes", "groups are placed by the number of ranks alone"},
    {"failure.fail_fast", "a study goes on when trials fail, up to failure.tolerate"},
    {"study.unit_cost", "in a deterministic study every unit, from one report to the next, costs 1"},
    {"output", "the tables and files of a study are always written"},
};

/// Keys that users expect, and where what they mean stands.
constexpr Advised misplaced[] = {
    {"study.searcher", "is given as type under [searcher]"},
    {"study.scheduler", "is given as type under [scheduler]"},
    {"searcher.name", "is given as type under [searcher]"},
    {"scheduler.name", "is given as type under [scheduler]"},
    {"resources.cpus", "is called cpus_per_rank here"},
    {"resources.cores", "is called cpus_per_rank here"},
    {"resources.workers", "is given on the command line: --local N, or the number of tasks of srun and mpirun"},
    {"study.workers", "is given on the command line: --local N, or the number of tasks of srun and mpirun"},
    {"study.directory", "is given on the command line: -o DIR"},
    {"study.output", "is given on the command line: -o DIR"},
};

std::string joined(View table, View key) {
    return table.empty() ? std::string(key) : std::string(table) + "." + std::string(key);
}
View last_part(View dotted) { return dotted.substr(dotted.rfind('.') + 1); }
View table_of(View dotted) {
    const auto dot = dotted.rfind('.');
    return dot == View::npos ? View() : dotted.substr(0, dot);
}

std::string other_name_text(View table, View tool, View ours) {
    const bool same_table = ours.find(' ') == View::npos && table_of(ours) == table;
    return "is " + std::string(tool) + "'s name; here: " + std::string(same_table ? last_part(ours) : ours);
}

std::string advice_on(View dotted) {
    for (const Advised& entry : misplaced)
        if (entry.key == dotted) return std::string(entry.advice);
    for (const Advised& entry : unsupported)
        if (entry.key == dotted) return "is not supported by this version: " + std::string(entry.advice);
    return "";
}

/// The names of `table_infos`.
const std::vector<View>& table_names() {
    static const std::vector<View> names = [] {
        std::vector<View> all;
        for (const TableInfo& table : table_infos()) all.push_back(table.name);
        return all;
    }();
    return names;
}

} // namespace

std::span<const std::string_view> accepted_tables() { return table_names(); }

KeyTable::KeyTable(std::vector<std::string> keys) : keys_(std::move(keys)), of_study_(false) {
    for (const std::string& key : keys_)
        if (const View table = table_of(key); std::ranges::find(tables_, table) == tables_.end())
            tables_.emplace_back(table);
}

bool KeyTable::has_table(View name) const { return std::ranges::find(tables_, name) != tables_.end(); }

KeyTable::KeyTable(const Algorithms& algorithms) : tables_(table_names().begin(), table_names().end()) {
    for (const char* word : {"maximize", "maximise"}) words_.push_back({"study.mode", word, "max"});
    for (const char* word : {"minimize", "minimise"}) words_.push_back({"study.mode", word, "min"});
    for (const View key : key_infos() | std::views::transform(&KeyInfo::key)) {
        keys_.emplace_back(key);
        if (key == "searcher.type") add("searcher", infos_of(algorithms.searchers));
        if (key == "scheduler.type") add("scheduler", infos_of(algorithms.schedulers));
    }
}

void KeyTable::add(const std::string& table, const std::vector<const AlgorithmInfo*>& algorithms) {
    for (const AlgorithmInfo* algorithm : algorithms) {
        for (const std::string& word : algorithm->foreign_names)
            words_.push_back({table + ".type", word, algorithm->name});
        for (const AlgorithmOption& option : algorithm->options) {
            const std::string key = table + "." + option.name;
            if (std::ranges::find(keys_, key) == keys_.end()) keys_.push_back(key);
            for (const auto& [word, meant] : option.foreign_words) words_.push_back({key, word, meant});
            for (const auto& [tool, name] : option.foreign_names)
                foreign_options_.push_back({name, tool, key, algorithm->name});
        }
    }
}

std::string KeyTable::explain_foreign(View table, View name) const {
    for (const Foreign& entry : foreign)
        if (entry.name == name && (entry.table.empty() || entry.table == table))
            return other_name_text(table, entry.tool, entry.ours);
    std::vector<const ForeignOption*> found;
    for (const ForeignOption& option : foreign_options_)
        if (option.name == name) found.push_back(&option);
    if (found.empty()) return "";
    if (found.size() == 1) return other_name_text(table, found[0]->tool, found[0]->key);
    std::vector<std::string> ours;
    for (const ForeignOption* option : found) ours.push_back(option->key + " (" + option->algorithm + ")");
    return other_name_text(table, found[0]->tool, base::join(ours, " or "));
}

/// Keys of the same name in other tables: "study.mode".
std::vector<View> KeyTable::same_name_elsewhere(View key) const {
    std::vector<View> found;
    for (const std::string& known : keys_)
        if (last_part(known) == key) found.push_back(known);
    return found;
}

/// A key of a later version, or of another tool; empty: neither. `table` is empty for a key outside all tables.
std::string KeyTable::explain_other(View table, View key) const {
    if (!of_study_) return "";
    if (std::string text = advice_on(joined(table, key)); !text.empty()) return text;
    return explain_foreign(table, key);
}

std::string KeyTable::guess_unknown_key(View table, View key) const {
    if (std::string text = explain_other(table, key); !text.empty()) return text;
    const std::string here = joined(table, key);
    const auto elsewhere = same_name_elsewhere(key);
    if (std::ranges::find(elsewhere, View(here)) != elsewhere.end())
        return "another " + std::string(table) + ".type has it";
    if (!elsewhere.empty()) return "unknown key here; it belongs to " + base::join(elsewhere, " or ");
    if (const View best = base::nearest(key, keys_of(table)); !best.empty())
        return "unknown key; did you mean '" + std::string(best) + "'?";
    return {};
}

std::string KeyTable::explain_unknown_key(View table, View key) const {
    std::string guess = guess_unknown_key(table, key);
    return guess.empty() ? "unknown key; known: " + base::join(keys_of(table)) : guess;
}

std::vector<std::string_view> KeyTable::keys_of(View table) const {
    std::vector<View> here;
    for (const std::string& known : keys_)
        if (table_of(known) == table) here.push_back(last_part(known));
    return here;
}

std::string KeyTable::explain_unknown_table(View name) const {
    if (std::string text = explain_other("", name); !text.empty()) return text;
    // A table that differs in one letter comes before keys of the same name.
    for (const std::string& known : tables_)
        if (base::edit_distance(name, known) <= 1) return "unknown table; did you mean [" + known + "]?";
    if (const auto elsewhere = same_name_elsewhere(name); !elsewhere.empty())
        return "unknown table; did you mean the key " + base::join(elsewhere, " or ") + "?";
    if (const View best = base::nearest(name, std::span<const std::string>(tables_)); !best.empty())
        return "unknown table; did you mean [" + std::string(best) + "]?";
    return "unknown table; known: " + base::join(tables_);
}

std::string KeyTable::explain_unknown_word(View dotted_key, View word) const {
    for (const Word& hint : words_)
        if (hint.key == dotted_key && hint.word == word) return "here it is called \"" + hint.meant + "\"";
    return "";
}

bool means_max_iterations(std::string_view option) {
    constexpr std::array<View, 10> names = {"epochs",     "num_epochs",        "n_epochs",     "max_epochs",
                                            "iterations", "num_iterations",    "n_iterations", "max_iterations",
                                            "max_iter",   "training_iteration"};
    return std::ranges::find(names, option) != names.end();
}

} // namespace ranktune::study
