// SPDX-License-Identifier: Apache-2.0
#include "cli/parsing/view_commands.hpp"

#include <string>

#include "cli/parsing/option_checks.hpp"
#include "cli/study_input.hpp"

namespace ranktune::cli {
namespace {

const Names<ExportFormat> export_formats{{"json", ExportFormat::json},
                                         {"csv", ExportFormat::csv},
                                         {"tensorboard", ExportFormat::tensorboard},
                                         {"optuna", ExportFormat::optuna}};

} // namespace

void ViewCommands::add(CLI::App& app) {
    add_ls(app);
    add_status(app);
    add_best(app);
    add_explain(app);
    add_report(app);
    add_compare(app);
    add_serve(app);
    add_logs(app);
    add_export(app);
    add_checkpoint(app);
    add_note(app);
    add_extend(app);
}

void ViewCommands::add_ls(CLI::App& app) {
    auto* verb = app.add_subcommand("ls", "The studies of a folder: state, best value, trials, age");
    verb->add_option("DIR", list_.directories, "Folders of studies, or studies (default: here)")
        ->type_name("")
        ->check(no_empty_path());
    add_text_or_json(verb, list_.format);
    verb->callback([this] { verb_ = [this] { return list_studies(list_); }; });
}

void ViewCommands::add_status(CLI::App& app) {
    auto* verb = app.add_subcommand("status", "What a study did so far; also while it runs");
    add_study(verb, status_.directory);
    verb->add_flag("-a,--all", status_.all, "All trials, not the first 20");
    verb->add_option("-c,--columns", status_.columns, "Columns: metrics, hyper-parameters, trial, state, it, time, ...")
        ->type_name("NAME,...")
        ->delimiter(',')
        ->allow_extra_args(false);
    verb->add_option("-s,--sort", status_.sort, "Order by a column: lr, or lr:desc")->type_name("NAME");
    verb->add_option("--filter", status_.filter, "Only trials for which this holds: 'state == running and lr < 0.1'")
        ->type_name("CONDITION");
    verb->add_flag("-w,--watch", status_.watch, "Go on showing what is new, until the study has ended, or Ctrl-C");
    add_text_or_json(verb, status_.format);
    verb->callback([this] {
        verb_ = [this] {
            status_.directory = directory_of(status_.directory);
            return status(status_);
        };
    });
}

void ViewCommands::add_best(CLI::App& app) {
    auto* verb = app.add_subcommand("best", "The best trial: metric, configuration, checkpoint");
    add_study(verb, study_);
    add_text_or_json(verb, format_);
    verb->callback([this] { verb_ = [this] { return best(directory_of(study_), format_); }; });
}

void ViewCommands::add_explain(CLI::App& app) {
    auto* verb = app.add_subcommand("explain", "Why a trial is where it is; or where the time of the ranks went");
    add_study(verb, study_);
    add_trial(verb, trial_)->required(false);
    verb->add_flag("--records", explain_records_, "Of a trial: the records of the journal that each line rests on");
    add_text_or_json(verb, format_);
    verb->callback(
        [this] { verb_ = [this] { return explain_trial(directory_of(study_), trial_, explain_records_, format_); }; });
}

void ViewCommands::add_report(CLI::App& app) {
    auto* verb = app.add_subcommand("report", "The study as one HTML file, or several side by side");
    verb->add_option("STUDY", report_.directories,
                     "Study file (TOML), or the directory of a study; several are compared")
        ->required()
        ->type_name("");
    verb->add_option("-o,--output", report_.output, "File to write (default: <study.name>-report.html)")
        ->type_name("FILE")
        ->check(no_empty_path());
    verb->callback([this] {
        verb_ = [this] {
            for (std::string& study : report_.directories) study = directory_of(study);
            return report_page(report_);
        };
    });
}

void ViewCommands::add_compare(CLI::App& app) {
    auto* verb = app.add_subcommand("compare", "Studies side by side: their best values over iterations and time");
    verb->add_option("STUDY", compare_.directories, "Study files (TOML), or directories of studies: two or more")
        ->required()
        ->type_name("");
    add_text_or_json(verb, compare_.format);
    verb->callback([this] {
        verb_ = [this] {
            for (std::string& study : compare_.directories) study = directory_of(study);
            return compare(compare_);
        };
    });
}

void ViewCommands::add_serve(CLI::App& app) {
    auto* verb = app.add_subcommand("serve", "Live pages of studies for a browser, on 127.0.0.1");
    verb->add_option("DIR", serve_.directories, "Studies, or folders of studies (default: here)")
        ->type_name("")
        ->check(no_empty_path());
    verb->add_option("--port", serve_.port, "Port (default: any free one)")
        ->type_name("N")
        ->transform(whole_number(0, "a port"))
        ->check(CLI::Range(0, 65535));
    verb->add_flag("--read-only", serve_.read_only, "Pages without controls: whoever has the address can only look");
    verb->callback([this] {
        verb_ = [this] {
            if (serve_.directories.empty()) serve_.directories.emplace_back(".");
            return serve_pages(serve_);
        };
    });
}

void ViewCommands::add_logs(CLI::App& app) {
    auto* verb = app.add_subcommand("logs", "What a trial did and said; without TRIAL what all say");
    add_study(verb, logs_.directory);
    add_trial(verb, logs_.trial, true)->required(false);
    verb->add_flag("-f,--follow", logs_.follow, "Go on with new lines, until the study has ended, or Ctrl-C");
    add_text_or_json(verb, logs_.format, "--format");
    verb->callback([this] {
        verb_ = [this] {
            logs_.directory = directory_of(logs_.directory);
            return logs(logs_);
        };
    });
}

void ViewCommands::add_export(CLI::App& app) {
    auto* verb = app.add_subcommand("export", "The whole study as JSON or CSV, for TensorBoard or Optuna");
    add_study(verb, export_.directory);
    verb->add_option("-f,--format", export_.format, "json, csv, tensorboard or optuna")
        ->transform(one_of(export_formats))
        ->type_name("FORMAT")
        ->required();
    verb->add_option("--table", export_.table, "csv: trials (default) or reports")
        ->check(CLI::IsMember({"trials", "reports"}))
        ->type_name("NAME");
    verb->add_option("-o,--output", export_.output,
                     "File to write (default: standard output); tensorboard: new folder (default: STUDY-tensorboard)")
        ->type_name("PATH")
        ->check(no_empty_path());
    verb->callback([this] {
        verb_ = [this] {
            export_.directory = directory_of(export_.directory);
            return export_study(export_);
        };
    });
}

void ViewCommands::add_extend(CLI::App& app) {
    auto* verb = app.add_subcommand("extend", "Longer training for some trials, as a study of their own");
    add_study(verb, study_);
    verb->add_option("TRIAL", extend_.trials, "Numbers of trials; or best, or best 3: the three best")
        ->required()
        ->type_name("")
        ->check(trial_or_best());
    verb->add_option("--max-iterations", extend_.max_iterations, "Up to which iteration they are trained")
        ->required()
        ->type_name("N")
        ->transform(whole_number(1, "a number of iterations"));
    verb->add_option("-o,--output", extend_.output, "Directory of the new study (default: STUDY-extended)")
        ->type_name("DIR")
        ->check(no_empty_path());
    verb->callback([this] {
        verb_ = [this] {
            extend_.directory = directory_of(study_);
            return extend(extend_);
        };
    });
}

void ViewCommands::add_note(CLI::App& app) {
    auto* verb = app.add_subcommand("note", "Write a note or a tag to a trial, or show its notes");
    add_study(verb, study_);
    add_trial(verb, note_.trial);
    verb->add_option("TEXT", note_.text, "The note")->type_name("");
    verb->add_option("-t,--tag", note_.tags, "A tag to put on, for `status --filter \"'NAME' in tags\"`")
        ->type_name("NAME")
        ->allow_extra_args(false);
    verb->add_option("--untag", note_.untag, "A tag to take off")->type_name("NAME")->allow_extra_args(false);
    verb->callback([this] {
        verb_ = [this] {
            note_.directory = directory_of(study_);
            return note(note_);
        };
    });
}

void ViewCommands::add_checkpoint(CLI::App& app) {
    auto* verb = app.add_subcommand("checkpoint", "Write the weights of a trial as a safetensors file");
    add_study(verb, study_);
    add_trial(verb, checkpoint_.trial);
    verb->add_option("-f,--format", checkpoint_format_, "safetensors")
        ->check(CLI::IsMember({"safetensors"}))
        ->type_name("FORMAT");
    verb->add_flag("-a,--all", checkpoint_.all, "The state of the optimizer and the scaling of the data, too");
    verb->add_option("-o,--output", checkpoint_.output, "File to write (default: STUDY-TRIAL-ITERATION.safetensors)")
        ->type_name("FILE")
        ->check(no_empty_path());
    verb->callback([this] {
        verb_ = [this] {
            checkpoint_.directory = directory_of(study_);
            return extract_checkpoint(checkpoint_);
        };
    });
}

} // namespace ranktune::cli
