// SPDX-License-Identifier: Apache-2.0
// Which checkpoints stay. Every decision looks at one trial's own list, so its cost does not grow with the study.

#include <algorithm>

#include "ranktune/study/objective.hpp"
#include "tuner/core.hpp"

namespace ranktune::tuner {
namespace {

/// A trial that may go on keeps a second one, in case that the newest cannot be read.
constexpr std::size_t newest_of_active = 2;

/// Pointers into one trial's list, best first. Without a value comes last; of equal ones the newer first.
std::vector<const CheckpointRef*> ranked(const std::vector<CheckpointRef>& all, Mode mode) {
    std::vector<const CheckpointRef*> pointers;
    for (const auto& checkpoint : all) pointers.push_back(&checkpoint);
    std::sort(pointers.begin(), pointers.end(), [mode](const CheckpointRef* a, const CheckpointRef* b) {
        if (a->value.has_value() != b->value.has_value()) return a->value.has_value();
        const double x = a->value ? study::score(*a->value, mode) : 0.0;
        const double y = b->value ? study::score(*b->value, mode) : 0.0;
        return x != y ? x > y : b < a;
    });
    return pointers;
}

} // namespace

const CheckpointRef* best_checkpoint(const TrialState& trial, Mode mode) {
    return trial.checkpoints.empty() ? nullptr : ranked(trial.checkpoints, mode).front();
}

/// While a trial may go on: its newest two, which include the one that it starts from; none once it paused at a rung
/// that it cannot leave upwards. Besides, the best `keep` by the objective of one that trains, and of the study's
/// result. A failed trial may be resumed from its newest (--resume-errored).
std::vector<const CheckpointRef*> Tuner::Impl::to_release(TrialId id) const {
    const TrialState& t = state.trials[id.value()];
    const auto& all = t.checkpoints;
    if (all.empty()) return {};
    std::size_t newest = newest_of_active;
    if (t.phase == TrialPhase::failed) newest = 1;
    if (t.phase == TrialPhase::finished || t.phase == TrialPhase::stopped) newest = 0;
    if (t.phase == TrialPhase::paused && scheduler->out_of_reach(id)) newest = 0;
    const bool trains = !is_final(t.phase) && t.phase != TrialPhase::paused;
    const std::size_t best = trains || is_result(id) ? spec.checkpoint.keep : 0;

    std::vector<const CheckpointRef*> others; // than the newest
    for (std::size_t i = 0; i + newest < all.size(); ++i) others.push_back(&all[i]);
    if (others.empty() || best == 0) return others;
    // Of all, the newest ones too: they may be the best already.
    std::vector<const CheckpointRef*> kept = ranked(all, spec.objective.mode);
    kept.resize(std::min(kept.size(), best));
    std::erase_if(others, [&](const CheckpointRef* c) { return std::ranges::find(kept, c) != kept.end(); });
    return others;
}

void Tuner::Impl::retain(TrialId id, Output& out) {
    if (trial(id).winding) return;                 // its group may be about to save: when the attempt is over
    std::vector<study::DeleteCheckpoint> released; // what they point to moves with the first release
    for (const CheckpointRef* checkpoint : to_release(id))
        released.push_back({checkpoint->path, static_cast<std::uint32_t>(checkpoint->shards.size())});
    for (auto& checkpoint : released) {
        commit(study::CheckpointReleased{id, checkpoint.path}, out);
        out.commands.emplace_back(std::move(checkpoint));
    }
}

void Tuner::Impl::release_all(TrialId id, Output& out) {
    while (!trial(id).checkpoints.empty()) {
        const CheckpointRef& first = trial(id).checkpoints.front();
        study::DeleteCheckpoint command{first.path, static_cast<std::uint32_t>(first.shards.size())};
        commit(study::CheckpointReleased{id, command.path}, out);
        out.commands.emplace_back(std::move(command));
    }
}

/// Makes room until the limit holds, or only what may not go is left: running and starting trials need theirs, and the
/// result is what the study is for. A trial that is promoted after all starts again from scratch.
void Tuner::Impl::evict(Output& out) {
    if (!spec.checkpoint.max_bytes) return;
    for (auto at = evictable.begin(); at != evictable.end() && state.checkpoint_bytes > *spec.checkpoint.max_bytes;) {
        const Evictable next = *at;
        if (!is_result(next.trial)) release_all(next.trial, out); // and so it leaves the list
        at = evictable.upper_bound(next);
    }
}

Tuner::Impl::Evictable Tuner::Impl::as_evictable(TrialId id) const {
    const TrialState& t = state.trials[id.value()];
    return {t.iteration, study::score(t.last, spec.objective.mode), id};
}

void Tuner::Impl::list_evictable() {
    evictable.clear();
    for (std::uint32_t i = 0; i < state.trials.size(); ++i) list_if_evictable(TrialId{i});
}

/// Puts the trial on the list or takes it off. By its state alone, so that a head that was restored has the same list.
/// (What a place on it depends on does not change while a trial is paused.)
void Tuner::Impl::list_if_evictable(TrialId id) {
    if (!spec.checkpoint.max_bytes) return;
    if (is_evictable(id)) {
        evictable.insert(as_evictable(id));
    } else {
        evictable.erase(as_evictable(id));
    }
}

bool Tuner::Impl::is_evictable(TrialId id) const {
    const TrialState& t = state.trials[id.value()];
    return t.phase == TrialPhase::paused && !t.checkpoints.empty();
}

} // namespace ranktune::tuner
