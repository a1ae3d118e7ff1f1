// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tables of a study file, one function each. They fill in `spec` as far as possible and note every mistake.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/study/parse.hpp"
#include "study/parse/checker.hpp"
#include "study/parse/space/condition_checks.hpp"

namespace ranktune::study {

/// Bound of a trial's iterations, far from overflow: rungs are computed by multiplying.
inline constexpr std::int64_t most_iterations = 1'000'000'000'000'000;

/// What the functions share.
struct ParseContext {
    const Node& root;
    StudySpec& spec;
    Mistakes& mistakes;
    const Known& known;
    const KeyTable& keys;
    const PathChecks& paths;
    const RankCheck& rank_check;
    std::filesystem::path directory; ///< of the study file

    bool trust_trainable = false; ///< a resolved study: the trainable and its options were checked when it was written

    // Filled in on the way:
    const TrainableInfo* info = nullptr;        ///< of the trainable; null: unknown or wrong
    TrainableInfo program_info{};               ///< what `info` points to when the trainable is a program
    bool has_num_trials = false;                ///< the key is there, right or wrong, or its table is wrong
    bool has_max_iterations = false;            ///< and valid
    bool has_scheduler = false;                 ///< its type is valid
    bool space_is_valid = false;                ///< spec.space is built
    bool names_are_known = false;               ///< `entries` has every name in [space]
    std::vector<SpaceEntry> entries{};          ///< of [space], right or wrong
    std::vector<space::Rule> rules{};           ///< of [space]
    std::vector<std::string> condition_names{}; ///< parameters that conditions mention, or other keys may mean
    std::vector<std::string> option_keys{};     ///< options given in [trainable], right or wrong

    /// The file is not there, and [before] may make it.
    [[nodiscard]] bool may_be_made(const std::string& path) const {
        return root.find("before") != nullptr && paths.exists && !paths.exists(path);
    }
    [[nodiscard]] TableReader reader(const std::string& table) const {
        return {root.find(table), table, keys, mistakes};
    }
};

/// The strings of a list; empty: there is a mistake, which has been reported.
[[nodiscard]] std::vector<std::string> texts_of(const ParseContext& context, const Node& list, const std::string& key);

void parse_study_table(ParseContext& context);
void parse_trainable(ParseContext& context);
/// The part of parse_trainable for a `command`.
void parse_program(ParseContext& context, TableReader& table);
/// Notes the content of the file that an option names; empty: unknown.
void note_content(ParseContext& context, const std::string& option, const std::string& content);
/// Reads [inputs] of a resolved file: the content of files that are not read now.
void parse_inputs(ParseContext& context);
/// [data]: every key is a name that the user has chosen.
void parse_data(ParseContext& context);
void parse_space(ParseContext& context);
/// After parse_space: `ranks` may name a parameter.
void parse_resources(ParseContext& context);
/// Call after parse_scheduler.
void check_kinds_of_workers(ParseContext& context);
/// After all of the above: compares [space] with the options of the trainable.
void check_space_against_trainable(ParseContext& context);
/// After parse_space: the placeholders of a command are hyper-parameters.
void check_command(ParseContext& context);
/// After parse_space: a grid fills in num_trials.
void parse_searcher(ParseContext& context);
/// After parse_scheduler: searcher.repeats needs trials that train to their end, and a multiple of it.
void check_repeats(ParseContext& context);
/// The part of parse_searcher for [[searcher.start]].
void parse_start(ParseContext& context, TableReader& searcher);
/// The part of parse_searcher for searcher.warm_start; after the algorithm is chosen.
void parse_warm_start(ParseContext& context, TableReader& searcher);
/// There are no more points than trials.
void check_start_count(ParseContext& context);
/// After parse_study_table and parse_trainable.
void parse_scheduler(ParseContext& context);
/// The part of parse_scheduler for [scheduler.explore].
void parse_explore(ParseContext& context, TableReader& scheduler);
/// The part of parse_scheduler for [scheduler.schedule].
void parse_schedule(ParseContext& context, TableReader& scheduler);
void parse_stop(ParseContext& context);
void parse_checkpoint(ParseContext& context);
/// After parse_space: the placeholders of its command are hyper-parameters.
void parse_predict(ParseContext& context);
/// failure.retry_on is for programs that are tried again. After read_members.
void check_retry_on(const ParseContext& context, TableReader& failure);

/// [before], [after_trial], [after]; call last: their placeholders are hyper-parameters and files of [data].
void parse_side_tasks(ParseContext& context);

/// Why the file that a path option names cannot be used, or an empty string; `value` as in the study file.
[[nodiscard]] std::string file_problem(const ParseContext& context, const OptionInfo& option,
                                       const space::Value& value);

/// `val_accuracy >= 0.99` or `latency <= 5`; nullopt: something else.
[[nodiscard]] std::optional<MetricStop> to_metric_stop(std::string_view text);

/// After parse_trainable: study.constraints, whose metrics the trainable may be known to lack.
void parse_constraints(ParseContext& context);

/// Reports a mistake if the trainable is known not to report this metric. `node` is the value that names it.
void check_metric(const ParseContext& context, const Node& node, const std::string& key, const std::string& metric);

} // namespace ranktune::study
