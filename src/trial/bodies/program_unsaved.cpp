// SPDX-License-Identifier: Apache-2.0
// A program that does not save the state that it was asked for.
#include <algorithm>
#include <filesystem>

#include "ranktune/base/error.hpp"
#include "ranktune/study/parse.hpp"
#include "storage/error_kinds.hpp"
#include "storage/file_system.hpp"
#include "trial/attempt_errors.hpp"
#include "trial/bodies/program_body.hpp"

namespace ranktune::trial {

using study::AttemptOutcome;

// ---- while the trial goes on

/// It was told to save and to go on, and has not answered yet.
bool ProgramBody::is_saving_on_the_way() const {
    return !told_to_end_ && std::max(own_.saved, own_.unsaved) < order_.save_at && answered_ == order_.save_at;
}

/// It was told to save the state of the best report so far; it has neither done so nor reported again.
bool ProgramBody::is_saving_best() const {
    return best_asked_ > 0 && !told_to_end_ && own_.saved < best_asked_ && own_.reports == best_asked_;
}

/// A state that lacks the part of one rank is none.
void ProgramBody::lack_state_on_the_way(const std::string& why) {
    own_.unsaved = order_.save_at;
    if (!leads()) note("rank " + std::to_string(group_.rank()) + " of the trial, " + why);
    if (!on_the_way_) return;
    on_the_way_->failed = why;
    on_the_way_->named = Clock::now();
    leader_->saved_on_the_way(Clock::now());
}

/// The state of the best report is what the study is for. As at the end of the trial, a program that does not come back
/// from saving it is given up, and the trial has not failed.
void ProgramBody::limit_best_save(std::size_t rank) const {
    if (!next().is_best || ranks_[rank].reports != on_the_way_->report) return;
    if (Clock::now() - on_the_way_->since < leader_->saving_patience()) return;
    const auto limit = std::chrono::round<std::chrono::milliseconds>(leader_->saving_patience());
    throw CheckpointError(
        AttemptOutcome::unsaved,
        while_saving(on_the_way_->point.iteration,
                     "waited " + study::duration_text(limit) + " in vain for rank " + std::to_string(rank) +
                         "; the program is stopped by signal (a longer run.abort_grace makes the "
                         "wait longer)"),
        static_cast<std::uint32_t>(rank));
}

/// For a state that the program is asked for. Nothing: the folder cannot be made, and the trial goes on without.
std::optional<std::string> ProgramBody::make_folder(base::Iteration iteration) {
    std::string folder = folder_of(iteration);
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (!error) return folder;
    const std::string why = base::IoError("cannot create the directory", folder, error).what();
    if (told_to_end_) throw CheckpointError(AttemptOutcome::unsaved, why);
    lack_state_on_the_way(why);
    return std::nullopt;
}

// ---- at the end of the attempt

void ProgramBody::adopt_last(const std::string& checkpoint) {
    try {
        if (current_->pending) need_complete_state();
        adopt(checkpoint, point_);
    } catch (...) {
        last_save_failed(needs_state(*end_) && !refusal(), point_.iteration);
    }
}

/// This rank's process was told to save and to end, and ended with an error. Rank 0 is asked what it has saved; another
/// rank, if its report says that it can save, must have said that its part is complete.
void ProgramBody::need_own_part() const {
    if (leads() || !order_.save || !can_save_ || saved_ || answered_ <= order_.decided) return;
    end_without_state();
}

void ProgramBody::end_without_state() const {
    lack_last_state(std::string("the program was told to save its state and to ") +
                    (next().verb == study::Verb::stop ? "stop" : "pause") + " at iteration " +
                    std::to_string(base_ + next().decided + 1) + ", and ended without having saved it" +
                    (child().exited()->clean() ? "" : ": " + failure_text()));
}

/// This rank's process has ended, and its part of the state that the attempt was to end with is missing.
void ProgramBody::lack_last_state(const std::string& why) const {
    if (!next().needed) throw CheckpointError(AttemptOutcome::unsaved, why);
    process_failed(why);
}

/// Whether storage refuses what the program writes: what it has printed since its last report but one says so, or it is
/// seen where the program saves and works. So a full disk is charged to no trial, whatever the program makes of it.
std::optional<std::string> ProgramBody::refusal() const {
    for (const std::string& line : {child().refusal(), refused_before_})
        if (!line.empty()) return line;
    if (auto why = storage::why_full(storage::posix_file_system(), checkpoint_directory_)) return why;
    return full_disk(works_in_);
}

/// This rank's process has ended, and the trial cannot go on.
void ProgramBody::process_failed(const std::string& text) const {
    throw_failure(child(), failed_, text, refusal(), setting_.spec->failure.retry_on);
}

} // namespace ranktune::trial
