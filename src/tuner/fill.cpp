// SPDX-License-Identifier: Apache-2.0
// Decides what takes effect next, which work is next, and which trial gets free ranks. Pure.

#include <algorithm>
#include <cmath>

#include "ranktune/base/rng.hpp"
#include "tuner/causes.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::tuner {
namespace {

/// No trial is created while this many wait for ranks: a large trial is never drawn again, but the queue must not grow
/// without limit.
constexpr std::size_t max_unplaced = 8;
constexpr std::size_t max_unplaced_of_two_kinds = 64;
/// A trial overtaken this often reserves ranks that become free.
constexpr std::uint32_t max_overtaken = 8;

} // namespace

Tuner::Next Tuner::decide(Fill&, Round& round) const {
    if (state_.ended) return {};
    if (!state_.draining) {
        const auto room = admission_->room();
        const bool has_room =
            room == Admission::Room::one || (room == Admission::Room::by_ranks && ranks_are_left_over(round.now));
        if (has_room)
            if (auto work = next_work(round)) return work;
        if (auto ticket = open_ticket(round.now)) return ticket;
    }
    // Nothing takes effect before a slot that waits for its suggestion has a trial: that would change the order.
    if (!waits_for_ticket())
        if (auto fact = admission_->next()) return judged(*fact, round);
    if (state_.draining) return {};
    return place(round.now);
}

Tuner::Next Tuner::judged(Fact& fact, Round& round) const {
    if (auto* report = std::get_if<ReportFact>(&fact)) return judged(std::move(*report), round);
    return judged(std::get<EndFact>(fact), round.now);
}

// ---- work

bool Tuner::can_create() const {
    const auto created = static_cast<std::uint32_t>(state_.trials.size());
    return created < spec_.num_trials && (to_repeat() || has_starting_point() || !state_.requests.points().empty() ||
                                          !searcher_->exhausted(state_.suggested));
}

/// The trial whose configuration the next one has, too; nullopt: the next one has another configuration.
std::optional<TrialId> Tuner::to_repeat() const {
    const auto created = static_cast<std::uint32_t>(state_.trials.size());
    const TrialId first = first_repeat(TrialId{created}, spec_.searcher.repeats);
    return first.value() < created ? std::optional(first) : std::nullopt;
}

/// Configurations so far.
std::size_t Tuner::configurations() const {
    const std::size_t repeats = spec_.searcher.repeats;
    return (state_.trials.size() + repeats - 1) / repeats;
}

/// The first trials take the points to try first.
bool Tuner::has_starting_point() const { return configurations() < spec_.searcher.start.size(); }

/// What a point lacks comes from the searcher's next suggestion, which stays the next one; what that lacks, too, is
/// drawn as in random search.
space::Configuration Tuner::completed(const space::Configuration& given) const {
    const TrialId trial{static_cast<std::uint32_t>(state_.trials.size())};
    std::optional<space::Configuration> suggested;
    return spec_.space.assemble([&](std::size_t i) -> space::Value {
        const space::Parameter& parameter = spec_.space.parameters()[i];
        if (const space::Value* value = given.find(parameter.name)) return *value;
        if (!suggested) suggested = searcher_->suggest(state_.suggested, state_.observations);
        if (suggested)
            if (const space::Value* value = suggested->find(parameter.name)) return *value;
        base::RngStream random(spec_.seed, base::Purpose::sample, trial.value(), static_cast<std::uint32_t>(i));
        return space::decode(parameter.domain, random.uniform());
    });
}

schedulers::Pool Tuner::pool() const {
    return {can_create(), admission_->any_active(), TrialId{static_cast<std::uint32_t>(state_.trials.size())}};
}

/// Promotes a paused trial or makes a new one.
Tuner::Next Tuner::next_work(Round& round) const {
    const schedulers::Pool known = pool();
    const schedulers::Work work = scheduler_->next(known);
    if (const auto* promotion = std::get_if<schedulers::Promotion>(&work)) {
        if (const auto wanted = exploits_ ? scheduler_->exploit_at(*promotion) : std::nullopt)
            round.exploit = takeover(promotion->trial, state_.trials[promotion->trial].iteration, *wanted, round.now);
        return study::TrialPromoted{promotion->trial, round.now, promotion->from, promotion->target, promotion->reason};
    }
    const auto* create = std::get_if<schedulers::Create>(&work);
    return create != nullptr && known.can_create ? new_trial(*create, round.now) : Next{};
}

