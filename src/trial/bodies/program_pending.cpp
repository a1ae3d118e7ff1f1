// SPDX-License-Identifier: Apache-2.0
// Checkpoints that a program names before they are complete, as torch.distributed.checkpoint.async_save does. They
// count when every rank has completed its part.
#include "ranktune/base/error.hpp"
#include "ranktune/study/parse.hpp"
#include "storage/error_kinds.hpp"
#include "trial/attempt_errors.hpp"
#include "trial/bodies/program_body.hpp"

namespace ranktune::trial {

using study::AttemptOutcome;

// ---- every rank

void ProgramBody::on_message(trainables::ProgramDone done) {
    for (auto& [report, part] : pending_) {
        if (part.number != done.pending || part.done) continue;
        part.done = true;
        part.error = std::move(done.error);
        return;
    }
}

/// Whether this rank's part of the checkpoint that the leader wants is complete. Forgets those that nobody can want any
/// more: what is wanted is known when its report is answered.
void ProgramBody::settle() {
    const std::uint64_t wanted = next().wanted;
    std::erase_if(pending_, [&](const auto& each) { return each.first <= answered_ && each.first != wanted; });
    if (wanted == 0 || own_.settled == wanted || own_.reports < wanted) return;
    const auto part = pending_.find(wanted);
    if (part != pending_.end() && !part->second.done) return;
    own_.settled = wanted;
    own_.failed = part != pending_.end() && !part->second.error.empty();
    if (!own_.failed) return;
    const std::string text = while_saving(base_ + wanted, part->second.error);
    const bool is_last = wanted > next().decided;
    if (is_last && next().needed && !storage::names_refusal(text, true)) throw base::Error(text);
    if (is_last) throw CheckpointError(AttemptOutcome::unsaved, text);
    note("rank " + std::to_string(group_.rank()) + " of the trial, " + text);
}

// ---- the leader

void ProgramBody::want_pending_state(const TrialPoint& point) {
    loop_.checkpoints().taken(point);
    later_ = {point, next().decided + 1, Clock::now(), *current_->checkpoint};
    leader_->want(later_->report);
}

/// Takes over what the program has gone on without, once it is complete. If it never is, the trial only misses it.
void ProgramBody::take_pending_state() {
    if (!later_) return;
    if (next().wanted != later_->report) return later_.reset(); // the trial ends with a newer state
    const auto trouble = trouble_with_pending();
    if (trouble && trouble->empty()) return;
    const Later state = *std::exchange(later_, std::nullopt);
    try {
        if (trouble) throw base::Error(*trouble);
        adopt(state.checkpoint, state.point);
    } catch (const base::Error& error) {
        if (!end_) loop_.checkpoints().missed(error.what());
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - state.since).count();
    loop_.checkpoints().measured(0.0, seconds);
}

/// Nothing: the checkpoint is complete. An empty text: not yet.
std::optional<std::string> ProgramBody::trouble_with_pending() const {
    if (later_->again) return "the program named the same path again before its checkpoint was complete";
    const auto waited = Clock::now() - later_->since;
    bool complete = true;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        const RankFacts& rank = ranks_[r];
        const std::string who = "rank " + std::to_string(r) + " of the program ";
        if (rank.settled == later_->report) {
            if (rank.failed) return who + "could not complete its checkpoint";
        } else if (rank.ended) {
            return who + "ended before its checkpoint was complete";
        } else if (rank.reports > 0 || waited < leader_->alone_grace()) { // otherwise only rank 0 reports
            complete = false;
        }
    }
    if (complete) return std::nullopt;
    const auto limit = 10 * setting_.spec->output.abort_grace;
    if (waited < limit) return "";
    return "the program has not completed its checkpoint for " + study::duration_text(limit) +
           " (ten times run.abort_grace)";
}

/// The attempt ends with a checkpoint that was named before it was complete. (A rank that failed has said so itself.)
void ProgramBody::need_complete_state() const {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
        const bool is_silent = ranks_[r].reports == 0;
        if (is_silent || (ranks_[r].settled == next().wanted && !ranks_[r].failed)) continue;
        throw base::Error("rank " + std::to_string(r) + " of the program ended before its checkpoint was complete");
    }
}

} // namespace ranktune::trial
