// SPDX-License-Identifier: Apache-2.0
#include "cli/parsing/steer_commands.hpp"

#include <string>

#include "cli/parsing/option_checks.hpp"
#include "cli/study_input.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::cli {

using study::SteerVerb;

void SteerCommands::add(CLI::App& app) {
    add_trial_verb(app, SteerVerb::pause, "Pause a trial of a running study: it saves, and frees its ranks");
    add_trial_verb(app, SteerVerb::resume, "Let a trial go on that `pause` has paused");
    add_trial_verb(app, SteerVerb::cancel, "Stop a trial of a running study for good");
    add_add(app);
    add_set(app);
}

void SteerCommands::call(SteerVerb verb) {
    called_ = true;
    arguments_.verb = verb;
    verb_ = [this] {
        arguments_.directory = absolute_directory(directory_of(arguments_.directory));
        return steer(arguments_);
    };
}

void SteerCommands::add_trial_verb(CLI::App& app, SteerVerb verb, const char* words) {
    auto* command = app.add_subcommand(std::string(study::name(verb)), words);
    add_study(command, arguments_.directory);
    command->add_option("TRIAL", arguments_.trial, "Number of the trial")
        ->required()
        ->type_name("")
        ->transform(whole_number(0, "the number of a trial"));
    command->callback([this, verb] { call(verb); });
}

void SteerCommands::add_add(CLI::App& app) {
    auto* command = app.add_subcommand("add", "Add trials to a running study");
    add_study(command, arguments_.directory);
    auto* words = command
                      ->add_option("NAME=VALUE", arguments_.settings,
                                   "Hyper-parameters of one trial: lr=0.01 hidden=[128,64]; others are suggested")
                      ->type_name("");
    command->add_option("--csv", arguments_.csv, "Several trials: a line with names, then one line for each")
        ->type_name("FILE")
        ->check(no_empty_path())
        ->excludes(words);
    command->callback([this] {
        if (arguments_.settings.empty() && arguments_.csv.empty())
            throw base::UsageError("add: which trial? ranktune add STUDY lr=0.01, or --csv FILE");
        call(SteerVerb::add);
    });
}

void SteerCommands::add_set(CLI::App& app) {
    auto* command = app.add_subcommand("set", "Change keys of a running study: study.num_trials=120");
    add_study(command, arguments_.directory);
    command->add_option("KEY=VALUE", arguments_.settings, "Budgets and limits: those of [study], [failure] and [stop]")
        ->required()
        ->type_name("");
    command->callback([this] { call(SteerVerb::set); });
}

} // namespace ranktune::cli
