// SPDX-License-Identifier: Apache-2.0
#include "schedulers/population/population.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <variant>

#include "models/welch.hpp"
#include "ranktune/base/rng.hpp"
#include "ranktune/study/schema.hpp"
#include "schedulers/population/explore.hpp"

namespace ranktune::schedulers {
namespace {

using base::Iteration;
using base::TrialId;
using study::Reason;
using study::Verb;

constexpr std::uint8_t population_version = 5;
constexpr double level_of_t_test = 0.05;
/// Draws for a donor before all that are possible are counted.
constexpr int hasty_draws = 32;

} // namespace

Population::Population(const Options& options, const study::Objective& objective, space::SearchSpace space,
                       std::vector<study::Explored> explore, std::string kept)
    : options_(options),
      objective_(objective),
      space_(std::move(space)),
      explore_(std::move(explore)),
      kept_(std::move(kept)),
      standings_(options.points, options.quantile, options.compare == Compare::latest) {
    assert(options.points.interval >= 1 && options.quantile > 0.0 && options.quantile <= 0.5);
    assert(!(options.saved_before_verdict && options.synchronous));
}

// ---- decisions

Population::Standing Population::standing_of(const Report& report) const {
    const Member& own = member(report.trial);
    return standings_.of(report, own.place(), options_.members, own.held);
}

const SavedState* Population::publication(const Member& member) const {
    const SavedState* newest = nullptr;
    if (member.phase == Phase::failed) return newest;
    // (What it saves before its next ready point is a state that it has taken over itself.)
    if (options_.saved_before_verdict && member.judged_as != member.generation()) return newest;
    for (const SavedState& each : member.saved) {
        if (each.generation != member.generation()) continue;
        if (options_.saved_before_verdict && each.iteration != member.judged) continue;
        newest = &each;
        if (options_.synchronous && each.iteration == member.judged) break;
    }
    return newest;
}

base::RngStream Population::stream(base::Purpose purpose, const Report& report) const {
    return {options_.seed, purpose, report.trial.value(),
            static_cast<std::uint32_t>(report.iteration / options_.points.interval)};
}

bool Population::is_better(const study::Ranked& entry, const Report& report) const {
    if (entry.trial == report.trial) return false;
    if (options_.selection != Selection::t_test) return entry.score > report.score.rank();
    const Member& at = member(report.trial);
    std::vector<double> own = at.window;
    if (report.iteration > at.iteration) own.push_back(report.score.rank());
    const models::WelchTest test = models::welch_test(member(entry.trial).window, own);
    return test.difference > 0.0 && test.p_value < level_of_t_test;
}

bool Population::is_unreadable(const Report& report, TrialId donor) const {
    const Member& own = member(report.trial);
    return report.iteration == own.judged && std::ranges::find(own.unreadable, donor) != own.unreadable.end();
}

/// Two members that are alike have the same score for long, while each would gain by the other's state.
bool Population::is_tie(const study::Ranked& entry, const Report& report) const {
    return standings_.group_size(options_.members, true) == 1 && !explore_.empty() && entry.trial != report.trial &&
           entry.score == report.score.rank() && std::isfinite(entry.score);
}

/// Its report of the ready point before this one, if nobody can judge it here yet.
std::optional<Report> Population::judged_late(const Report& report, const Standing& standing) const {
    const Member& own = member(report.trial);
    const bool first_here =
        standing.members <= 1 || (options_.selection == Selection::truncation && standing.group == 0);
    if (!first_here || options_.compare == Compare::latest || options_.synchronous) return {};
    if (own.judged == 0 || own.judged >= report.iteration || own.judged_as != own.generation()) return {};
    return Report{report.trial, own.judged, own.score};
}

/// At a barrier all choices are made at once.
Population::Choice Population::choice_of(const Report& report, const Standing& standing) const {
    const Member& own = member(report.trial);
    Choice choice = own.held && report.iteration == barrier_ ? own.choice : choose(report, standing);
    if (const auto late = judged_late(report, standing)) {
        const Choice earlier = choose(*late, standing_of(*late));
        if (earlier.donor && publication(member(*earlier.donor)) != nullptr) return earlier;
    }
    if (choice.donor && publication(member(*choice.donor)) == nullptr) choice.donor.reset();
    return choice;
}

Population::Choice Population::choose(const Report& report, const Standing& standing) const {
    if (standing.members <= 1) return {};
    if (options_.selection != Selection::truncation) return choose_opponent(report);
    return standing.is_low() && standing.group > 0 ? choose_above(report, standing) : Choice{};
}

/// A member of the upper group, each with the same probability that is better and has saved its state.
Population::Choice Population::choose_above(const Report& report, const Standing& standing) const {
    const Ranking& ranking = *standings_.at(report.iteration);
    const Member& own = member(report.trial);
    // The old score of its own may lie among them.
    const bool old_score = options_.compare == Compare::latest && own.judged > 0;
    const std::size_t size =
        std::min(ranking.size(),
                 standing.group + (old_score && ranking.position({own.score, report.trial}) < standing.group ? 1 : 0));
    const auto beats = [&](const study::Ranked& entry) { return is_better(entry, report) || is_tie(entry, report); };
    // The best may be that old score; where the next is no better either, all scores are equal.
    if (!beats(ranking.best()) && !(size > 1 && beats(ranking[1]))) return {};
    base::RngStream random = stream(base::Purpose::exploit, report);
    const auto serves = [&](std::size_t position) {
        const study::Ranked& entry = ranking[position];
        return beats(entry) && can_donate(entry.trial, report.iteration) && !is_unreadable(report, entry.trial);
    };
    for (int draw = 0; draw < hasty_draws; ++draw) {
        const std::size_t position = random.below(size);
        if (serves(position)) return {true, ranking[position].trial};
    }
    std::vector<std::size_t> all;
    for (std::size_t position = 0; position < size; ++position)
        if (serves(position)) all.push_back(position);
    if (all.empty()) return {true, std::nullopt};
    return {true, ranking[all[random.below(all.size())]].trial};
}

/// One of the others, each with the same probability.
Population::Choice Population::choose_opponent(const Report& report) const {
    const Ranking& ranking = *standings_.at(report.iteration);
    base::RngStream random = stream(base::Purpose::exploit, report);
    const Member& own = member(report.trial);
    const bool again = report.iteration == own.judged;
    const bool is_there = again || (options_.compare == Compare::latest && own.judged > 0);
    if (ranking.size() <= (is_there ? 1U : 0U) + (again ? own.unreadable.size() : 0U)) return {}; // nobody is left
    const auto serves = [&](TrialId trial) { return trial != report.trial && !is_unreadable(report, trial); };
    const study::Ranked* opponent = nullptr;
    while (opponent == nullptr || !serves(opponent->trial)) opponent = &ranking[random.below(ranking.size())];
    if (!is_better(*opponent, report)) return {};
    if (const Member& at = member(opponent->trial); at.held && at.judged == report.iteration)
        if (const Choice choice = choose_opponent(held_report(opponent->trial)); choice.donor) return choice;
    const bool donates = can_donate(opponent->trial, report.iteration);
    return {true, donates ? std::optional(opponent->trial) : std::nullopt};
}

std::optional<Iteration> Population::waits_behind(Iteration iteration, bool contended) const {
    if (options_.synchronous) return {}; // whoever waits at a barrier gives its ranks back there
    if (members_.size() < options_.members) return Iteration{0};
    std::optional<Iteration> least;
    if (!paused_.empty()) least = paused_.begin()->first;
    if (contended && !waiting_.empty()) least = std::min(least.value_or(iteration), waiting_.begin()->first);
    return least && *least < iteration ? least : std::nullopt;
}

std::optional<Iteration> Population::donated(TrialId trial) const {
    const Member& at = member(trial);
    if (standings_.over() >= options_.members) return {};
    if (!options_.saved_before_verdict && at.phase != Phase::closed)
        return {}; // of those that train, the newest serves
    const SavedState* saved = publication(at);
    return saved == nullptr ? std::nullopt : std::optional(saved->iteration);
}

bool Population::saves_first(TrialId trial, Iteration iteration) const {
    return options_.saved_before_verdict && options_.points.contain(iteration) && iteration > member(trial).judged;
}

study::Verdict Population::decide(const Report& report, bool contended) const {
    if (report.iteration >= options_.points.ceiling)
        return {Verb::stop, Reason::max_iterations, static_cast<double>(options_.points.ceiling)};
    const Member& own = member(report.trial);
    const bool judged = report.iteration <= own.judged && !own.held;
    if (!options_.points.contain(report.iteration) || judged) return {Verb::go_on, Reason::below_rung};
    const Standing standing = standing_of(report);
    const Choice choice = choice_of(report, standing);
    if (choice.donor) return {Verb::exploit, Reason::none};
    if (const auto behind = waits_behind(report.iteration, contended))
        return {Verb::pause, Reason::turn, static_cast<double>(*behind)};
    const auto told = [&](Reason reason) {
        return study::Verdict{Verb::go_on, reason, static_cast<double>(standing.position + 1),
                              static_cast<double>(standing.members)};
    };
    if (choice.wanted) return told(Reason::unpublished);
    const bool may_be_wanted = options_.selection != Selection::truncation || standing.is_high();
    return told(may_be_wanted ? Reason::published : Reason::kept);
}

Exploit Population::exploit(const Report& report) const {
    const Choice choice = choice_of(report, standing_of(report));
    if (!choice.donor) throw std::logic_error("pbt: a member that exploits nobody was asked whom");
    return exploit_of(report, *choice.donor);
}

Exploit Population::exploit_of(const Report& report, TrialId trial) const {
    const Member& donor = member(trial);
    base::RngStream random = stream(base::Purpose::explore, report);
    return {trial, publication(donor)->iteration,
            explored(space_, donor.configuration, explore_, options_.resample, kept_,
                     member(report.trial).configuration, random)};
}

std::optional<Exploit> Population::exploit_instead(TrialId trial) const {
    const Member& own = member(trial);
    if (own.unreadable.empty() || own.held || own.iteration != own.judged) return {};
    const Report report{trial, own.judged, own.score};
    const Choice choice = choose(report, standing_of(report));
    if (!choice.donor || publication(member(*choice.donor)) == nullptr) return {};
    return exploit_of(report, *choice.donor);
}

/// Of a member of the upper group, each with the same probability; if none of them has saved, of the best that has. (In
/// a deterministic study, what is left of the states must not matter.)
std::optional<Exploit> Population::replacement(TrialId trial) const {
    const Member& own = member(trial);
    if (options_.saved_before_verdict || own.judged == 0) return {};
    const Report report{trial, own.judged, own.score};
    const Ranking& ranking = *standings_.at(own.judged);
    std::vector<TrialId> upper;
    for (std::size_t position = 0; position < ranking.size(); ++position) {
        if (position >= standings_.group_size(ranking.size(), true) && !upper.empty()) break;
        const TrialId other = ranking[position].trial;
        if (std::isfinite(ranking[position].score) && other != trial && !is_unreadable(report, other) &&
            publication(member(other)) != nullptr)
            upper.push_back(other);
    }
    if (upper.empty()) return {};
    base::RngStream random = stream(base::Purpose::exploit, report);
    return exploit_of(report, upper[random.below(upper.size())]);
}

Work Population::next(const Pool& pool) const {
    if (pool.can_create) return Create{};
    if (paused_.empty()) return NothingLeft{};
    const auto& [iteration, trial] = *paused_.begin();
    // A member that failed at the ceiling, and was reopened, has been there before.
    const Iteration from = std::min(iteration, options_.points.ceiling - 1);
    return Promotion{trial, from, options_.points.after(from), Reason::promoted};
}

// ---- state

Population::Queue* Population::queue_of(Phase phase) {
    if (phase == Phase::waiting) return &waiting_;
    return phase == Phase::paused ? &paused_ : nullptr;
}

void Population::set_phase(TrialId trial, Phase phase) {
    Member& at = member(trial);
    if (Queue* queue = queue_of(at.phase)) queue->erase({at.iteration, trial});
    if (is_over(at.phase)) standings_.count_over(at.place(), -1);
    at.phase = phase;
    if (Queue* queue = queue_of(phase)) queue->insert({at.iteration, trial});
    if (is_over(at.phase)) standings_.count_over(at.place(), 1);
}

void Population::apply(const study::Record& record) {
    apply_one(record);
    if (!followers_.empty()) look_at_donors(record);
}

void Population::apply_one(const study::Record& record) {
    if (const auto* report = std::get_if<study::Reported>(&record)) {
        reported(*report);
    } else if (const auto* early = std::get_if<study::ReportHeld>(&record)) {
        if (options_.synchronous) held(*early); // otherwise it only waits for its turn
    } else if (const auto* metric = std::get_if<study::MetricDefined>(&record)) {
        objective_.apply(*metric);
    } else if (const auto* trial = std::get_if<study::TrialCreated>(&record)) {
        created(*trial);
    } else if (const auto* start = std::get_if<study::TrialStarted>(&record)) {
        set_phase(start->trial, Phase::running);
    } else if (const auto* saved = std::get_if<study::CheckpointCommitted>(&record)) {
        const study::CheckpointRef& checkpoint = saved->checkpoint;
        member(saved->trial).saved.push_back({checkpoint.iteration, checkpoint.generation, checkpoint.path});
    } else if (const auto* gone = std::get_if<study::CheckpointReleased>(&record)) {
        std::erase_if(member(gone->trial).saved, [&](const SavedState& each) { return each.path == gone->path; });
    } else if (const auto* takeover = std::get_if<study::Exploited>(&record)) {
        exploited(*takeover);
    } else if (const auto* back = std::get_if<study::ExploitUndone>(&record)) {
        undone(*back);
    } else if (const auto* end = std::get_if<study::AttemptEnded>(&record)) {
        attempt_over(end->trial);
    } else if (std::holds_alternative<study::IncarnationBegan>(record)) {
        for (std::uint32_t i = 0; i < members_.size(); ++i) attempt_over(TrialId(i));
    } else if (const auto* promotion = std::get_if<study::TrialPromoted>(&record)) {
        require_record(member(promotion->trial).phase == Phase::paused, promotion->trial,
                       "goes on although the population has not paused it");
        set_phase(promotion->trial, Phase::waiting);
    } else if (const auto* close = std::get_if<study::TrialClosed>(&record)) {
        closed(*close);
    } else if (const auto* again = std::get_if<study::TrialReopened>(&record)) {
        set_phase(again->trial, Phase::waiting);
        if (again->from_scratch) member(again->trial).saved.clear(); // what others need of it stays, for them
    }
}

void Population::created(const study::TrialCreated& record) {
    require_record(record.trial.value() == members_.size(), record.trial, "is created out of order");
    Member& at = members_.emplace_back();
    at.configuration = record.configuration;
    if (record.trial.value() > 0) at.configuration.share_names(members_.front().configuration);
    waiting_.insert({0, record.trial});
}

void Population::arrived(TrialId trial, Iteration iteration, double score) {
    Member& at = member(trial);
    if (iteration > at.iteration) {
        const Phase phase = at.phase;
        set_phase(trial, Phase::running); // out of its queue, whose order changes
        at.iteration = iteration;
        set_phase(trial, phase);
        if (options_.selection == Selection::t_test) {
            if (at.window.size() == options_.window) at.window.erase(at.window.begin());
            at.window.push_back(score);
        }
    }
    if (!options_.points.contain(iteration) || iteration <= at.judged) return;
    standings_.rank(trial, at.place(), iteration, score);
    at.judged = iteration;
    at.judged_as = at.generation();
    at.score = score;
    at.unreadable.clear();
}

void Population::reported(const study::Reported& record) {
    Member& at = member(record.trial);
    if (at.held) {
        // Alone, whoever else is there. (A verdict without a reason: it has ended by itself.)
        const bool leaves = record.verdict.verb == Verb::stop || record.verdict.reason == Reason::none;
        if (!leaves && record.iteration > barrier_) begin_verdicts(record.iteration);
        release(record.trial);
    } else {
        arrived(record.trial, record.iteration, objective_.score(objective_.value(record)));
    }
    if (record.verdict.verb == Verb::pause) set_phase(record.trial, Phase::paused);
}

void Population::exploited(const study::Exploited& record) {
    Member& at = member(record.trial);
    at.before.push_back(at.configuration);
    at.donors.push_back(record.donor.trial);
    at.configuration = record.configuration;
    at.configuration.share_names(at.before.back());
    at.window.clear();
    require_record(at.generation() == record.generation, record.trial, "skips a generation");
}

void Population::undone(const study::ExploitUndone& record) {
    Member& at = member(record.trial);
    require_record(at.generation() > record.generation, record.trial, "undoes an exploit that is none");
    at.configuration = at.before[record.generation];
    if (record.why == study::StateLoss::unreadable) at.unreadable.push_back(at.donors.back());
    at.before.resize(record.generation);
    at.donors.resize(record.generation);
    at.window.clear();
}

/// A score of a failed member is no score to beat for ever.
void Population::closed(const study::TrialClosed& record) {
    Member& at = member(record.trial);
    require_record(!is_over(at.phase), record.trial, "is closed twice");
    const bool failed = record.phase == study::TrialPhase::failed;
    release(record.trial);
    set_phase(record.trial, failed ? Phase::failed : Phase::closed);
    if (!failed || options_.compare != Compare::latest || at.judged == 0) return;
    standings_.remove(record.trial, at.place());
    at.judged = 0;
}

void Population::attempt_over(TrialId trial) {
    if (member(trial).phase == Phase::running) set_phase(trial, Phase::waiting);
}

// ---- snapshots

void Population::snapshot(study::Encoder& out) const {
    out.u8(population_version);
    objective_.snapshot(out);
    out.varint(options_.points.interval);
    out.varint(barrier_);
    study::put(out, members_);
    standings_.snapshot(out);
}

void Population::restore(study::Decoder& in) {
    require_format(in.u8() == population_version, "pbt", "has another version");
    objective_.restore(in);
    require_format(in.varint() == options_.points.interval, "pbt", "has another interval");
    barrier_ = in.varint();
    held_.clear();
    ready_.clear();
    followers_.clear();
    members_.clear();
    waiting_.clear();
    paused_.clear();
    study::get(in, members_);
    standings_.restore(in);
    for (std::uint32_t i = 0; i < members_.size(); ++i) restored(TrialId{i});
    for (const auto& [iteration, trial] : held_)
        if (iteration == barrier_) list_follower(trial);
    require_invariants(*this, "pbt");
}

void Population::restored(TrialId trial) {
    Member& at = members_[trial.value()];
    require_format(at.donors.size() == at.before.size(), "pbt", "has a generation without a donor");
    require_format(at.window.size() <= options_.window, "pbt", "has too many scores");
    require_format(at.phase <= Phase::failed, "pbt", "has a phase that there is not");
    require_format(!at.choice.donor || at.choice.donor->value() < members_.size(), "pbt", "has an unknown donor");
    at.configuration.share_names(members_.front().configuration);
    for (space::Configuration& each : at.before) each.share_names(at.configuration);
    if (at.held) held_.insert({at.judged, trial});
    if (Queue* queue = queue_of(at.phase)) queue->insert({at.iteration, trial});
    if (is_over(at.phase)) standings_.count_over(at.place(), 1);
}

void Population::check_invariants() const {
    std::size_t judged = 0;
    for (std::size_t i = 0; i < members_.size(); ++i) {
        const Member& at = members_[i];
        require(at.judged <= at.iteration, "pbt: member ", i, " was judged before it reported");
        require(at.judged == 0 || options_.points.contain(at.judged), "pbt: member ", i,
                " was judged at no ready point");
        require(!std::isnan(at.score), "pbt: member ", i, " has no score");
        if (at.judged > 0) ++judged;
        if (at.judged == 0) continue;
        const Ranking* ranking = standings_.at(at.judged);
        const study::Ranked entry{at.score, TrialId(static_cast<std::uint32_t>(i))};
        const std::size_t position = ranking == nullptr ? 0 : ranking->position(entry);
        require(ranking != nullptr && position < ranking->size() && (*ranking)[position] == entry, "pbt: member ", i,
                " is not in the ranking of its ready point");
    }
    standings_.check(members_.size(), judged);
    check_barrier();
    const auto count = [&](Phase phase) {
        return static_cast<std::size_t>(std::ranges::count(members_, phase, &Member::phase));
    };
    require(waiting_.size() == count(Phase::waiting) && paused_.size() == count(Phase::paused),
            "pbt: a member stands in no queue");
}

} // namespace ranktune::schedulers
