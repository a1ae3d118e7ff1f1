// SPDX-License-Identifier: Apache-2.0
#include "report/view/study_view.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "ranktune/study/command_template.hpp"
#include "ranktune/study/objective.hpp"
#include "ranktune/study/parse.hpp"
#include "report/explain/endings.hpp"
#include "report/replay/replay.hpp"
#include "report/screens/front.hpp"
#include "report/screens/screens.hpp"
#include "report/screens/simulated.hpp"
#include "report/view/history.hpp"
#include "report/view/side_tasks.hpp"
#include "report/view/wall_time.hpp"
#include "study/outside.hpp"
#include "study/printed_values.hpp"
#include "tuner/lineage.hpp"

namespace ranktune::report {
namespace {

using study::Reason;
using study::Verb;
using tuner::Trial;

std::vector<GenerationView> generations_of(const Trial& trial, std::span<const std::uint64_t> records) {
    std::vector<GenerationView> generations;
    if (trial.takeovers.empty()) return generations;
    const auto begin = [&](std::size_t k) -> GenerationView {
        if (k == 0) return {};
        const tuner::Takeover& takeover = trial.takeovers[k - 1];
        return {takeover.iteration,
                takeover.donor.trial,
                takeover.donor.checkpoint.iteration,
                {},
                k <= records.size() ? records[k - 1] : 0};
    };
    for (std::size_t k = 0; k <= trial.takeovers.size(); ++k) {
        generations.push_back(begin(k));
        generations.back().configuration = k < trial.takeovers.size() ? trial.takeovers[k].before : trial.configuration;
    }
    return generations;
}

TrialView trial_view(const Trial& t, study::TrialId id, const History& history) {
    TrialView view;
    view.phase = t.phase;
    view.why = reason_text(t);
    view.message = study::describe(t.failure);
    view.iterations = t.iteration;
    view.best = t.reported ? t.best : tuner::not_a_number;
    view.best_iteration = t.best_iteration;
    view.last = t.reported ? t.last : tuner::not_a_number;
    view.seconds = t.seconds;
    view.others = t.others;
    view.attempts = t.attempt.id.value();
    view.ranks = t.wanted_ranks;
    view.workers = t.workers;
    view.bracket = t.bracket;
    view.on_hold = t.on_hold;
    view.created_s = base::to_seconds(t.created);
    view.origin = t.origin;
    view.configuration = tuner::best_configuration(t);
    view.generations = generations_of(t, history.takeovers(id));
    view.closed = history.closed(id);
    return view;
}

/// Attempts with their ends. An attempt without one trains now, or ended with its start.
std::vector<AttemptView> attempts_of(const LoadedStudy& study, const History& history) {
    const auto& state = study.tuner->state();
    std::vector<const AttemptEnd*> ends;
    ends.reserve(history.ends().size());
    for (const AttemptEnd& end : history.ends()) ends.push_back(&end);
    const auto which = [](const AttemptEnd* end) { return std::pair{end->trial, end->attempt}; };
    std::ranges::stable_sort(ends, {}, which);
    std::vector<AttemptView> attempts;
    attempts.reserve(study.starts.size());
    for (const AttemptStart& start : study.starts) {
        AttemptView view;
        view.trial = start.trial;
        view.attempt = start.attempt.value();
        view.incarnation = start.incarnation;
        const auto ranks = std::span(study.ranks).subspan(start.first_rank, start.rank_count);
        view.ranks.assign(ranks.begin(), ranks.end());
        view.begin_s = base::to_seconds(start.at);
        view.from = start.from;
        view.whose = start.whose;
        view.start_record = start.record;
        const auto after = std::ranges::upper_bound(ends, std::pair{start.trial, start.attempt}, {}, which);
        const AttemptEnd* end = after == ends.begin() ? nullptr : *std::prev(after); // the newest of that attempt
        if (end != nullptr && which(end) == std::pair{start.trial, start.attempt}) {
            view.end_s = end->at_s;
            view.outcome = end->outcome;
            view.message = end->message;
            view.end_record = end->record;
        } else {
            view.end_s = start.incarnation < history.starts().size() ? history.starts()[start.incarnation].end_s
                                                                     : base::to_seconds(state.now);
            const Trial& trial = state.trial(start.trial);
            view.runs = !state.ended && trial.attempt.live && trial.attempt.id == start.attempt;
        }
        attempts.push_back(std::move(view));
    }
    return attempts;
}

/// Whether a decision compared the trial with others at a rung.
bool is_of_rung(const Decision& decision) {
    switch (decision.reason) {
        case Reason::rung:
        case Reason::in_top:
        case Reason::not_in_top:
        case Reason::first_arrival:
        case Reason::max_iterations:
            return !decision.promotion;
        default:
            return false;
    }
}

void sort_best_first(std::vector<RungView::Entry>& entries, study::Mode mode) {
    std::ranges::sort(entries, [mode](const RungView::Entry& a, const RungView::Entry& b) {
        return study::better({study::score(a.value, mode), a.trial}, {study::score(b.value, mode), b.trial});
    });
}

std::vector<RungView> rungs_of(const LoadedStudy& study, const History& history) {
    const tuner::Tuner& tuner = *study.tuner;
    const auto& decisions = history.decisions();
    // Stopping at a median or a turn of a population is no rung; only halving compares at an iteration.
    const bool halves = std::ranges::any_of(
        decisions, [](const Decision& d) { return d.reason == Reason::rung || d.reason == Reason::not_in_top; });
    if (!halves) return {};
    struct Place {
        std::tuple<std::uint32_t, study::Iteration, study::TrialId> key; // bracket first
        const Decision* decision;
    };
    std::vector<Place> sorted; // by rung and trial, then by time
    for (const Decision& d : decisions)
        if (d.promotion || is_of_rung(d))
            sorted.push_back({{tuner.state().trial(d.trial).bracket, d.iteration, d.trial}, &d});
    std::ranges::stable_sort(sorted, {}, &Place::key);
    std::vector<RungView> rungs;
    for (auto at = sorted.begin(); at != sorted.end();) {
        const auto key = at->key;
        std::optional<RungView::Entry> entry;
        for (; at != sorted.end() && at->key == key; ++at) {
            const Decision& decision = *at->decision;
            if (decision.promotion) {
                if (!entry) continue;
                entry->went_on = true;
                entry->promotion = decision.record;
            } else { // after a loss it may come here twice: the newest verdict counts
                const bool before = entry && entry->went_on;
                entry = {decision.trial, decision.value, before || decision.verb == Verb::go_on, decision.record,
                         entry ? entry->promotion : 0};
            }
        }
        if (!entry) continue;
        const auto [bracket, iteration, trial] = key;
        if (rungs.empty() || rungs.back().bracket != bracket || rungs.back().iteration != iteration)
            rungs.push_back({bracket, iteration, {}});
        rungs.back().entries.push_back(*entry);
    }
    for (RungView& rung : rungs) sort_best_first(rung.entries, tuner.spec().objective.mode);
    return rungs;
}

std::vector<HostView> hosts_of(const std::vector<study::RankInfo>& workers) {
    std::vector<HostView> hosts;
    std::unordered_map<std::string, std::size_t> where;
    std::set<std::pair<std::string, std::string>> shared; // GPUs by host and name
    for (const study::RankInfo& rank : workers) {
        const auto [at, is_new] = where.emplace(rank.host, hosts.size());
        if (is_new) hosts.push_back({rank.host});
        ++hosts[at->second].ranks;
        if (rank.device.empty() || shared.emplace(rank.host, rank.device).second) hosts[at->second].gpus += rank.gpus;
    }
    return hosts;
}

CostView cost_of(const StudyView& view, const LoadedStudy& study) {
    CostView cost;
    cost.cpus_per_rank = study.tuner->spec().resources.cpus_per_rank;
    for (std::size_t i = 0; i < view.starts.size(); ++i) {
        const StartOfHead& start = view.starts[i];
        cost.available_s += static_cast<double>(start.ranks) * (start.end_s - start.at_s);
        if (i >= study.workers.size()) continue;
        for (const HostView& host : hosts_of(study.workers[i]))
            cost.gpu_s += static_cast<double>(host.gpus) * (start.end_s - start.at_s);
    }
    for (const AttemptView& attempt : view.attempts)
        cost.held_s += static_cast<double>(attempt.ranks.size()) * (attempt.end_s - attempt.begin_s);
    for (const TrialView& trial : view.trials) cost.training_s += trial.seconds * trial.ranks;
    return cost;
}

/// Adds `weight` times the part of [begin, end] that lies in each slice, as a share of the slice.
void add_slices(std::vector<double>& slices, double all, double begin, double end, double weight) {
    const double width = all / static_cast<double>(slices.size());
    const auto last = static_cast<double>(slices.size() - 1);
    const auto first = static_cast<std::size_t>(std::clamp(begin / width, 0.0, last));
    for (std::size_t i = first; i < slices.size(); ++i) {
        const double from = std::max(begin, width * static_cast<double>(i));
        const double to = std::min(end, width * static_cast<double>(i + 1));
        if (to <= from) break;
        slices[i] += weight * (to - from) / width;
    }
}

std::vector<double> busy_slices(const StudyView& view) {
    constexpr std::size_t slices = 240;
    std::vector<double> held(slices, 0.0);
    std::vector<double> available(slices, 0.0);
    if (view.now_s <= 0.0) return {};
    for (const AttemptView& attempt : view.attempts)
        add_slices(held, view.now_s, attempt.begin_s, attempt.end_s, static_cast<double>(attempt.ranks.size()));
    for (const StartOfHead& start : view.starts)
        add_slices(available, view.now_s, start.at_s, start.end_s, static_cast<double>(start.ranks));
    for (std::size_t i = 0; i < slices; ++i) held[i] = available[i] > 0.0 ? std::min(1.0, held[i] / available[i]) : 0.0;
    return held;
}

/// What the study is, and how it went as a whole.
void take_facts(StudyView& view, const tuner::Tuner& tuner) {
    const auto& spec = tuner.spec();
    const auto& state = tuner.state();
    view.name = spec.name;
    view.uuid = state.uuid;
    view.metric = spec.objective.metric;
    view.mode = spec.objective.mode;
    view.simulated = simulated_text(state);
    view.searcher = spec.searcher.algorithm->name;
    view.scheduler = spec.scheduler.algorithm->name;
    view.trainable = spec.trainable.program ? study::shown_command(*spec.trainable.program) : spec.trainable.name;
    view.num_trials = spec.num_trials;
    view.lost_ranks = lost_ranks_text(state);
    view.beside = side_tasks_text(state);
    view.out_of_service = out_of_service_text(state);
    constexpr std::size_t most_failures = 20;
    const auto failures = failure_groups(state);
    for (std::size_t i = 0; i < std::min(failures.size(), most_failures); ++i)
        view.failures.push_back(text_of(failures[i]));
    if (failures.size() > most_failures)
        view.failures.push_back("and " + counted(failures.size() - most_failures, "other message"));
    view.max_iterations = spec.max_iterations;
    view.seed = spec.seed;
    view.ended = state.ended;
    if (state.ended) view.end = why_text(tuner);
    view.exit_code = static_cast<int>(state.outcome);
    view.now_s = base::to_seconds(state.now);
    if (const auto newest = time_of_newest_record(state)) view.as_of = wall_time_text(*newest);
    view.best = state.best;
    view.repeats = spec.searcher.repeats;
    view.compares_nothing = study::compares_nothing(tuner.spec());
    view.limits = limits_text(tuner.spec().objective);
    view.nearest = nearest_text(tuner);
    if (view.repeats > 1 && state.best) view.best_mean = text_of_best(tuner);
    if (state.best && state.simulation.empty() && !state.trial(*state.best).attempt.live) {
        view.other_weights = other_weights(state.trial(*state.best), tuner.spec().objective);
        const std::string cause = unsaved_cause(state.trial(*state.best));
        if (!view.other_weights.empty() && !cause.empty()) view.other_weights += " (not saved: " + cause + ")";
    }
    if (view.repeats > 1)
        for (const tuner::Repetitions& each : configurations_by_mean(tuner))
            if (each.complete && each.best) view.configurations.push_back(each);
    view.others = spec.objective.others;
    view.front = front_of(tuner);
    view.training = training_of(tuner);
    for (const auto& parameter : spec.space.parameters())
        if (!std::holds_alternative<space::Constant>(parameter.domain)) view.parameters.push_back(parameter);
    if (!state.best) return;
    const Trial& best = state.trial(*state.best);
    for (const tuner::Stretch& stretch : lineage_of_best(state, *state.best))
        view.lineage.push_back({stretch.trial, stretch.from, stretch.to, *stretch.configuration});
    view.again = study::resolved_toml(repeated_best(tuner));
    if (spec.trainable.program)
        view.command = study::trial_command_text(spec, tuner::best_configuration(best), *state.best);
}

} // namespace

std::uint64_t RungView::went_on() const {
    return static_cast<std::uint64_t>(std::ranges::count(entries, true, &Entry::went_on));
}

StudyView study_view(const LoadedStudy& study, History history) {
    StudyView view;
    take_facts(view, *study.tuner);
    const auto& trials = study.tuner->state().trials;
    view.trials.reserve(trials.size());
    for (std::uint32_t i = 0; i < trials.size(); ++i)
        view.trials.push_back(trial_view(trials[i], study::TrialId{i}, history));
    for (std::uint32_t i = 0; i < trials.size(); ++i) {
        view.trials[i].after = after_trial_text(study.tuner->state(), study::TrialId{i});
        view.trials[i].tags = study.notes.tags(study::TrialId{i});
        for (const studydir::Note& note : study.notes.of(study::TrialId{i})) {
            const std::string who = note.who == studydir::trial_itself ? "the trial" : note.who;
            if (!note.text.empty())
                view.trials[i].notes.push_back(note.time.substr(0, 10) + " " + who + ": " + note.text);
        }
    }
    view.origins = study.origins;
    view.best_steps = history.best();
    view.starts = history.starts();
    view.incidents = history.incidents();
    view.versions = history.versions();
    view.rungs = rungs_of(study, history);
    view.attempts = attempts_of(study, history);
    const bool has_ranks = !is_outside(study.tuner->spec()); // otherwise they only stand for places
    if (!study.workers.empty() && has_ranks) {
        view.hosts = hosts_of(study.workers.back());
        view.ranks_with_gpu = static_cast<std::uint64_t>(
            std::ranges::count_if(study.workers.back(), [](const study::RankInfo& rank) { return rank.gpus > 0; }));
    }
    view.ranks = !has_ranks ? study.tuner->spec().max_concurrent : view.starts.empty() ? 0 : view.starts.back().ranks;
    if (has_ranks) {
        view.cost = cost_of(view, study);
        view.cost.spent_s = history.rank_time().seconds();
    }
    if (study.tuner->spec().trainable.program) // whose time of training begins with its start
        view.cost.training_s =
            std::min(view.cost.training_s, view.cost.spent_s[static_cast<std::size_t>(Spent::training)]);
    view.busy = busy_slices(view);
    view.expected = expected_iterations(*study.tuner);
    double running_s = 0.0;
    for (const StartOfHead& start : view.starts) running_s += start.end_s - start.at_s;
    const auto& state = study.tuner->state();
    if (!state.ended && state.iterations > 0 && running_s > 1.0)
        view.left_s = running_s * static_cast<double>(view.expected - std::min(view.expected, state.iterations)) /
                      static_cast<double>(state.iterations);
    view.decisions = history.take_decisions();
    auto curves = history.take_curves();
    for (std::size_t i = 0; i < std::min(view.trials.size(), curves.size()); ++i)
        view.trials[i].curve = std::move(curves[i]);
    return view;
}

} // namespace ranktune::report