/// Repeats the configuration of the last one, or takes the next point to try first, one that a user added, the oldest
/// ticket that is ready, or a suggestion of the searcher.
Tuner::Next Tuner::new_trial(const schedulers::Create& create, StudyTime now) const {
    const TrialId id{static_cast<std::uint32_t>(state_.trials.size())};
    study::TrialCreated record{id, now, 1, create.bracket, create.target, {}, {}};
    if (const auto first = to_repeat()) {
        record.origin = {Origin::Kind::repeat, first->value(), id.value() - first->value()};
        record.configuration = state_.trials[*first].configuration;
        record.ranks = spec_.ranks_for(record.configuration);
        return record;
    }
    if (has_starting_point()) {
        record.origin = {Origin::Kind::start, configurations(), 0};
        record.configuration = completed(spec_.searcher.start[configurations()]);
        record.ranks = spec_.ranks_for(record.configuration);
        return record;
    }
    if (!state_.requests.points().empty()) {
        record.origin = {Origin::Kind::user, state_.requests.created(), 0};
        record.configuration = completed(state_.requests.points().front());
        record.ranks = spec_.ranks_for(record.configuration);
        return record;
    }
    const bool prepares = tickets_wanted() > 0;
    const bool in_order = admission_->waits_for_tickets();
    const Ticket* ticket = in_order ? state_.tickets.oldest() : state_.tickets.oldest_ready();
    if (prepares && in_order && (ticket == nullptr || !ticket->answered)) return {};
    if (ticket != nullptr && ticket->configuration) {
        record.origin = {Origin::Kind::ticket, ticket->number, 0};
        record.configuration = *ticket->configuration;
    } else {
        auto configuration = searcher_->suggest(state_.suggested, state_.observations);
        if (!configuration) return {};
        // A trial that waits for its ticket comes here when that failed. Otherwise a searcher that failed too often
        // prepares nothing more.
        const std::uint32_t failures = in_order ? (prepares ? 1 : 0) : state_.tickets.failures();
        const bool stopgap = prepares || failures > 0;
        record.origin = {stopgap ? Origin::Kind::stopgap : Origin::Kind::searcher, state_.suggested, failures};
        record.configuration = std::move(*configuration);
    }
    record.ranks = spec_.ranks_for(record.configuration);
    return record;
}

study::SuggestionBasis Tuner::basis_of(const Origin& origin) const {
    return searcher_->basis(origin.index, state_.observations);
}

/// How many suggestions to prepare ahead; 0: none.
std::size_t Tuner::tickets_wanted() const {
    const std::uint32_t size = std::max(1U, spec_.resources.ranks);
    std::uint32_t fit = 0;
    for (const WorkerKind kind : kinds_of_workers())
        fit += state_.placement.alive(kind) / (kind == WorkerKind::with_gpu ? 1U : size);
    const std::size_t groups = groups_at_once(spec_, fit);
    const std::size_t repeats = spec_.searcher.repeats; // so many groups take the same suggestion
    return searcher_->prepares_ahead(static_cast<std::uint32_t>((groups + repeats - 1) / repeats), state_.observations);
}

/// Keeps as many tickets open as the searcher prepares ahead.
Tuner::Next Tuner::open_ticket(StudyTime now) const {
    const std::size_t wanted = tickets_wanted();
    const std::size_t taken = std::max(configurations(), spec_.searcher.start.size()) + state_.requests.points().size();
    const std::size_t all = spec_.num_trials / spec_.searcher.repeats;
    const std::size_t to_come = all - std::min(all, taken);
    if (state_.tickets.open().size() >= std::min(wanted, to_come)) return {};
    return study::TicketOpened{state_.tickets.next(), now, state_.observations.size()};
}

/// Deterministic study: the next trial waits for its suggestion, and everything else waits for that trial.
bool Tuner::waits_for_ticket() const {
    if (!admission_->waits_for_tickets() || state_.draining || to_repeat() || has_starting_point() ||
        !state_.requests.points().empty() || tickets_wanted() == 0)
        return false;
    if (admission_->room() == Admission::Room::none || !can_create()) return false;
    const Ticket* ticket = state_.tickets.oldest();
    const bool ready = ticket != nullptr && ticket->answered;
    return !ready && std::holds_alternative<schedulers::Create>(scheduler_->next(pool()));
}

/// Whether ranks are free that no waiting trial can use or has reserved.
bool Tuner::ranks_are_left_over(StudyTime now) const {
    if (state_.placement.free() == 0 || !room_for_one_more() || suspects_come_first()) return false;
    // Free ranks are not for others while a trial reserves them, or while too many trials wait.
    if (too_many_wait() || !state_.pace.is_time_for_another(now)) return false;
    return std::ranges::any_of(kinds_of_workers(), [&](WorkerKind kind) {
        const std::uint32_t fewest = kind == WorkerKind::without_gpu ? spec_.resources.ranks : 1;
        return state_.placement.free(kind) >= fewest && std::ranges::none_of(state_.trials.waiting(), [&](TrialId id) {
                   const Trial& t = state_.trials[id];
                   const bool reserves = t.overtaken >= max_overtaken && is_possible(t);
                   return t.workers == kind && (fits(t) || reserves) && in_time(id, now);
               });
    });
}

