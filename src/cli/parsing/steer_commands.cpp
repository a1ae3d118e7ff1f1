// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "cli/parsing/commands.hpp"
#include "cli/parsing/option_checks.hpp"
#include "cli/study_input.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::cli {

void add_steer_verbs(CLI::App& app, std::function<int()>& call) {
    using study::SteerVerb;
    const auto args = std::make_shared<SteerArguments>();
    const auto add = [&](SteerVerb verb, const char* words, const char* example) {
        auto* command = add_verb(app, "Steer", std::string(study::name(verb)), words, example);
        add_study(command, args->directory);
        on_call(command, call, [args, verb] {
            if (verb == SteerVerb::add && args->settings.empty() && args->csv.empty())
                throw base::UsageError("add: which trial? ranktune add STUDY lr=0.01, or --csv FILE");
            args->verb = verb;
            args->directory = absolute_directory(directory_of(args->directory));
            return steer(*args);
        });
        return command;
    };
    for (auto* of_trial :
         {add(SteerVerb::pause, "Pause a trial of a running study: it saves, and frees its ranks",
              "ranktune pause digits 17"),
          add(SteerVerb::resume, "Let a trial go on that `pause` has paused", "ranktune resume digits 17"),
          add(SteerVerb::cancel, "Stop a trial of a running study for good", "ranktune cancel digits 18")})
        of_trial->add_option("TRIAL", args->trial, "Number of the trial")
            ->required()
            ->type_name("")
            ->transform(whole_number(0, "the number of a trial"));

    auto* trials = add(SteerVerb::add, "Add trials to a running study", "ranktune add digits lr=0.01");
    auto* words = trials
                      ->add_option("NAME=VALUE", args->settings,
                                   "Hyper-parameters of one trial: lr=0.01 hidden=[128,64]; others are suggested")
                      ->type_name("");
    add_path(trials, "--csv", args->csv, "FILE", "Several trials: a line with names, then one line for each")
        ->excludes(words);

    add(SteerVerb::set, "Change keys of a running study: study.num_trials=120",
        "ranktune set digits study.num_trials=120")
        ->add_option("KEY=VALUE", args->settings, "Budgets and limits: those of [study], [failure] and [stop]")
        ->required()
        ->type_name("");
}

} // namespace ranktune::cli
