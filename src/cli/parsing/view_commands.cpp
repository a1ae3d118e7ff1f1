// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "cli/parsing/commands.hpp"
#include "cli/parsing/option_checks.hpp"
#include "cli/study_input.hpp"
#include "cli/verbs/view_verbs.hpp"

namespace ranktune::cli {
namespace {

using Call = std::function<int()>;

const Names<ExportFormat> export_formats{{"json", ExportFormat::json},
                                         {"csv", ExportFormat::csv},
                                         {"tensorboard", ExportFormat::tensorboard},
                                         {"optuna", ExportFormat::optuna}};

void add_ls(CLI::App& app, Call& call) {
    auto* verb = add_verb(app, "Look", "ls", "The studies of a folder: state, best value, trials, age", "ranktune ls");
    const auto args = std::make_shared<ListArguments>();
    add_path(verb, "DIR", args->directories, "", "Folders of studies, or studies (default: here)");
    add_text_or_json(verb, args->format);
    on_call(verb, call, [args] { return list_studies(*args); });
}

void add_status(CLI::App& app, Call& call) {
    auto* verb = add_verb(app, "Look", "status", "What a study did so far; also while it runs",
                          "ranktune status digits --watch");
    const auto args = std::make_shared<StatusArguments>();
    add_study(verb, args->directory);
    verb->add_flag("-a,--all", args->all, "All trials, not the first 20");
    verb->add_option("-c,--columns", args->columns, "Columns: metrics, hyper-parameters, trial, state, it, time, ...")
        ->type_name("NAME,...")
        ->delimiter(',')
        ->allow_extra_args(false);
    verb->add_option("-s,--sort", args->sort, "Order by a column: lr, or lr:desc")->type_name("NAME");
    verb->add_option("--filter", args->filter, "Only trials for which this holds: 'state == running and lr < 0.1'")
        ->type_name("CONDITION");
    verb->add_flag("-w,--watch", args->watch, "Go on showing what is new, until the study has ended, or Ctrl-C");
    add_text_or_json(verb, args->format);
    on_call(verb, call, [args] {
        args->directory = directory_of(args->directory);
        return status(*args);
    });
}

void add_best(CLI::App& app, Call& call) {
    auto* verb =
        add_verb(app, "Look", "best", "The best trial: metric, configuration, checkpoint", "ranktune best digits");
    struct Arguments {
        std::string study;
        Format format = Format::text;
    };
    const auto args = std::make_shared<Arguments>();
    add_study(verb, args->study);
    add_text_or_json(verb, args->format);
    on_call(verb, call, [args] { return best(directory_of(args->study), args->format); });
}

void add_explain(CLI::App& app, Call& call) {
    auto* verb = add_verb(app, "Look", "explain", "Why a trial is where it is; or where the time of the ranks went",
                          "ranktune explain digits best");
    struct Arguments {
        std::string study;
        std::string trial;
        bool records = false;
        Format format = Format::text;
    };
    const auto args = std::make_shared<Arguments>();
    add_study(verb, args->study);
    add_trial(verb, args->trial)->required(false);
    verb->add_flag("--records", args->records, "Of a trial: the records of the journal that each line rests on");
    add_text_or_json(verb, args->format);
    on_call(verb, call,
            [args] { return explain_trial(directory_of(args->study), args->trial, args->records, args->format); });
}

void add_report(CLI::App& app, Call& call) {
    auto* verb = add_verb(app, "Look", "report", "The study as one HTML file, or several side by side",
                          "ranktune report digits");
    const auto args = std::make_shared<ReportArguments>();
    verb->add_option("STUDY", args->directories, "Study file (TOML), or the directory of a study; several are compared")
        ->required()
        ->type_name("");
    add_path(verb, "-o,--output", args->output, "FILE", "File to write (default: <study.name>-report.html)");
    on_call(verb, call, [args] {
        for (std::string& study : args->directories) study = directory_of(study);
        return report_page(*args);
    });
}

void add_serve(CLI::App& app, Call& call) {
    auto* verb =
        add_verb(app, "Look", "serve", "Live pages of studies for a browser, on 127.0.0.1", "ranktune serve digits");
    const auto args = std::make_shared<ServeArguments>();
    add_path(verb, "DIR", args->directories, "", "Studies, or folders of studies (default: here)");
    add_number(verb, "--port", args->port, "Port (default: any free one)", 0, "a port")->check(CLI::Range(0, 65535));
    verb->add_flag("--read-only", args->read_only, "Pages without controls: whoever has the address can only look");
    on_call(verb, call, [args] {
        if (args->directories.empty()) args->directories.emplace_back(".");
        return serve_pages(*args);
    });
}

void add_compare(CLI::App& app, Call& call) {
    auto* verb = add_verb(app, "Look", "compare", "Studies side by side: their best values over iterations and time",
                          "ranktune compare digits digits-pbt");
    const auto args = std::make_shared<CompareArguments>();
    verb->add_option("STUDY", args->directories, "Study files (TOML), or directories of studies: two or more")
        ->required()
        ->type_name("");
    add_text_or_json(verb, args->format);
    on_call(verb, call, [args] {
        for (std::string& study : args->directories) study = directory_of(study);
        return compare(*args);
    });
}

void add_logs(CLI::App& app, Call& call) {
    auto* verb = add_verb(app, "Look", "logs", "What a trial did and said; without TRIAL what all say",
                          "ranktune logs digits 7");
    const auto args = std::make_shared<LogsArguments>();
    add_study(verb, args->directory);
    add_trial(verb, args->trial, true)->required(false);
    verb->add_flag("-f,--follow", args->follow, "Go on with new lines, until the study has ended, or Ctrl-C");
    add_text_or_json(verb, args->format, "--format");
    on_call(verb, call, [args] {
        args->directory = directory_of(args->directory);
        return logs(*args);
    });
}

void add_note(CLI::App& app, Call& call) {
    auto* verb = add_verb(app, "Look", "note", "Write a note or a tag to a trial, or show its notes",
                          "ranktune note digits 7 \"overfits early\" --tag odd");
    const auto args = std::make_shared<NoteArguments>();
    add_study(verb, args->directory);
    add_trial(verb, args->trial);
    verb->add_option("TEXT", args->text, "The note")->type_name("");
    verb->add_option("-t,--tag", args->tags, "A tag to put on, for `status --filter \"'NAME' in tags\"`")
        ->type_name("NAME")
        ->allow_extra_args(false);
    verb->add_option("--untag", args->untag, "A tag to take off")->type_name("NAME")->allow_extra_args(false);
    on_call(verb, call, [args] {
        args->directory = directory_of(args->directory);
        return note(*args);
    });
}

void add_export(CLI::App& app, Call& call) {
    auto* verb = add_verb(app, "Take out", "export", "The whole study as JSON or CSV, for TensorBoard or Optuna",
                          "ranktune export digits --format csv -o digits.csv");
    const auto args = std::make_shared<ExportArguments>();
    add_study(verb, args->directory);
    verb->add_option("-f,--format", args->format, "json, csv, tensorboard or optuna")
        ->transform(one_of(export_formats))
        ->type_name("FORMAT")
        ->required();
    verb->add_option("--table", args->table, "csv: trials (default) or reports")
        ->check(CLI::IsMember({"trials", "reports"}))
        ->type_name("NAME");
    add_path(verb, "-o,--output", args->output, "PATH",
             "File to write (default: standard output); tensorboard: new folder (default: STUDY-tensorboard)");
    on_call(verb, call, [args] {
        args->directory = directory_of(args->directory);
        return export_study(*args);
    });
}

void add_checkpoint(CLI::App& app, Call& call) {
    auto* verb = add_verb(app, "Take out", "checkpoint", "Write the weights of a trial as a safetensors file",
                          "ranktune checkpoint digits best");
    const auto args = std::make_shared<CheckpointArguments>();
    add_study(verb, args->directory);
    add_trial(verb, args->trial);
    verb->add_option("-f,--format", args->format, "safetensors")
        ->check(CLI::IsMember({"safetensors"}))
        ->type_name("FORMAT");
    verb->add_flag("-a,--all", args->all, "The state of the optimizer and the scaling of the data, too");
    add_path(verb, "-o,--output", args->output, "FILE", "File to write (default: STUDY-TRIAL-ITERATION.safetensors)");
    on_call(verb, call, [args] {
        args->directory = directory_of(args->directory);
        return extract_checkpoint(*args);
    });
}

} // namespace

void add_view_verbs(CLI::App& app, std::function<int()>& call) {
    for (const auto add : {add_ls, add_status, add_best, add_explain, add_report, add_serve, add_compare, add_logs,
                           add_note, add_export, add_checkpoint})
        add(app, call);
}

} // namespace ranktune::cli
