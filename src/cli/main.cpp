// SPDX-License-Identifier: Apache-2.0
// The command line: options, help, and errors into exit codes.

#include "ranktune/run_program.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iostream>
#include <span>

#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "cli/help/footers.hpp"
#include "cli/help/help.hpp"
#include "cli/parsing/commands.hpp"
#include "cli/parsing/option_advice.hpp"
#include "cli/parsing/option_checks.hpp"
#include "cli/study_input.hpp"
#include "cli/terminal/message.hpp"
#include "cli/verbs/map.hpp"
#include "cli/verbs/predict.hpp"
#include "cli/verbs/verbs.hpp"
#include "cli/version.hpp"
#include "launch/how_launched.hpp"
#include "process/background.hpp"
#include "process/signals.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/trainables/algorithms.hpp"
#include "report/explain/next_steps.hpp"
#include "report/view/load.hpp"
#include "storage/journal/journal.hpp"

namespace ranktune {
namespace {

using namespace cli;

constexpr int exit_runtime_error = 1;
constexpr int exit_usage = 2;
constexpr int exit_no_result = static_cast<int>(study::StudyOutcome::no_success);

/// Beside those that run a study.
constexpr const char* verbs_with_effects[] = {"init",   "submit", "stop",       "simulate", "extend",
                                              "pause",  "resume", "cancel",     "add",      "set",
                                              "report", "note",   "checkpoint", "reference"};

/// Reports a failed write to standard output. A verb with effects keeps its exit code: otherwise a script would take it
/// for a failure and repeat it.
int checked_output(int code, bool has_effects) {
    std::cout.flush();
    if (std::cout && std::ferror(stdout) == 0) return code;
    pollfd out{STDOUT_FILENO, POLLOUT, 0};
    if (poll(&out, 1, 0) > 0 && (out.revents & POLLERR) != 0) return code; // a closed pipe, such as `| head`
    const int told = has_effects || code != 0 ? code : exit_runtime_error;
    std::cerr << error_message(
        "standard output could not be written, and what was to be shown is lost; is there room, "
        "and does somebody read it?",
        told);
    return told;
}

/// The command line as a whole: values that the options fill, and the verb to call.
class App {
  public:
    explicit App(Invocation invocation) : invocation_(std::move(invocation)) {
        app_.require_subcommand(1);
        app_.set_version_flag("--version", std::string("ranktune ") + version());
        app_.formatter(help_formatter());
        add_init(); // in the order of the help
        add_validate();
        add_keys_and_algorithms();
        add_run();
        add_map();
        add_predict();
        add_submit();
        add_supervise();
        add_stop();
        add_simulate();
        add_extend();
        add_steer_verbs(app_, call_);
        add_view_verbs(app_, call_);
        add_doctor();
        add_replay();
        add_support();
        add_unlisted();
        app_.footer(footer); // last: verbs inherit the footer that is set when they are added
    }

    int main(int argc, char** argv) {
        // Words after `--` are for sbatch, or the command of map.
        const auto end = std::find(argv + std::min(argc, 2), argv + argc, std::string_view("--"));
        const std::string_view verb = argc > 1 ? argv[1] : "";
        if ((verb == "submit" || verb == "map") && end != argv + argc) {
            (verb == "map" ? map_.command : submit_.sbatch).assign(end + 1, argv + argc);
            argc = static_cast<int>(end - argv);
        }
        // Before CLI11 parses: with --help it would ignore an unknown verb.
        if (const std::string unknown = unknown_verb(argc, argv); !unknown.empty()) {
            if (launch::speaks()) std::cerr << error_message(unknown, exit_usage);
            return exit_usage;
        }
        try {
            std::vector<std::string> words = with_study_here({argv + std::min(argc, 1), argv + argc});
            std::ranges::reverse(words); // as CLI11 wants them
            app_.parse(std::move(words));
        } catch (const CLI::Success& call) { // help, or the version
            return checked_output(app_.exit(call), false);
        } catch (const CLI::ParseError& error) {
            if (launch::speaks()) std::cerr << error_message(explain(error, argc, argv), exit_usage);
            return exit_usage;
        }
        const int code = call_();
        const bool has_effects =
            std::ranges::any_of(verbs_with_effects, [this](const char* name) { return app_.got_subcommand(name); });
        return checked_output(code, runs_study_ || has_effects);
    }

