// SPDX-License-Identifier: Apache-2.0
#include "tuner/values/retention.hpp"

#include <algorithm>
#include <span>
#include <stdexcept>

#include "ranktune/study/objective.hpp"
#include "tuner/rules/causes.hpp"

namespace ranktune::tuner {
namespace {

/// A trial that may go on keeps a second checkpoint, in case the newest cannot be read.
constexpr std::size_t newest_of_active = 2;

/// Pointers into the trial's list, best first. Checkpoints without a value come last; of equal ones, the newer comes
/// first. A checkpoint knows one objective: of several, only that of the best iteration is known to be good.
std::vector<const CheckpointRef*> ranked(const Trial& trial, const study::Objective& objective) {
    std::vector<const CheckpointRef*> pointers;
    for (const auto& checkpoint : trial.checkpoints) pointers.push_back(&checkpoint);
    const auto worth = [&](const CheckpointRef& each) {
        if (objective.several()) return each.iteration == trial.best_iteration ? 1.0 : 0.0;
        return each.value ? study::score(*each.value, objective.mode) : 0.0;
    };
    std::sort(pointers.begin(), pointers.end(), [&](const CheckpointRef* a, const CheckpointRef* b) {
        if (a->value.has_value() != b->value.has_value()) return a->value.has_value();
        const double x = worth(*a);
        const double y = worth(*b);
        return x != y ? x > y : b < a; // in one array: the newer one lies behind
    });
    return pointers;
}

std::size_t newest_kept(const Trial& t, bool hopeless) {
    switch (t.phase) {
        case TrialPhase::failed:
            return 1;
        case TrialPhase::finished:
        case TrialPhase::stopped:
            return 0;
        case TrialPhase::paused:
            return hopeless ? 0 : newest_of_active;
        default:
            return newest_of_active;
    }
}

/// Without the empty ones at the end.
template <class T>
std::vector<std::vector<T>> trimmed(std::vector<std::vector<T>> lists) {
    while (!lists.empty() && lists.back().empty()) lists.pop_back();
    return lists;
}
template <class T>
std::vector<std::vector<T>> sorted(std::vector<std::vector<T>> lists) {
    for (auto& each : lists) std::ranges::sort(each);
    return trimmed(std::move(lists));
}

bool is_evictable(const Trial& t) {
    const bool is_over = t.phase == TrialPhase::finished || t.phase == TrialPhase::stopped;
    return (is_over || t.phase == TrialPhase::paused) && !t.attempt.live && !t.checkpoints.empty();
}

} // namespace

const CheckpointRef* best_checkpoint(const Trial& trial, const Objective& objective) {
    return trial.checkpoints.empty() ? nullptr : ranked(trial, objective).front();
}

bool has_best(const Trial& trial, const CheckpointRef& checkpoint, const Objective& objective) {
    if (objective.several() || !checkpoint.value) return checkpoint.iteration == trial.best_iteration;
    return *checkpoint.value == trial.best;
}

bool keeps_best(const Trial& trial, const Objective& objective) {
    return std::ranges::any_of(trial.checkpoints,
                               [&](const CheckpointRef& each) { return has_best(trial, each, objective); });
}

const CheckpointRef* Retention::of_no_use(TrialId id, const Trial& t, const study::StudySpec& spec, bool hopeless,
                                          bool is_result, bool is_read, std::optional<Iteration> donated) const {
    const auto& all = t.checkpoints;
    const std::size_t newest = newest_kept(t, hopeless);
    if (all.size() <= newest) return nullptr;
    const bool trains = !is_final(t.phase) && t.phase != TrialPhase::paused;
    const std::size_t best = std::max<std::size_t>(trains || is_result ? spec.checkpoint.keep : 0, is_read ? 1 : 0);
    // Ranked among all, including the newest: they may be the best.
    std::vector<const CheckpointRef*> kept;
    if (best > 0) kept = ranked(t, spec.objective);
    kept.resize(std::min(kept.size(), best));
    for (std::size_t i = 0; i + newest < all.size(); ++i)
        if (std::ranges::find(kept, &all[i]) == kept.end() && all[i].iteration != donated &&
            !is_pinned(id, all[i].path))
            return &all[i];
    return nullptr;
}

std::optional<TrialId> Retention::to_evict(const study::StudySpec& spec, const Trials& trials,
                                           const std::optional<TrialId>& best,
                                           const std::function<bool(TrialId)>& is_wanted) const {
    if (!spec.checkpoint.max_bytes || bytes_ <= *spec.checkpoint.max_bytes) return {};
    for (const Evictable& next : evictable_) {
        if (next.trial == best || next.trial == keeper_) continue; // the result is what the study is for
        if (!is_pinned(next.trial, trials[next.trial].checkpoints.front().path) &&
            !(is_wanted && is_wanted(next.trial)))
            return next.trial;
    }
    return {};
}

void Retention::committed(Trial& t, const CheckpointRef& checkpoint) {
    t.checkpoints.push_back(checkpoint);
    bytes_ += checkpoint.bytes;
    ever_saved_ = true;
}

void Retention::released(Trial& t, const std::string& path) {
    const auto found = std::ranges::find(t.checkpoints, path, &CheckpointRef::path);
    if (found == t.checkpoints.end()) impossible("checkpoint " + path + " is released but was never committed");
    bytes_ -= found->bytes;
    if (found - t.checkpoints.begin() < static_cast<std::ptrdiff_t>(t.of_earlier_life)) --t.of_earlier_life;
    t.checkpoints.erase(found);
    if (t.checkpoints.empty()) t.checkpoints.shrink_to_fit(); // most trials of a large study end without any
}

bool Retention::is_pinned(TrialId of, const std::string& path) const {
    return of.value() < pins_.size() &&
           std::ranges::find(pins_[of.value()], path, &Pin::path) != pins_[of.value()].end();
}

void Retention::pin(TrialId id, const Trial& t) {
    const std::span<const Takeover> needed = depends_on(t);
    if (id.value() >= depends_.size()) {
        if (needed.empty()) return;
        depends_.resize(id.value() + 1);
    }
    std::vector<Dependence>& noted = depends_[id.value()];
    const auto is_noted = [](const Takeover& takeover, const Dependence& dependence) {
        return takeover.donor.trial == dependence.on && takeover.donor.checkpoint.path == dependence.path;
    };
    if (std::ranges::equal(needed, noted, is_noted)) return;
    for (auto each = noted.rbegin(); each != noted.rend(); ++each) {
        const auto& [on, path] = *each;
        doubt(on);
        std::vector<Pin>& pins = pins_[on.value()];
        const auto pin = std::ranges::find(pins, path, &Pin::path);
        if (--pin->trials == 0) pins.erase(pin);
    }
    noted.clear();
    for (const Takeover& each : needed) {
        const TrialId on = each.donor.trial;
        const std::string& path = each.donor.checkpoint.path;
        if (on.value() >= pins_.size()) pins_.resize(on.value() + 1);
        std::vector<Pin>& pins = pins_[on.value()];
        const auto pin = std::ranges::find(pins, path, &Pin::path);
        if (pin == pins.end())
            pins.push_back({path, 1});
        else
            ++pin->trials;
        noted.push_back({on, path});
    }
}

void Retention::list(TrialId id, const Trial& t, const study::StudySpec& spec) {
    if (!t.takeovers.empty() || id.value() < depends_.size()) pin(id, t);
    if (!spec.checkpoint.max_bytes) return;
    if (id.value() >= listed_.size()) listed_.resize(id.value() + 1);
    std::optional<Evictable>& listed = listed_[id.value()];
    if (listed) evictable_.erase(*listed);
    listed.reset();
    // Depends only on the state, so that a restored head has the same list.
    if (is_evictable(t))
        listed = *evictable_
                      .insert({t.phase == TrialPhase::paused, t.checkpoints.size() == 1, t.iteration,
                               study::score(t.last, spec.objective.mode), id})
                      .first;
}

void Retention::list_all(const Trials& trials, const study::StudySpec& spec) {
    evictable_.clear();
    listed_.clear();
    pins_.clear();
    depends_.clear();
    for (std::uint32_t i = 0; i < trials.size(); ++i) list(TrialId{i}, trials[i], spec);
}

void Retention::check_invariants(const Trials& trials, const study::StudySpec& spec) const {
    Retention again;
    again.list_all(trials, spec);
    std::uint64_t bytes = 0;
    for (const Trial& t : trials)
        for (const auto& checkpoint : t.checkpoints) bytes += checkpoint.bytes;
    if (bytes != bytes_) throw std::logic_error("the bytes of all checkpoints are off");
    const auto same = [](const Evictable& a, const Evictable& b) { return !(a < b) && !(b < a); };
    if (sorted(pins_) != sorted(again.pins_) || trimmed(depends_) != trimmed(again.depends_))
        throw std::logic_error("the list of checkpoints that other trials go on from is off");
    if (!std::ranges::equal(evictable_, again.evictable_, same))
        throw std::logic_error("the list of trials whose checkpoints may go is not what a restored head would make");
}

} // namespace ranktune::tuner
