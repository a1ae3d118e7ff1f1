// SPDX-License-Identifier: Apache-2.0
#include "worker/bodies/kept_program.hpp"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "process/program/messages.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::worker {
namespace {

constexpr std::chrono::milliseconds dismissal_turn{20};

} // namespace

KeptProgram::KeptProgram(std::unique_ptr<ProgramProcess> process, const Assignment& assignment,
                         base::Iteration iteration, Limits limits)
    : process_(std::move(process)), assignment_(assignment), iteration_(iteration), limits_(limits) {
    process_->end_output();
}

KeptProgram::KeptProgram(std::unique_ptr<ProgramProcess> process, Limits limits)
    : process_(std::move(process)), limits_(limits) {}

KeptProgram::~KeptProgram() {
    if (!process_) return;
    tell_to_stop(limits_.at_close);
    dismiss([] { return true; });
}

bool KeptProgram::waits_for(const Assignment& next) {
    listen(Clock::duration::zero());
    if (process_->child().exited() || strays_ || stop_at_) return false;
    if (!assignment_) return true;
    const study::StartTrial& old = assignment_->start;
    const study::StartTrial& start = next.start;
    return std::holds_alternative<study::Donor>(start.from) && start.trial == old.trial && start.ranks == old.ranks &&
           start.incarnation == old.incarnation && start.generation == old.generation + 1 &&
           start.iteration == iteration_;
}

bool KeptProgram::tend() {
    listen(Clock::duration::zero());
    const auto now = Clock::now();
    if (!stop_at_ && (strays_ || now - since_ >= limits_.unclaimed)) tell_to_stop(limits_.to_end);
    if (stop_at_ && now >= *stop_at_) process_->child().stop();
    return !process_->child().exited();
}

void KeptProgram::dismiss(const std::function<bool()>& on_turn) {
    tell_to_stop(limits_.to_end);
    while (!process_->child().exited()) {
        listen(dismissal_turn);
        if (!on_turn() || Clock::now() >= *stop_at_) process_->child().stop();
    }
    process_.reset();
}

void KeptProgram::listen(Clock::duration patience) {
    process_->child().wait(patience);
    try {
        while (const auto line = process_->child().next_line()) take_line(*line);
    } catch (const base::Error&) { // no message
        strays_ = true;
    }
}

/// A thread of the program may write to the log, and complete a checkpoint; anything else means that it has gone on
/// without its answer.
void KeptProgram::take_line(const std::string& line) {
    if (line.empty()) return;
    std::vector<std::string> unknown;
    const auto message = process::parse_program_message(line, unknown);
    if (const auto* log = std::get_if<process::ProgramLog>(&message))
        process_->print(log->text);
    else if (!std::holds_alternative<process::ProgramDone>(message))
        strays_ = true;
}

void KeptProgram::tell_to_stop(Clock::duration to_end) {
    const auto at = Clock::now() + to_end;
    const bool told = stop_at_.has_value();
    stop_at_ = told ? std::min(*stop_at_, at) : at;
    if (!told) process_->child().send(process::decision_line(study::Verb::stop, iteration_));
}

} // namespace ranktune::worker