  private:
    /// Within the directory of a study, that is the STUDY of a verb that is given none: the first word that belongs to
    /// no option is no path that exists.
    std::vector<std::string> with_study_here(std::vector<std::string> words) const {
        const auto all = app_.get_subcommands({});
        const auto verb = std::ranges::find(all, words.empty() ? std::string() : words[0], &CLI::App::get_name);
        if (verb == all.end()) return words;
        const auto takes = [&](const std::string& name) { return (*verb)->get_option_no_throw(name); };
        if (takes("STUDY") == nullptr || !storage::has_journal(storage::posix_file_system(), ".")) return words;
        std::size_t at = 1;
        while (at < words.size() && is_option(words[at])) {
            const std::string& word = words[at++];
            const CLI::Option* option = takes(word[1] == '-' ? word : word.substr(0, 2));
            const bool value_follows = word[1] == '-' || word.size() == 2;
            if (option != nullptr && option->get_items_expected_max() > 0 && value_follows) ++at;
        }
        if (at >= words.size() || access(words[at].c_str(), F_OK) != 0) words.insert(words.begin() + 1, ".");
        return words;
    }

    /// Names of the verbs that the help lists.
    std::vector<std::string> verbs() const {
        std::vector<std::string> names;
        for (const auto* verb : listed_verbs(app_)) names.push_back(verb->get_name());
        return names;
    }

    /// The message for a first non-option word that is not a verb; empty when it is one.
    std::string unknown_verb(int argc, char** argv) const {
        const auto first = std::find_if(argv + 1, argv + argc, [](const char* word) { return word[0] != '-'; });
        if (first >= argv + argc) return "";
        for (const auto* verb : app_.get_subcommands({}))
            if (verb->get_name() == *first) return "";
        const auto known = verbs();
        return std::string("unknown verb '") + *first + "'" +
               (access(*first, F_OK) == 0 ? "; a study is run by `ranktune run " + std::string(*first) + "`"
                                          : base::suggestion(*first, std::span<const std::string>(known))) +
               " (" + base::join(known) + ")";
    }

    std::string explain(const CLI::ParseError& error, int argc, char** argv) const {
        if (argc <= 1) return "a verb is needed: " + base::join(verbs()) + " (ranktune --help)";
        const std::string first = argv[1];
        if (std::string unknown = unknown_option(argc, argv); !unknown.empty()) return unknown;
        std::string what = error.what();
        if (what.rfind("The ", 0) == 0) what[0] = 't';
        return what + " (ranktune " + (first[0] == '-' ? "" : first + " ") + "--help)";
    }

    /// The message for the first option that the verb does not have; empty when there is none.
    std::string unknown_option(int argc, char** argv) const {
        const std::string first = argv[1];
        const CLI::App& verb = first[0] == '-' ? app_ : *app_.get_subcommand(first);
        std::vector<std::string> known;
        for (const CLI::Option* option : verb.get_options()) {
            for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
            for (const std::string& name : option->get_snames()) known.push_back("-" + name);
        }
        for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
            const std::string word = std::string(argv[i]).substr(0, std::string_view(argv[i]).find('='));
            if (!is_option(word) || std::ranges::find(known, word) != known.end()) continue;
            if (word[1] != '-' && std::ranges::find(known, word.substr(0, 2)) != known.end()) continue; // -oDIR
            std::string advice = option_advice(word, first);
            if (advice.empty()) advice = base::suggestion(word, std::span<const std::string>(known));
            return "unknown option '" + word + "'" + advice + " (ranktune " + (first[0] == '-' ? "" : first + " ") +
                   "--help)";
        }
        return "";
    }

    CLI::App* add_verb(const char* group, const char* name, const char* words, const char* example = nullptr) {
        return cli::add_verb(app_, group, name, words, example);
    }
    void on_call(CLI::App* verb, std::function<int()> call) { cli::on_call(verb, call_, std::move(call)); }

