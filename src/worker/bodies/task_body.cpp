// SPDX-License-Identifier: Apache-2.0
#include "worker/bodies/task_body.hpp"

#include <utility>
#include <variant>

#include "ranktune/base/error.hpp"
#include "ranktune/study/command_template.hpp"
#include "worker/bodies/printed_reports.hpp"

namespace ranktune::worker {

TaskBody::TaskBody(const AttemptParts& parts, Spare& spare)
    : setting_(parts.setting),
      assignment_(parts.assignment),
      configuration_(parts.configuration),
      port_(parts.port),
      spare_(spare),
      process_(parts.setting, parts.assignment, parts.port,
               {.on_early_end = "the program ended, with exit code 0, before its row was done; a kept program goes "
                                "through all rows: for row in ranktune.tasks()"}) {}

void TaskBody::start(const study::CheckpointRef* /*checkpoint*/) {
    if (!take_process()) start_process();
}

/// False: there is none, or its time has come.
bool TaskBody::take_process() {
    if (!spare_.program) return false;
    const bool used_up = program().restart_after > 0 && spare_.tasks >= program().restart_after;
    if (used_up) spare_.program->dismiss([this] { return !port_.abort_flag().load(); });
    auto kept = std::exchange(spare_.program, nullptr);
    return !used_up && process_.take(std::move(kept));
}

void TaskBody::start_process() {
    spare_.tasks = 0;
    const auto words = study::CommandTemplate(program()).expand({.configuration = configuration_,
                                                                 .config_path = {},
                                                                 .iterations = setting_.spec->max_iterations,
                                                                 .trial = assignment_.start.trial,
                                                                 .data = setting_.spec->data});
    process_.start(program(), words, process_.facts());
}

study::Verb TaskBody::train(const Report& report) {
    process_.child().send(process::task_line(assignment_.start.trial, assignment_.start.attempt,
                                             setting_.spec->seed_of(assignment_.start.trial), configuration_));
    while (!result_) {
        auto message = process_.next();
        if (!message) return process_.given_up()->verb; // the process ends with this object
        take(std::move(*message));
    }
    const study::Objective& objective = setting_.spec->objective;
    auto& metrics = result_->metrics;
    complete_task(metrics, result_->texts, objective.metric);
    if (const auto said = texts_.keep(result_->texts, assignment_.start.trial, objective, *setting_.program);
        !said.empty())
        port_.log(assignment_.start.trial, said);
    const study::Verb told = report(metrics);
    ++spare_.tasks;
    spare_.program = process_.keep();
    return told;
}

void TaskBody::take(process::ProgramMessage message) {
    auto* result = std::get_if<process::ProgramResult>(&message);
    if (result == nullptr)
        throw base::Error(
            "the program reports an iteration or a checkpoint, and a kept program does tasks: it gives "
            "their values with ranktune.result()");
    if (result->task == assignment_.start.trial.value() && result->attempt == assignment_.start.attempt.value())
        result_ = std::move(*result);
    else
        process_.print("a result of task " + std::to_string(result->task) + " is left out: nobody waits for it");
}

} // namespace ranktune::worker
