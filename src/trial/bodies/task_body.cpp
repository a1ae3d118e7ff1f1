// SPDX-License-Identifier: Apache-2.0
#include "trial/bodies/task_body.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/study/parse.hpp"
#include "trial/attempt_errors.hpp"
#include "trial/bodies/kept_program.hpp"
#include "trial/bodies/program_facts.hpp"
#include "trial/bodies/program_failure.hpp"

namespace ranktune::trial {
namespace {

/// Between two looks at the clock and the head; messages of the program end the wait.
constexpr std::chrono::milliseconds look_turn{50};

} // namespace

TaskBody::TaskBody(const AttemptParts& parts)
    : setting_(parts.setting), assignment_(parts.assignment), configuration_(parts.configuration), port_(parts.port) {}

trainables::ProgramFacts TaskBody::facts() const {
    need_directory(*setting_.program);
    trainables::ProgramFacts facts = facts_of(setting_, assignment_);
    facts.master_address = "127.0.0.1";
    facts.addresses = {facts.master_address};
    const auto& devices = setting_.devices;
    if (!devices.devices.empty() || devices.job_has_gpus) facts.visible_devices = base::join(devices.devices, ",");
    return facts;
}

study::CommandValues TaskBody::values() const {
    return {.configuration = configuration_,
            .config_path = {},
            .iterations = setting_.spec->max_iterations,
            .trial = assignment_.start.trial,
            .data = setting_.spec->data};
}

void TaskBody::start_process(const trainables::ProgramFacts& facts, const study::CommandValues& values,
                             std::string folder) {
    const auto environment = trainables::program_environment(setting_.program->environment, program(), facts);
    const auto words = study::CommandTemplate(program()).expand(values);
    process_ = std::make_unique<ProgramProcess>([output = setting_.program->output, trial = assignment_.start.trial](
                                                    std::string_view line) { output(trial, line); });
    process_->own(std::move(folder));
    process_->start(words, environment, program().directory, term_grace_of(*setting_.spec));
    started_at_ = Clock::now();
}

bool TaskBody::waits() {
    child().wait(look_turn);
    while (const auto line = child().next_line()) take_line(*line);
    if (!result_ && child().exited()) ended();
    if (result_) return false;
    if (failed_ && Clock::now() - failed_at_ >= term_grace_of(*setting_.spec))
        throw base::Error(failed_->text + " (the program did not end after it had said that)");
    if (port_.abort_flag().load()) throw ddp::Aborted("the task was told to give up");
    check_time();
    return !is_given_up();
}

void TaskBody::take_line(const std::string& line) {
    if (line.empty()) return;
    std::vector<std::string> unknown;
    auto message = trainables::parse_program_message(line, unknown);
    port_.progressed();
    if (auto* failed = std::get_if<trainables::ProgramFailed>(&message)) {
        failed_ = std::move(*failed);
        failed_at_ = Clock::now();
    } else if (auto* said = std::get_if<trainables::ProgramLog>(&message)) {
        process_->print(said->text);
    } else {
        take(message);
    }
}

void TaskBody::process_failed() const {
    const std::string refused = child().refusal();
    throw_failure(child(), failed_, failure_text(child(), failed_),
                  refused.empty() ? full_disk(program().directory) : std::optional(refused),
                  setting_.spec->failure.retry_on);
}

/// The study drains, or a user ends the trial: the task has abort_grace to come to its end.
bool TaskBody::is_given_up() {
    if (!asked_) {
        const auto order = port_.verdict_within(assignment_.first_iteration() + 1, std::chrono::milliseconds(0));
        if (!order || order->verb == study::Verb::go_on) return false;
        asked_ = without_state(*order);
        asked_at_ = Clock::now();
    }
    if (Clock::now() - asked_at_ < setting_.spec->output.abort_grace) return false;
    give_up();
    return true;
}

// ---- a kept program

void KeptTaskBody::start(const study::CheckpointRef* /*checkpoint*/) {
    if (take_process()) {
        ready_at_ = Clock::now();
    } else {
        spare_.tasks = 0;
        start_process(facts(), values());
    }
}

/// False: there is none, or its time has come.
bool KeptTaskBody::take_process() {
    if (!spare_.program) return false;
    const bool used_up = program().restart_after > 0 && spare_.tasks >= program().restart_after;
    if (used_up) spare_.program->dismiss([this] { return !port().abort_flag().load(); });
    const bool goes_on = !used_up && spare_.program->waits_for(assignment());
    const auto kept = std::exchange(spare_.program, nullptr);
    if (!goes_on) return false;
    process_ = std::move(*kept).take();
    process_->write_to([output = setting().program->output, trial = assignment().start.trial](std::string_view line) {
        output(trial, line);
    });
    return true;
}

study::Verb KeptTaskBody::train(const Report& report) {
    const auto& start = assignment().start;
    child().send(
        trainables::task_line(start.trial, start.attempt, setting().spec->seed_of(start.trial), configuration()));
    while (waits()) {
    }
    if (!result_) return asked_->verb; // its process ends with this object
    const study::Objective& objective = setting().spec->objective;
    auto& metrics = result_->metrics;
    if (const auto said = texts_.keep(result_->texts, start.trial, objective, *setting().program); !said.empty())
        log(said);
    if (std::ranges::find(metrics, objective.metric, &trainables::Metrics::value_type::first) == metrics.end())
        metrics.emplace_back(objective.metric, 0.0);
    const study::Verb told = report(metrics);
    keep_process();
    return told;
}

void KeptTaskBody::keep_process() {
    ++spare_.tasks;
    child().end_output();
    process_->end_output();
    const Clock::duration to_end = setting().spec->output.abort_grace;
    spare_.program = std::make_unique<KeptProgram>(
        std::move(process_), KeptProgram::Limits{Clock::duration::max(), to_end, term_grace_of(*setting().spec)});
}

void KeptTaskBody::take(trainables::ProgramMessage& message) {
    const auto& start = assignment().start;
    if (auto* result = std::get_if<trainables::ProgramResult>(&message)) {
        const bool is_mine = result->task == start.trial.value() && result->attempt == start.attempt.value();
        if (is_mine && !result_)
            result_ = std::move(*result);
        else
            process_->print("a result of task " + std::to_string(result->task) + " is left out: nobody waits for it");
    } else if (std::holds_alternative<trainables::ProgramReady>(message)) {
        ready_at_ = Clock::now();
    } else {
        throw base::Error(
            "the program reports an iteration or a checkpoint, and a kept program does tasks: it gives "
            "their values with ranktune.result()");
    }
}

void KeptTaskBody::ended() {
    if (!child().exited()->clean() || failed_) process_failed();
    const std::string text =
        "the program ended, with exit code 0, before its row was done; a kept program goes through "
        "all rows: for row in ranktune.tasks()";
    if (!setting().spec->failure.retry_on.empty()) throw PermanentError(text);
    throw base::Error(text);
}

void KeptTaskBody::check_time() const {
    const auto& limits = setting().spec->failure;
    // A program that loads much first is not to be ended again and again before its first task.
    const auto passed = Clock::now() - ready_at_.value_or(started_at_);
    if (limits.iteration_timeout && ready_at_ && passed >= *limits.iteration_timeout)
        throw base::Error("the task took longer than " + study::duration_text(*limits.iteration_timeout) +
                          " (failure.iteration_timeout)");
    if (limits.report_timeout && passed >= *limits.report_timeout)
        throw DisturbedError("no sign of progress for " + study::duration_text(*limits.report_timeout) +
                             " (failure.report_timeout)");
}

void KeptTaskBody::give_up() {
    const std::string text = "waited " + study::duration_text(setting().spec->output.abort_grace) +
                             " in vain for the task to be done; its program is stopped by signal (a longer "
                             "run.abort_grace makes the wait longer)";
    // Without a report the head must learn that the task has to begin again later.
    if (asked_->verb == study::Verb::pause) throw CheckpointError(study::AttemptOutcome::unsaved, text);
    log(text);
}

} // namespace ranktune::trial