    void add_init() {
        auto* verb =
            add_verb("Begin", "init", "Write a commented study file NAME.toml, and what it needs to run at once",
                     "ranktune init digits");
        verb->add_option("NAME", init_.name, "Name of the study")->required()->type_name("");
        verb->add_option("--template", init_.kind,
                         "digits: a built-in model and its data; program: your own program, which reports; printed: "
                         "one that only prints")
            ->type_name("WHAT")
            ->check(CLI::IsMember({"digits", "program", "printed"}))
            ->capture_default_str();
        const auto names = [](const auto& infos) {
            std::vector<std::string> all;
            for (const auto& info : infos) all.push_back(info->name);
            return all;
        };
        const study::Algorithms known = ranktune::trainables::known_algorithms();
        verb->add_option("--searcher", init_.searcher, "With this searcher, and its options in comments")
            ->type_name("TYPE")
            ->check(usually(names(known.searchers)));
        verb->add_option("--scheduler", init_.scheduler, "With this scheduler, and its options in comments")
            ->type_name("TYPE")
            ->check(usually(names(known.schedulers)));
        on_call(verb, [this] { return init(init_); });
    }
    void add_validate() {
        auto* verb = add_verb("Begin", "validate", "Check a study file: all mistakes together, or the plan",
                              "ranktune validate digits.toml");
        add_study(verb, run_.study);
        add_overrides(verb, overrides_);
        verb->add_flag("--elsewhere", validate_.elsewhere,
                       "The trials run on other machines: do not look for the program and script of the command here");
        verb->add_flag("-v,--verbose", validate_.verbose, "Also how much disk space checkpoints take");
        on_call(verb, [this, verb] {
            run_.overrides = overrides_.in_order(*verb);
            return validate(run_, validate_);
        });
    }
    void add_keys_and_algorithms() {
        auto* verb = add_verb("Begin", "keys", "The keys of a study file: what they take, their defaults, what they do",
                              "ranktune keys failure");
        verb->add_option("NAME", name_, "A table or a key: failure, stop.metric, keep (default: all)")->type_name("");
        on_call(verb, [this] { return keys(name_); });

        auto* list = add_verb("Begin", "algorithms", "The searchers and schedulers of a study file, with their options",
                              "ranktune algorithms");
        list->add_flag("--markdown", markdown_, "As a page of Markdown");
        on_call(list, [this] { return cli::algorithms(markdown_); });
    }
    void add_run() {
        auto* verb = add_verb("Run", "run", "Run a study: here, under mpirun, or as the tasks of srun");
        verb->footer(run_footer);
        add_study(verb, run_.study);
        add_run_options(verb, run_, overrides_);
        on_call(verb, [this, verb] {
            run_.overrides = overrides_.in_order(*verb);
            runs_study_ = !run_.dry_run;
            return run(run_, invocation_);
        });
    }
    void add_map() {
        auto* verb = add_verb("Run", "map", "Run a command once for each row of a table, a grid or an array");
        verb->footer(map_footer);
        auto* input =
            add_path(verb, "-i,--input", map_.input, "FILE", "A CSV file: each row is a task, {column} a placeholder");
        auto* grid = verb->add_option("-g,--grid", map_.grid, "All combinations: 'lr=[0.1,0.01]' 'seed=range(100)'")
                         ->type_name("NAME=VALUES")
                         ->excludes(input);
        auto* array =
            verb->add_option("-a,--array", map_.array, "Numbers as for sbatch, with Slurm's variables: 1-1000%50")
                ->type_name("NUMBERS")
                ->excludes(input)
                ->excludes(grid);
        auto* kept = verb->add_flag("--kept", map_.kept, "The command goes through many rows, by ranktune.tasks()")
                         ->excludes(array);
        add_number(verb, "--restart-after", map_.restart_after, "Start the kept command anew after so many rows", 1,
                   "a number of rows")
            ->needs(kept);
        auto* retries = add_number(verb, "--retries", map_.retries,
                                   "A task that fails is tried so often again (default 0)", 0, "a number of retries");
        verb->add_option("--retry-on", map_.retry_on,
                         "Only after these exit codes (128 + N for signal N) and --timeout: 75,137")
            ->type_name("CODES")
            ->delimiter(',')
            ->allow_extra_args(false)
            ->needs(retries);
        verb->add_option("--timeout", map_.timeout, "A task that takes longer fails: 90s, 2h")->type_name("TIME");
        verb->add_flag("--write", map_.write, "Only write the study file, for submit");
        add_run_options(verb, map_.run, overrides_, "Study directory and, with .toml, its file (default: map)");
        on_call(verb, [this, verb] {
            map_.run.overrides = overrides_.in_order(*verb);
            runs_study_ = !map_.run.dry_run && !map_.write;
            return map(map_, invocation_);
        });
    }
    void add_predict() {
        auto* verb = add_verb("Run", "predict", "What trained models say of the samples of a file");
        verb->footer(predict_footer);
        add_study(verb, predict_.study);
        add_trial(verb, predict_.trial);
        add_path(verb, "-i,--input", predict_.input, "FILE",
                 "Samples: .h5 (FILE:DATASET names a data set), .npy, .safetensors")
            ->required();
        add_number(verb, "--top", predict_.top, "With best: the N best trials predict together", 1,
                   "a number of trials, 1 at least");
        verb->add_option("--combine", predict_.combine, "How: mean (default); vote, of classifiers; all, side by side")
            ->type_name("HOW")
            ->check(CLI::IsMember({"mean", "vote", "all"}));
        auto* command =
            verb->add_option("--command", predict_.command,
                             "The program in which models predict (default: that of [predict] in the study file): "
                             "\"python3 predict.py {checkpoint}\"")
                ->type_name("COMMAND");
        verb->add_option("--python", predict_.python, "A class or function of Python in its place: predict.py:predict")
            ->type_name("FILE:NAME")
            ->excludes(command);
        add_number(verb, "--batch", predict_.batch, "Samples that a model gets at once (default 256)", 1,
                   "a number of samples, 1 at least");
        add_number(verb, "--range", predict_.range,
                   "Samples that one rank predicts and records at once (default: by their number and size)", 1,
                   "a number of samples, 1 at least");
        auto* verify =
            verb->add_flag("--verify", predict_.verify,
                           "Predict nothing: compare the output with the digests that its ranks have reported");
        auto* write =
            verb->add_flag("--write", predict_.write, "Only write the study file, for submit")->excludes(verify);
        add_run_options(verb, predict_.run, overrides_, "The output, an HDF5 file");
        for (const char* begins : {"--fresh", "--dry-run", "--resume-errored", "--restart-errored"})
            verb->get_option(begins)->excludes(verify)->excludes(write);
        verb->get_option("--output")->type_name("FILE")->required();
        on_call(verb, [this, verb] {
            predict_.run.overrides = overrides_.in_order(*verb);
            runs_study_ = !predict_.run.dry_run && !predict_.write && !predict_.verify;
            return predict(predict_, invocation_);
        });
    }
    void add_submit() {
        auto* verb = add_verb("Run", "submit", "Write the job script of a study and hand it to Slurm");
        verb->footer(submit_footer);
        const auto number = [&](const char* name, auto& value, const char* words) {
            add_number(verb, name, value, words, 1, "a number, 1 at least");
        };
        add_study(verb, submit_.study);
        add_overrides(verb, overrides_);
        add_path(verb, "-o,--output", submit_.directory, "DIR", "Study directory (default: ./<study.name>)");
        number("-N,--nodes", submit_.nodes, "Nodes, all alike (default 1)");
        number("--gpus-per-node", submit_.gpus_per_node, "GPUs of each node: one worker for each");
        number("--workers-per-node", submit_.workers_per_node, "Without GPUs: workers of each node (default 4)");
        number("--cpus-per-worker", submit_.cpus_per_worker,
               "Cores of each worker (default: its GPU's share of the node's; else resources.cpus_per_rank)");
        verb->add_option("-t,--time", submit_.time,
                         "Time limit of the job: 4:00:00, 90m, 1-12:00:00. Without, STUDY is a "
                         "directory, and the job is that of its last submission")
            ->type_name("TIME");
        verb->add_option("-A,--account", submit_.account, "Account, over the site file's")->type_name("NAME");
        verb->add_option("-p,--partition", submit_.partition, "Partition, over the site file's")->type_name("NAME");
        number("--chain", submit_.chain, "So many jobs, one after the other, until the study is finished");
        verb->add_flag("--print", submit_.print, "Print the script, layout and cost; submit nothing");
        on_call(verb, [this, verb] {
            submit_.overrides = overrides_.in_order(*verb);
            return submit(submit_, invocation_);
        });
    }
    /// Parses the words after `run` in the command of `supervise`.
    static RunArguments run_arguments(const std::vector<std::string>& words) {
        RunArguments arguments;
        Overrides overrides;
        CLI::App app;
        add_study(&app, arguments.study);
        add_run_options(&app, arguments, overrides);
        try {
            app.parse(std::vector<std::string>(words.rbegin(), words.rend())); // CLI11 takes them from the back
        } catch (const CLI::ParseError& error) {
            throw base::UsageError(std::string("in the command after `run`: ") + error.what());
        }
        arguments.overrides = overrides.in_order(app);
        return arguments;
    }
    void add_supervise() {
        auto* verb =
            add_verb("Run", "supervise", "Run `srun|mpirun ... ranktune run`; start it again when a rank dies");
        verb->footer(supervise_footer);
        add_path(verb, "--dir", supervise_.directory, "DIR",
                 "Study, by its directory or file (default: as the command says)");
        add_number(verb, "--max-restarts", supervise_.max_restarts, "Restarts at most (default: 20)", 0,
                   "a number of restarts");
        add_number(verb, "--launcher-wait", supervise_.launcher_wait_s,
                   "End a launcher that still runs so long after its study (default: 90; 0: never)", 0,
                   "a number of seconds")
            ->type_name("SECONDS");
        verb->add_option("COMMAND", supervise_.command, "After `--`: the line that runs the study")
            ->required()
            ->type_name("");
        on_call(verb, [this] {
            runs_study_ = true;
            if (!supervise_.directory.empty()) supervise_.directory = directory_of(supervise_.directory);
            return supervise(supervise_, run_arguments);
        });
    }
    void add_stop() {
        auto* verb = add_verb("Run", "stop", "End a running study after checkpoints; `run` goes on with it",
                              "ranktune stop digits");
        add_study(verb, study_);
        on_call(verb, [this] { return stop(directory_of(study_)); });
    }
    void add_simulate() {
        auto* verb = add_verb("Run", "simulate", "What a study would do on so many groups, in virtual time");
        verb->footer(simulate_footer);
        add_study(verb, simulate_.study);
        add_overrides(verb, overrides_);
        add_number(verb, "--groups", simulate_.groups, "Groups of ranks that train side by side", 1,
                   "a number of groups, 1 at least")
            ->required();
        verb->add_option("--hours", simulate_.hours, "Virtual time after which the study ends (as study.time_budget)")
            ->type_name("H")
            ->check(number_between(1e-3, 1e6));
        add_path(verb, "--model", simulate_.model, "PATH",
                 "Learning curves and times (TOML; default: built in), or the directory of an earlier study");
        add_path(verb, "--faults", simulate_.faults, "FILE",
                 "Failures, and how long jobs are (TOML; default: nothing fails)");
        auto* sweep = verb->add_option("--sweep", simulate_.sweeps,
                                       "Values of a key to compare in a table; may be repeated: all combinations")
                          ->type_name("KEY=A,B,...")
                          ->allow_extra_args(false);
        auto* seeds = add_number(verb, "--seeds", simulate_.seeds, "So many seeds, from study.seed on, as a table", 1,
                                 "a number of seeds, 1 at least")
                          ->type_name("K");
        auto* output = add_path(verb, "-o,--output", simulate_.directory, "DIR",
                                "Directory of the simulated study (default: ./<study.name>-simulated)");
        auto* fresh =
            verb->add_flag("--fresh", simulate_.fresh, "An existing directory is renamed to DIR~1, DIR~2, ...");
        for (auto* table : {sweep, seeds}) table->excludes(output)->excludes(fresh);
        on_call(verb, [this, verb] {
            simulate_.overrides = overrides_.in_order(*verb);
            return simulate(simulate_);
        });
    }
    void add_extend() {
        auto* verb = add_verb("Run", "extend", "Longer training for some trials, as a study of their own",
                              "ranktune extend digits best 3 --max-iterations 200");
        add_study(verb, extend_.directory);
        verb->add_option("TRIAL", extend_.trials, "Numbers of trials; or best, or best 3: the three best")
            ->required()
            ->type_name("")
            ->check(trial_or_best());
        add_number(verb, "--max-iterations", extend_.max_iterations, "Up to which iteration they are trained", 1,
                   "a number of iterations")
            ->required();
        add_path(verb, "-o,--output", extend_.output, "DIR", "Directory of the new study (default: STUDY-extended)");
        on_call(verb, [this] {
            extend_.directory = directory_of(extend_.directory);
            return extend(extend_);
        });
    }
    void add_doctor() {
        auto* verb =
            add_verb("When something is wrong", "doctor",
                     "What this machine has for a study, what is wrong, and what mends it", "ranktune doctor digits");
        verb->add_option("STUDY", study_,
                         "Study file, or the directory of a study or where one is to be (default: here)")
            ->type_name("");
        add_text_or_json(verb, format_);
        verb->add_flag("--clean", clean_, "Remove what killed ranks have left in /dev/shm and $TMPDIR");
        on_call(verb, [this] { return doctor(study_.empty() ? study_ : directory_of(study_), format_, clean_); });
    }
    void add_replay() {
        auto* verb =
            add_verb("When something is wrong", "replay", "Rebuild a study's state from its journal, and check it",
                     "ranktune replay digits --verify");
        add_study(verb, replay_.directory);
        verb->add_flag("--verify", replay_.verify,
                       "Ask every algorithm again and compare its decisions with the journal's");
        add_number(verb, "--until", replay_.until, "Stop after N records", 1, "a number of records, 1 at least");
        verb->add_flag("--logical-digest", replay_.logical_digest,
                       "Print a digest of suggestions, outcomes and decisions, without times, hosts and attempts");
        verb->add_option("--schedule", replay_.schedule, "Print a study file that repeats a trial's hyper-parameters")
            ->type_name("TRIAL")
            ->excludes("--verify")
            ->excludes("--logical-digest")
            ->transform(trial_or_best());
        on_call(verb, [this] {
            replay_.directory = directory_of(replay_.directory);
            return replay(replay_);
        });
    }
    void add_support() {
        auto* verb =
            add_verb("When something is wrong", "support",
                     "What somebody who helps needs, as DIR-support.tar.gz, 5 MB at most", "ranktune support digits");
        add_study(verb, study_);
        add_path(verb, "-o,--output", output_, "FILE", "File to write");
        on_call(verb, [this] { return support(directory_of(study_), output_); });
    }
    /// What programs call.
    void add_unlisted() {
        auto* list = add_verb(unlisted, "hosts", "The hosts of this job, one line per task (for the job scripts)");
        on_call(list, [] { return hosts(); });

        auto* serve =
            add_verb(unlisted, "ask", "Hand out trials and take their results, in lines of JSON (for Python)");
        add_study(serve, run_.study);
        add_overrides(serve, overrides_);
        add_path(serve, "-o,--output", run_.directory, "DIR", "Study directory (default: ./<study.name>)");
        on_call(serve, [this, serve] {
            run_.overrides = overrides_.in_order(*serve);
            runs_study_ = true;
            return ask(run_);
        });

        auto* pages = add_verb(unlisted, "reference", "Write what is made from the program's tables (for the build)");
        pages->add_option("KIND", name_, "pages, man or completions")
            ->required()
            ->type_name("")
            ->check(CLI::IsMember({"pages", "man", "completions"}));
        add_path(pages, "DIR", output_, "", "Folder to write into")->required();
        on_call(pages, [this] { return reference(name_, output_, command_line_of(app_)); });
    }

