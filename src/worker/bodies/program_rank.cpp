// SPDX-License-Identifier: Apache-2.0
#include "worker/bodies/program_rank.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "process/pages.hpp"
#include "process/wake.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/study/parse.hpp"
#include "storage/error_kinds.hpp"
#include "storage/file_system.hpp"
#include "worker/trial/attempt_errors.hpp"

namespace ranktune::worker {

using study::AttemptOutcome;
using study::Verb;
using End = ProgramOrder::End;

ProgramRank::ProgramRank(const AttemptParts& parts, StartedProgram started, const ProgramOrder& order,
                         const ProgramOrder& next)
    : parts_(parts),
      started_(std::move(started)),
      order_(order),
      next_(next),
      base_(parts.assignment.first_iteration()) {}

// ---- the program's messages

void ProgramRank::listen(Clock::duration patience) {
    if (child().exited())
        process::await_readable(parts_.port.news(), patience);
    else
        child().wait(patience, parts_.port.news());
    parts_.port.heard();
    while (const auto line = child().next_line()) take_line(*line);
    if (started_.printed) take_printed();
}

void ProgramRank::take_printed() {
    const auto made = [this](process::ProgramReport report) {
        parts_.port.progressed();
        reported(std::move(report));
    };
    if (told_to_end_) return; // all results are in
    const auto& exit = child().exited();
    if (exit && exit->signal != 0 && child().ends_within_line()) started_.printed->forget_last_line();
    while (auto report = started_.printed->next()) made(*std::move(report));
    if (exit)
        if (auto report = started_.printed->at_end(child())) made(*std::move(report));
}

void ProgramRank::take_line(const std::string& line) {
    if (line.empty()) return;
    std::vector<std::string> unknown;
    auto message = process::parse_program_message(line, unknown);
    if (!unknown.empty() && !said_unknown_) {
        said_unknown_ = true;
        note("the program sends '" + unknown.front() + "', which means nothing to this version and is ignored");
    }
    parts_.port.progressed();
    std::visit([this](auto& said) { on_message(std::move(said)); }, message);
}

void ProgramRank::on_message(process::ProgramReport report) {
    if (program().prints())
        throw base::Error("the program makes reports itself: leave out report and result in [trainable]");
    reported(std::move(report));
}

void ProgramRank::reported(process::ProgramReport report) {
    ++own_.reports;
    failed_.reset(); // the program has caught the exception
    can_save_ = report.can_save;
    refused_before_ = child().take_refusal();
    own_.exploits = report.exploits;
    if (report.pending) pending_[own_.reports] = {*report.pending, false, {}};
    if (parts_.assignment.leads()) reports_.push_back(std::move(report));
}

void ProgramRank::on_message(const process::ProgramResult& /*result*/) {
    throw base::Error("the program sends the result of a task, as kept programs do: say kept = true in [trainable]");
}

void ProgramRank::on_message(const process::ProgramPredicted& /*predicted*/) {
    throw base::Error("the program sends predictions, as programs of `ranktune predict` do: a trial trains");
}

/// A rank has saved before it makes its next report, so it is known to which answer this belongs.
void ProgramRank::on_message(process::ProgramSaved saved) {
    failed_.reset(); // it has tried again
    if (is_saving_on_the_way()) {
        own_.saved = order_.save_at;
        on_the_way_ = {order_.save_at, std::move(saved.checkpoint), {}, Clock::now()};
    } else if (!last_ && next_.save) {
        last_ = {std::move(saved.checkpoint), Clock::now()};
    }
}

/// Counts when the process ends with an error, and instead of the state that it was asked for.
void ProgramRank::on_message(process::ProgramFailed failed) {
    failed_ = std::move(failed);
    if (is_saving_on_the_way()) lack_state_on_the_way(failed_->text);
}

void ProgramRank::on_message(process::ProgramDone done) {
    for (auto& [report, part] : pending_) {
        if (part.number != done.pending || part.done) continue;
        part.done = true;
        part.error = std::move(done.error);
        return;
    }
}

std::optional<process::ProgramReport> ProgramRank::next_report() {
    if (reports_.empty()) return std::nullopt;
    process::ProgramReport report = std::move(reports_.front());
    reports_.pop_front();
    return report;
}

// ---- answers

void ProgramRank::obey() {
    const auto answer = [this](Verb verb, bool save) {
        ++answered_;
        if (program().prints()) return;
        const auto folder = save ? make_folder(base_ + answered_) : std::nullopt;
        child().send(process::decision_line(verb, base_ + answered_, folder));
    };
    while (answered_ < std::min(own_.reports, order_.decided)) {
        const bool save = answered_ + 1 == order_.save_at;
        if (save && order_.is_best) best_asked_ = order_.save_at;
        answer(Verb::go_on, save);
    }
    const bool told = order_.end == End::deliver || (order_.end == End::deliver_to_first && parts_.assignment.leads());
    if (told && answered_ == order_.decided && own_.reports > order_.decided) {
        told_to_end_ = true;
        answer(order_.verb, order_.save);
    }
    if (order_.end == End::signal) {
        told_to_end_ = true;
        child().stop();
    }
}

/// For a state that the program is asked for. Nothing: the folder cannot be made, and the trial goes on without.
std::optional<std::string> ProgramRank::make_folder(base::Iteration iteration) {
    std::string folder = started_.folder_of(iteration);
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (!error) return folder;
    const std::string why = base::IoError("cannot create the directory", folder, error).what();
    if (told_to_end_) throw CheckpointError(AttemptOutcome::unsaved, why);
    lack_state_on_the_way(why);
    return std::nullopt;
}

// ---- states that it was asked for

/// It was told to save and to go on, and has not answered yet.
bool ProgramRank::is_saving_on_the_way() const {
    return !told_to_end_ && std::max(own_.saved, own_.unsaved) < order_.save_at && answered_ == order_.save_at;
}

/// It was told to save the state of the best report so far; it has neither done so nor reported again.
bool ProgramRank::is_saving_best() const {
    return best_asked_ > 0 && !told_to_end_ && own_.saved < best_asked_ && own_.reports == best_asked_;
}

/// A state that lacks the part of one rank is none.
void ProgramRank::lack_state_on_the_way(const std::string& why) {
    own_.unsaved = order_.save_at;
    if (!parts_.assignment.leads()) note("rank " + std::to_string(parts_.group.rank()) + " of the trial, " + why);
    on_the_way_ = {order_.save_at, {}, why, Clock::now()};
}

/// Whether this rank's part of the checkpoint that the leader wants is complete. Forgets those that nobody can want any
/// more: what is wanted is known when its report is answered.
void ProgramRank::settle() {
    const std::uint64_t wanted = next_.wanted;
    std::erase_if(pending_, [&](const auto& each) { return each.first <= answered_ && each.first != wanted; });
    if (wanted == 0 || own_.settled == wanted || own_.reports < wanted) return;
    const auto part = pending_.find(wanted);
    if (part != pending_.end() && !part->second.done) return;
    own_.settled = wanted;
    own_.failed = part != pending_.end() && !part->second.error.empty();
    if (!own_.failed) return;
    const std::string text = while_saving(base_ + wanted, part->second.error);
    const bool is_last = wanted > next_.decided;
    if (is_last && next_.needed && !storage::names_refusal(text, true)) throw base::Error(text);
    if (is_last) throw CheckpointError(AttemptOutcome::unsaved, text);
    note("rank " + std::to_string(parts_.group.rank()) + " of the trial, " + text);
}

// ---- its end

void ProgramRank::look() {
    check_end();
    settle();
}

void ProgramRank::need_a_report() const {
    if (base_ > 0 || own_.reports > 0 || !child().exited()->clean() || told_to_end_) return;
    const std::string& metric = parts_.setting.spec->objective.metric;
    const std::string output = child().last_output();
    const std::string how =
        !program().report.empty()
            ? "no line that it printed matches '" + program().report.front() + "' (report in [trainable])"
            : "each iteration ends with report(" + metric +
                  "=...), or, if it prints its values, [trainable] says how to find them: report = '" + metric +
                  ": ([-+.0-9a-zA-Z]+)'; " + process::documentation_page("guides/programs.md") + " shows how";
    throw base::Error("the program ended without a single report: " + how +
                      (output.empty() ? "" : "\nlast lines of its standard output:\n" + output));
}

void ProgramRank::check_end() {
    if (own_.ended || !child().exited()) return;
    own_.ended = true;
    const process::ChildExit& exit = *child().exited();
    using What = process::ProgramFailed::What;
    // A state that lacks the part of one rank is none; sys.exit() has a code of its own.
    const bool by_saving = failed_ && (failed_->what == What::saving || failed_->what == What::storage);
    if (by_saving && told_to_end_ && order_.save) lack_last_state(failure_text());
    if (is_saving_best() && (by_saving || own_.unsaved < best_asked_))
        throw CheckpointError(AttemptOutcome::unsaved,
                              by_saving ? failure_text() : while_saving(base_ + best_asked_, failure_text()));
    if (ended_well(exit, program())) return;
    need_own_part();
    if (!told_to_end_ && order_.end == End::go_on) process_failed(failure_text());
    // All results are in: an error during shutdown is logged and does not fail the trial.
    if (exit.signal == 0)
        note("rank " + std::to_string(parts_.group.rank()) + " of the trial, told to end: " + exit.text() +
             (failed_ && !failed_->text.empty() ? ": " + failed_->text : ""));
}

void ProgramRank::need_last() const {
    if (last_) return;
    if (failed_ && !failed_->text.empty()) lack_last_state(failure_text());
    end_without_state();
}

/// This rank's process was told to save and to end, and ended with an error. Rank 0 is asked what it has saved; another
/// rank, if its report says that it can save, must have said that its part is complete.
void ProgramRank::need_own_part() const {
    if (parts_.assignment.leads() || !order_.save || !can_save_ || last_ || answered_ <= order_.decided) return;
    end_without_state();
}

void ProgramRank::end_without_state() const {
    lack_last_state(std::string("the program was told to save its state and to ") +
                    (next_.verb == study::Verb::stop ? "stop" : "pause") + " at iteration " +
                    std::to_string(base_ + next_.decided + 1) + ", and ended without having saved it" +
                    (child().exited()->clean() ? "" : ": " + failure_text()));
}

/// This rank's process has ended, and its part of the state that the attempt was to end with is missing.
void ProgramRank::lack_last_state(const std::string& why) const {
    if (!next_.needed) throw CheckpointError(AttemptOutcome::unsaved, why);
    process_failed(why);
}

std::optional<std::string> ProgramRank::refusal() const {
    for (const std::string& line : {child().refusal(), refused_before_})
        if (!line.empty()) return line;
    if (auto why = storage::why_full(storage::posix_file_system(), started_.folders.checkpoints)) return why;
    return full_disk(started_.folders.works);
}

/// This rank's process has ended, and the trial cannot go on.
void ProgramRank::process_failed(const std::string& text) const {
    throw_failure(child(), failed_, text, refusal(), parts_.setting.spec->failure.retry_on);
}

} // namespace ranktune::worker