/// So many trials wait that no further one is made, even if ranks are free. Which kind of worker a trial can use is
/// known only when the trial is made. So with two kinds more trials may wait: else one kind could run out of trials.
bool Tuner::too_many_wait() const {
    const auto& waiting = state_.trials.waiting();
    if (spec_.resources.gpus != study::GpuUse::some) return waiting.size() >= max_unplaced;
    const auto possible = [this](TrialId id) { return is_possible(state_.trials[id]); };
    return std::ranges::count_if(waiting, possible) >= static_cast<std::ptrdiff_t>(max_unplaced_of_two_kinds);
}

std::span<const WorkerKind> Tuner::kinds_of_workers() const {
    static constexpr WorkerKind all[] = {WorkerKind::any, WorkerKind::with_gpu, WorkerKind::without_gpu};
    const std::span<const WorkerKind> kinds(all);
    return spec_.resources.gpus == study::GpuUse::some ? kinds.subspan(1) : kinds.first(1);
}

// ---- ranks

/// Enough workers that the trial can use are free.
bool Tuner::fits(const Trial& t) const { return t.wanted_ranks <= state_.placement.free(t.workers); }

/// Enough of them are alive.
bool Tuner::is_possible(const Trial& t) const { return t.wanted_ranks <= state_.placement.alive(t.workers); }

bool Tuner::room_for_one_more() const {
    return spec_.max_concurrent == 0 || state_.trials.live_attempts() < spec_.max_concurrent;
}

Tuner::Next Tuner::place(StudyTime now) const {
    const std::uint32_t free = state_.placement.free();
    const bool full = !admission_->keeps_the_line() && !room_for_one_more();
    if (admission_->keeps_the_line() || (free > 0 && !full))
        if (Next record = suspects_come_first() ? place_suspect(now) : place_in_line(now)) return record;
    if (const auto idle = admission_->surplus(free, full)) return study::YieldAsked{*idle, now};
    return {};
}

bool Tuner::is_training(TrialId id) const { return state_.trials[id].attempt.live && !admission_->is_parked(id); }

/// The trial wants ranks, and enough ranks are alive.
bool Tuner::waits_for_ranks(TrialId id) const { return admission_->wants_ranks(id) && is_possible(state_.trials[id]); }

/// Whether a suspect waits or trains. Then nothing else is started, so that a death identifies its cause. Suspects that
/// are paused, cannot have ranks, or wait for their turn do not count.
bool Tuner::suspects_come_first() const {
    return std::ranges::any_of(state_.blame.suspects(),
                               [this](TrialId id) { return is_training(id) || waits_for_ranks(id); });
}

/// Suspects are tried one at a time, in trial order. Only cleared trials run beside a suspect.
Tuner::Next Tuner::place_suspect(StudyTime now) const {
    const auto& suspects = state_.blame.suspects();
    if (std::ranges::any_of(suspects, [this](TrialId id) { return is_training(id); })) return {};
    const auto next = std::ranges::find_if(suspects, [this](TrialId id) { return waits_for_ranks(id); });
    if (next == suspects.end() || !in_time(*next, now)) return {};
    if (fits(state_.trials[*next])) return started(*next, now);
    const std::uint32_t wanted = state_.trials[*next].wanted_ranks;
    // A trial that waits for its turn can give up its ranks for the suspect.
    if (const auto other = admission_->to_yield({}, wanted, state_.placement.free()))
        return study::YieldAsked{*other, now};
    return {};
}

/// Starts the first trial in line that fits. If the line is kept, the first trial is waited for. Otherwise a later one
/// may overtake a trial that does not fit, at most `max_overtaken` times.
Tuner::Next Tuner::place_in_line(StudyTime now) const {
    Next record;
    const Placement& placement = state_.placement;
    std::vector<WorkerKind> reserved; // by trials further ahead in the line
    admission_->visit_line([&](TrialId id) {
        const Trial& t = state_.trials[id];
        if (std::ranges::find(reserved, t.workers) != reserved.end()) return true;
        const bool late = !in_time(id, now);
        const bool possible = is_possible(t);
        if (!late && fits(t)) {
            record = started(id, now);
            return false;
        }
        if (!admission_->keeps_the_line()) {
            if (!late && possible && t.overtaken >= max_overtaken) reserved.push_back(t.workers);
            return reserved.size() < kinds_of_workers().size();
        }
        if (late) return false; // too late for this job, and later trials could not be admitted
        if (!possible) {        // all later trials would wait for this one forever
            record = study::DrainBegan{now, Reason::no_ranks, study::describe(Reason::no_ranks, 0, 0)};
        } else if (const auto other = admission_->to_yield(id, t.wanted_ranks, placement.free())) {
            record = study::YieldAsked{*other, now};
        }
        return false;
    });
    return record;
}