    Invocation invocation_;
    RunArguments run_;
    MapArguments map_;
    PredictArguments predict_;
    SubmitArguments submit_;
    SimulateArguments simulate_;
    ReplayArguments replay_;
    SuperviseArguments supervise_;
    ExtendArguments extend_;
    Overrides overrides_;
    InitArguments init_;
    bool markdown_ = false;
    std::string study_; ///< STUDY of stop, doctor and support
    ValidateOptions validate_;
    Format format_ = Format::text;
    bool clean_ = false;
    std::string output_;
    std::string name_; ///< of a key, or what `reference` writes
    CLI::App app_{"Hyper-parameter optimisation and distributed training over MPI: one sbatch, one srun, one program.",
                  "ranktune"};
    std::function<int()> call_; ///< what the parsed verb does
    bool runs_study_ = false;   ///< the exit code is the study's
};

Invocation invocation_of(int argc, char** argv) {
    Invocation invocation;
    std::error_code error;
    invocation.program = std::filesystem::read_symlink("/proc/self/exe", error).string();
    if (error) invocation.program = argv[0];
    invocation.arguments.assign(argv + 1, argv + argc);
    return invocation;
}

int run_verb(int argc, char** argv) {
    try {
        const Invocation invocation = invocation_of(argc, argv);
        report::name_program(std::filesystem::path(invocation.program).filename().string());
        return App(invocation).main(argc, argv);
    } catch (const report::NoResult& error) {
        std::cerr << error_message(error.what(), exit_no_result);
        return exit_no_result;
    } catch (const base::UsageError& error) {
        std::cerr << error_message(error.what(), exit_usage);
        return exit_usage;
    } catch (const std::exception& error) {
        std::cerr << error_message(error.what(), exit_runtime_error);
        return exit_runtime_error;
    }
}

} // namespace

int run_program(int argc, char** argv) {
    process::outlive_file_size_limit();
    const int code = run_verb(argc, argv);
    process::end_with_threads_left_behind(code);
    return code;
}

} // namespace ranktune
