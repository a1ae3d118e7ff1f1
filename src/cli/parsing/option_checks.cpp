// SPDX-License-Identifier: Apache-2.0
#include "cli/parsing/option_checks.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/number_in.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/space/value.hpp"

namespace ranktune::cli {

std::string words_text(const std::vector<std::string>& words) { return "{" + base::join(words, ",") + "}"; }

CLI::Validator usually(const std::vector<std::string>& words) {
    return CLI::Validator([](std::string&) { return std::string(); }, words_text(words));
}

CLI::Validator whole_number(std::uint32_t low, const std::string& what) {
    const auto check = [low, what](std::string& word) -> std::string {
        std::string digits = word.rfind('#', 0) == 0 ? word.substr(1) : word;
        const bool number =
            !digits.empty() && digits.size() <= 9 && digits.find_first_not_of("0123456789") == std::string::npos;
        if (!number || static_cast<std::uint32_t>(std::stoul(digits)) < low)
            return "needs " + what + ", not '" + word + "'";
        word = std::move(digits);
        return {};
    };
    return CLI::Validator(check, "");
}

CLI::Validator number_between(double low, double high) {
    const auto check = [low, high](std::string& word) -> std::string {
        const auto value = base::number_in<double>(word);
        if (value && *value >= low && *value <= high) return {};
        return "needs a number from " + space::number_text(low) + " to " + space::number_text(high) + ", not '" + word +
               "'";
    };
    return CLI::Validator(check, "");
}

CLI::Validator no_empty_path() {
    return CLI::Validator(
        [](std::string& word) {
            return word.empty() ? std::string("needs a path, not ''; is the variable unset that should hold it?")
                                : std::string();
        },
        "");
}

CLI::Validator trial_or_best(bool or_task) {
    const auto number =
        whole_number(0, or_task ? "the number of a trial, best, before, or after" : "the number of a trial, or best");
    return CLI::Validator(
        [number, or_task](std::string& word) mutable {
            const bool is_task = or_task && (word == "before" || word == "after");
            return word == "best" || is_task ? std::string() : number(word);
        },
        "");
}

CLI::App* add_verb(CLI::App& app, const std::string& group, const std::string& name, const std::string& words,
                   const char* example) {
    CLI::App* verb = app.add_subcommand(name, words)->group(group);
    return example == nullptr ? verb : verb->footer(std::string("Example:\n  ") + example);
}

void on_call(CLI::App* verb, std::function<int()>& to, std::function<int()> call) {
    verb->callback([&to, call = std::move(call)] { to = call; });
}

CLI::Option* add_study(CLI::App* verb, std::string& study) {
    return verb->add_option("STUDY", study, "Study file (TOML), or the directory of a study")
        ->required()
        ->type_name("");
}

CLI::Option* add_trial(CLI::App* verb, std::string& trial, bool or_task) {
    return verb
        ->add_option(
            "TRIAL", trial,
            or_task ? "Number of the trial, or best; or [before] or [after], by name" : "Number of the trial, or best")
        ->required()
        ->type_name("")
        ->transform(trial_or_best(or_task));
}

std::vector<std::string> Overrides::in_order(const CLI::App& verb) const {
    std::vector<std::string> all;
    auto word = words.begin();
    auto option = set.begin();
    for (const CLI::Option* parsed : verb.parse_order()) {
        if (parsed == verb.get_option("OVERRIDE")) all.push_back(*word++);
        if (parsed == verb.get_option("--set")) all.push_back(*option++);
    }
    if (logical_time) all.emplace_back("study.deterministic=true");
    return all;
}

void add_overrides(CLI::App* verb, Overrides& overrides) {
    verb->add_option("OVERRIDE", overrides.words, "Keys to change: study.num_trials=120 scheduler.eta=4")
        ->type_name("");
    verb->add_option("--set", overrides.set, "The same, as an option; may be repeated")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
}

void add_run_options(CLI::App* verb, RunArguments& run, Overrides& overrides, const char* output) {
    static const Names<Progress> progresses{{"auto", Progress::automatic},
                                            {"table", Progress::table},
                                            {"lines", Progress::lines},
                                            {"none", Progress::none}};
    add_overrides(verb, overrides);
    add_path(verb, "-o,--output", run.directory, "DIR", output);
    add_number(verb, "--local", run.local, "Start mpirun on this machine with N workers", 1,
               "a number of workers, 1 at least");
    add_path(verb, "--faults", run.faults, "FILE",
             "Kill ranks on purpose, to see what becomes of the study (TOML: mean_time_to_failure in [ranks], of each "
             "worker, and in [job], of the head)");
    auto* fresh = verb->add_flag("--fresh", run.fresh,
                                 "Begin again: an existing study directory is renamed to DIR~1, DIR~2, ...");
    auto* resume =
        verb->add_flag("--resume-errored", run.resume_errored, "Failed trials go on from their last checkpoint");
    auto* restart = verb->add_flag("--restart-errored", run.restart_errored, "Failed trials start again from scratch")
                        ->excludes(resume);
    verb->add_flag("--deterministic", overrides.logical_time,
                   "The same results for any number of ranks; needs study.max_concurrent");
    auto* dry = verb->add_flag("--dry-run", run.dry_run, "Print what would be run; start nothing, not even MPI");
    for (auto* other : {fresh, resume, restart}) dry->excludes(other);
    verb->add_option("--progress", run.progress,
                     "auto: the table on a terminal, else lines; table: drawn over and over; lines: ever rarer; "
                     "none: errors alone")
        ->transform(one_of(progresses))
        ->type_name("HOW");
    verb->add_flag("-v,--verbose", run.verbose, "At the end also figures on training, search, workers and files");
    dry->excludes(verb->add_flag_callback(
        "-q,--quiet", [&run] { run.progress = Progress::none; }, "Print nothing but errors"));
}

void add_text_or_json(CLI::App* verb, Format& format, const std::string& names) {
    auto* option =
        verb->add_option(names, format, "text or json")->transform(one_of(text_formats))->type_name("FORMAT");
    verb->add_flag_callback(
            "--json", [&format] { format = Format::json; }, "The same as --format json")
        ->excludes(option);
}

namespace {

struct OwnOption {
    std::string_view name; ///< of sbatch
    char letter;           ///< its short form; 0: none
    std::string_view advice;
};

constexpr std::string_view workers = "the layout is the study's: --workers-per-node N, or --gpus-per-node N";
constexpr std::string_view gpus =
    "--gpus-per-node N of submit, and `gpus` in the site file for how a site asks for them";
constexpr std::string_view cores = "--cpus-per-worker N of submit";
constexpr std::string_view folder = "type the line in the directory that is meant";

constexpr OwnOption own_options[] = {
    {"nodes", 'N', "--nodes N of submit"},
    {"time", 't', "--time TIME of submit"},
    {"ntasks", 'n', workers},
    {"ntasks-per-node", 0, workers},
    {"tasks-per-node", 0, workers},
    {"ntasks-per-core", 0, workers},
    {"ntasks-per-socket", 0, workers},
    {"ntasks-per-gpu", 0, workers},
    {"cpus-per-task", 'c', cores},
    {"cpus-per-gpu", 0, cores},
    {"gpus", 'G', gpus},
    {"gpus-per-node", 0, gpus},
    {"gpus-per-task", 0, gpus},
    {"gpus-per-socket", 0, gpus},
    {"array", 'a', "a study is one job, or one after the other: --chain K of submit"},
    {"dependency", 'd', "jobs of a study follow each other by themselves: --chain K of submit"},
    {"job-name", 'J', "study.name=NAME of submit"},
    {"output", 'o', "the log is named after the study: study.name=NAME of submit"},
    {"chdir", 'D', folder},
    {"wait", 'W', "submit does not wait for the job; `ranktune status` shows how it gets on"},
};

/// Whether `word` is the option, in any form: --nodes=2, --nodes 2, -N2, -N 2.
bool is_option(const std::string& word, const OwnOption& option) {
    if (word.starts_with("--")) return std::string_view(word).substr(0, word.find('=')).substr(2) == option.name;
    return option.letter != 0 && word.size() > 1 && word[0] == '-' && word[1] == option.letter;
}

} // namespace

void refuse_own_options(const std::vector<std::string>& words) {
    for (const auto& word : words) {
        if (word.find_first_of("\n\r") != std::string::npos)
            throw base::UsageError("'" + word.substr(0, word.find_first_of("\n\r")) +
                                   "...' after `--` has several lines; an option of sbatch has one");
        for (const auto& option : own_options)
            if (is_option(word, option))
                throw base::UsageError("'" + word + "' after `--` contradicts what submit writes itself; use " +
                                       std::string(option.advice));
        // Generic resources other than GPUs are allowed.
        if (word.starts_with("--gres") && word.find("gpu") != std::string::npos)
            throw base::UsageError("'" + word + "' after `--` contradicts what submit writes itself; use " +
                                   std::string(gpus));
    }
}

void refuse_several_words(const std::string& name, const std::string& value) {
    if (value.find_first_of(" \t\n\r\v\f\"'\\#") == std::string::npos) return;
    throw base::UsageError(name + " needs one word without blanks, quotes or '#', not '" +
                           value.substr(0, value.find_first_of("\n\r")) + "'");
}

} // namespace ranktune::cli