/// A trial that exploits gets the ranks that it had, if they are still free: its program may wait there.
std::vector<Rank> Tuner::ranks_for(const Trial& t, const study::StartFrom& from) const {
    const Placement& placement = state_.placement;
    const bool had_them =
        t.attempt.since > state_.began && t.attempt.ranks.size() == t.wanted_ranks; // in this incarnation
    const bool again = std::holds_alternative<study::Donor>(from) && had_them && placement.are_free(t.attempt.ranks);
    return again ? t.attempt.ranks : placement.plan(t.wanted_ranks, spec_.max_ranks_per_trial(t.workers), t.workers);
}

/// What the trial takes over because no state of it is left. (One that has yet to save for the first time begins
/// again.)
std::optional<study::Exploited> Tuner::replaced(TrialId id, StudyTime now) const {
    const Trial& t = state_.trials[id];
    if (!exploits_ || !t.has_saved || !std::holds_alternative<Fresh>(start_of(t).from)) return {};
    const auto wanted = scheduler_->replacement(id);
    return wanted ? takeover(id, t.iteration, *wanted, now) : std::nullopt;
}

/// The trial starts, once it has a state to start from.
Tuner::Next Tuner::started(TrialId id, StudyTime now) const {
    if (auto takeover = replaced(id, now)) return *std::move(takeover);
    constexpr double whole = 1000.0;
    const Trial& t = state_.trials[id];
    const study::ResourceSpec& wanted = spec_.resources;
    const bool asked = wanted.gpus == study::GpuUse::one_per_rank || t.workers == study::WorkerKind::with_gpu;
    const auto gpus = asked ? static_cast<std::uint32_t>(std::lround(whole * wanted.gpu_share)) : 0U;
    study::StartFrom from = start_of(t).from;
    std::vector<Rank> ranks = ranks_for(t, from);
    return study::TrialStarted{id, t.attempt.id.next(), now, std::move(ranks), std::move(from), gpus};
}

// ---- time

/// The iteration up to which a trial is trained: its next rung if trials pause at rungs, otherwise the end. Null: a new
/// trial.
Iteration Tuner::trained_up_to(const Trial* t) const {
    const auto rungs = scheduler_->pauses() ? scheduler_->rungs() : std::vector<schedulers::Scheduler::RungView>{};
    if (rungs.empty()) return spec_.max_iterations;
    if (t == nullptr) return rungs.front().iteration;
    return t->target > 0 ? std::min(t->target, spec_.max_iterations)
                         : rungs[std::min<std::size_t>(t->bracket, rungs.size() - 1)].iteration;
}

/// Iterations that an attempt trains before its work is saved.
Iteration Tuner::stretch_of(TrialId id) const {
    const Trial& t = state_.trials[id];
    return state_.pace.stretch_of(t, trained_up_to(&t), spec_.max_iterations, spec_.checkpoint.supported);
}

/// Whether an attempt that starts now reaches a checkpoint before the deadline, or its end if it cannot save.
bool Tuner::in_time(TrialId id, StudyTime now) const {
    if (!state_.pace.deadline()) return true;
    const double known = state_.trials[id].pace;
    const double iteration = known > 0.0 ? known : state_.pace.iteration();
    return state_.pace.is_time_for(state_.pace.needed(iteration, stretch_of(id)), now);
}

/// Nothing runs although there is work: only the deadline prevents it.
bool Tuner::waits_for_time(StudyTime now) const {
    if (!state_.pace.deadline()) return false;
    if (std::ranges::any_of(state_.trials.waiting(), [&](TrialId id) { return !in_time(id, now); })) return true;
    if (state_.pace.is_time_for_another(now)) return false;
    const schedulers::Work work =
        scheduler_->next({.can_create = can_create(), .active = false, .trial = pool().trial});
    return std::holds_alternative<schedulers::Create>(work) || std::holds_alternative<schedulers::Promotion>(work);
}

double Tuner::slowest_running() const {
    double slowest = 0.0;
    for (const auto& worker : state_.placement.workers())
        if (worker.alive && worker.trial) slowest = std::max(slowest, state_.trials[*worker.trial].pace);
    return slowest;
}

std::optional<StudyTime> Tuner::timer() const {
    if (state_.draining || state_.ended) return {};
    std::optional<StudyTime> at = state_.pace.time_to_tell(slowest_);
    if (spec_.time_budget) at = std::min(at.value_or(StudyTime::max()), StudyTime{*spec_.time_budget});
    if (const auto until = held_until(state_); until && state_.now < *until)
        at = std::min(at.value_or(StudyTime::max()), *until);
    return at;
}

} // namespace ranktune::tuner
