// SPDX-License-Identifier: Apache-2.0
#include "worker/bodies/task_process.hpp"

#include <utility>
#include <variant>

#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/study/parse.hpp"
#include "worker/bodies/program_facts.hpp"
#include "worker/bodies/program_failure.hpp"
#include "worker/trial/attempt_errors.hpp"
#include "worker/trial/attempt_port.hpp"

namespace ranktune::worker {
namespace {

/// Between two looks at the clock and the head; messages of the program end the wait.
constexpr std::chrono::milliseconds look_turn{50};

ProgramProcess::Write log_of(const AttemptSetting& setting, base::TrialId trial) {
    return [output = setting.program->output, trial](std::string_view line) { output(trial, line); };
}

} // namespace

TaskProcess::TaskProcess(const AttemptSetting& setting, const Assignment& assignment, AttemptPort& port,
                         TaskManner manner)
    : setting_(setting), assignment_(assignment), port_(port), manner_(manner) {}

process::ProgramFacts TaskProcess::facts() const {
    process::ProgramFacts facts = facts_of(setting_, assignment_);
    facts.master_address = "127.0.0.1";
    facts.addresses = {facts.master_address};
    const auto& devices = setting_.devices;
    if (!devices.devices.empty() || devices.job_has_gpus) facts.visible_devices = base::join(devices.devices, ",");
    return facts;
}

void TaskProcess::start(const study::ProgramSpec& program, const std::vector<std::string>& words,
                        const process::ProgramFacts& facts, std::string folder) {
    need_directory(*setting_.program);
    const auto environment = process::program_environment(setting_.program->environment, program, facts);
    works_in_ = program.directory;
    process_ = std::make_unique<ProgramProcess>(log_of(setting_, assignment_.start.trial));
    process_->own(std::move(folder));
    process_->start(words, environment, works_in_, term_grace_of(*setting_.spec));
    progress_at_ = Clock::now();
    if (manner_.on_early_end == nullptr) ready_at_ = progress_at_;
}

bool TaskProcess::take(std::unique_ptr<KeptProgram> kept) {
    if (!kept->waits_for(assignment_)) return false;
    process_ = std::move(*kept).take();
    process_->write_to(log_of(setting_, assignment_.start.trial));
    ready_at_ = progress_at_ = Clock::now();
    return true;
}

std::unique_ptr<KeptProgram> TaskProcess::keep() {
    child().end_output();
    process_->end_output();
    const Clock::duration to_end = setting_.spec->output.abort_grace;
    return std::make_unique<KeptProgram>(
        std::move(process_), KeptProgram::Limits{Clock::duration::max(), to_end, term_grace_of(*setting_.spec)});
}

std::optional<process::ProgramMessage> TaskProcess::next() {
    while (true) {
        while (const auto line = child().next_line())
            if (auto message = take_line(*line)) return message;
        if (check_end()) return std::nullopt;
        check_time();
        if (is_given_up()) return std::nullopt;
        child().wait(look_turn);
    }
}

/// What is not for the task alone is dealt with here.
std::optional<process::ProgramMessage> TaskProcess::take_line(const std::string& line) {
    if (line.empty()) return std::nullopt;
    std::vector<std::string> unknown;
    auto message = process::parse_program_message(line, unknown);
    port_.progressed();
    if (auto* failed = std::get_if<process::ProgramFailed>(&message)) {
        failed_ = std::move(*failed);
        failed_at_ = Clock::now();
    } else if (std::holds_alternative<process::ProgramReady>(message)) {
        ready_at_ = progress_at_ = Clock::now();
    } else if (auto* log = std::get_if<process::ProgramLog>(&message)) {
        process_->print(log->text);
    } else {
        progress_at_ = Clock::now();
        return message;
    }
    return std::nullopt;
}

bool TaskProcess::check_end() const {
    if (child().exited()) {
        if (manner_.on_early_end == nullptr && child().exited()->clean() && !failed_) return true;
        ended_early();
    }
    if (failed_ && Clock::now() - failed_at_ >= term_grace_of(*setting_.spec))
        throw base::Error(failed_->text + " (the program did not end after it had said that)");
    if (port_.abort_flag().load()) throw ddp::Aborted("the task was told to give up");
    return false;
}

void TaskProcess::ended_early() const {
    if (child().exited()->clean() && !failed_) {
        if (!setting_.spec->failure.retry_on.empty()) throw PermanentError(manner_.on_early_end);
        throw base::Error(manner_.on_early_end);
    }
    const std::string refused = child().refusal();
    throw_failure(child(), failed_, failure_text(child(), failed_),
                  refused.empty() ? full_disk(works_in_) : std::optional(refused), setting_.spec->failure.retry_on);
}

void TaskProcess::check_time() const {
    const auto& limits = setting_.spec->failure;
    const auto now = Clock::now();
    // A program that loads much first is not to be ended again and again before its first task.
    if (limits.iteration_timeout && ready_at_ && now - *ready_at_ >= *limits.iteration_timeout)
        throw base::Error("the task took longer than " + study::duration_text(*limits.iteration_timeout) + " (" +
                          std::string(manner_.limit) + ")");
    if (limits.report_timeout && now - progress_at_ >= *limits.report_timeout)
        throw DisturbedError("no sign of progress for " + study::duration_text(*limits.report_timeout) +
                             " (failure.report_timeout)");
}

/// The study drains, or a user ends the trial: the task has abort_grace to come to its end.
bool TaskProcess::is_given_up() {
    if (!asked_) {
        const auto order = port_.verdict_within(assignment_.first_iteration() + 1, std::chrono::milliseconds(0));
        if (!order || order->verb == study::Verb::go_on) return false;
        asked_ = without_state(*order);
        asked_at_ = Clock::now();
    }
    const base::Duration limit = setting_.spec->output.abort_grace;
    if (Clock::now() - asked_at_ < limit) return false;
    if (manner_.on_early_end == nullptr) throw ddp::Aborted("the study stops before the task has ended");
    const std::string text = "waited " + study::duration_text(limit) +
                             " in vain for the task to be done; its program is stopped by signal (a longer "
                             "run.abort_grace makes the wait longer)";
    // Without a report the head must learn that the task has to begin again later.
    if (asked_->verb == study::Verb::pause) throw CheckpointError(study::AttemptOutcome::unsaved, text);
    port_.log(assignment_.start.trial, text);
    given_up_ = asked_;
    return true;
}

} // namespace ranktune::worker
