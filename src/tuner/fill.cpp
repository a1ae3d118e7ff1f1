// SPDX-License-Identifier: Apache-2.0
// Decides what takes effect next, which work is next, and which trial gets free ranks. Pure.

#include <algorithm>
#include <cmath>

#include "ranktune/base/rng.hpp"
#include "tuner/decide.hpp"
#include "tuner/rules/causes.hpp"

namespace ranktune::tuner {
namespace {

/// No trial is created while this many wait for ranks: a large trial is never drawn again, but the queue must not grow
/// without limit.
constexpr std::size_t max_unplaced = 8;
constexpr std::size_t max_unplaced_of_two_kinds = 64;
/// A trial overtaken this often reserves ranks that become free.
constexpr std::uint32_t max_overtaken = 8;

/// The trial whose configuration the next one has, too; nullopt: the next one has another configuration.
std::optional<TrialId> to_repeat(const Core& core) {
    const auto created = static_cast<std::uint32_t>(core.state.trials.size());
    const TrialId first = first_repeat(TrialId{created}, core.spec.searcher.repeats);
    return first.value() < created ? std::optional(first) : std::nullopt;
}

/// Configurations so far.
std::size_t configurations(const Core& core) {
    const std::size_t repeats = core.spec.searcher.repeats;
    return (core.state.trials.size() + repeats - 1) / repeats;
}

/// The first trials take the points to try first.
bool has_starting_point(const Core& core) { return configurations(core) < core.spec.searcher.start.size(); }

bool can_create(const Core& core) {
    const auto created = static_cast<std::uint32_t>(core.state.trials.size());
    return created < core.spec.num_trials &&
           (to_repeat(core) || has_starting_point(core) || !core.state.requests.points().empty() ||
            !core.searcher->exhausted(core.state.suggested));
}

/// What a point lacks comes from the searcher's next suggestion, which stays the next one; what that lacks, too, is
/// drawn as in random search.
space::Configuration completed(const Core& core, const space::Configuration& given) {
    const TrialId trial{static_cast<std::uint32_t>(core.state.trials.size())};
    std::optional<space::Configuration> suggested;
    const space::Configuration whole = core.spec.space.assemble([&](std::size_t i) -> space::Value {
        const space::Parameter& parameter = core.spec.space.parameters()[i];
        if (const space::Value* value = given.find(parameter.name)) return *value;
        if (!suggested) suggested = core.searcher->suggest(core.state.suggested, core.state.observations);
        if (suggested)
            if (const space::Value* value = suggested->find(parameter.name)) return *value;
        base::RngStream random(core.spec.seed, base::Purpose::sample, trial.value(), static_cast<std::uint32_t>(i));
        return space::drawn(parameter.domain, random.uniform());
    });
    return core.spec.space.nearest(whole, given).value_or(whole); // points with no such were refused
}

schedulers::Pool pool(const Core& core) {
    return {can_create(core), core.admission->any_active(),
            TrialId{static_cast<std::uint32_t>(core.state.trials.size())}};
}

/// How many suggestions to prepare ahead; 0: none.
std::size_t tickets_wanted(const Core& core) {
    const std::uint32_t size = std::max(1U, core.spec.resources.ranks);
    std::uint32_t fit = 0;
    for (const WorkerKind kind : kinds_of_workers(core))
        fit += core.state.placement.alive(kind) / (kind == WorkerKind::with_gpu ? 1U : size);
    const std::size_t groups = groups_at_once(core.spec, fit);
    const std::size_t repeats = core.spec.searcher.repeats; // so many groups take the same suggestion
    return core.searcher->prepares_ahead(static_cast<std::uint32_t>((groups + repeats - 1) / repeats),
                                         core.state.observations);
}

/// A new trial waits for its ticket.
bool takes_no_stopgap(const Core& core) {
    return core.admission->waits_for_tickets() ||
           (!core.searcher->takes_stopgaps() && core.state.tickets.failures() == 0);
}

/// The one that the next trial takes once it is answered; null: none is open, or where order does not matter, ready.
const Ticket* next_ticket(const Core& core) {
    return core.admission->waits_for_tickets() ? core.state.tickets.oldest() : core.state.tickets.oldest_ready();
}

/// Repeats the configuration of the last one, or takes the next point to try first, one that a user added, the oldest
/// ticket that is ready, or a suggestion of the searcher.
Next new_trial(const Core& core, const schedulers::Create& create, StudyTime now) {
    const TrialId id{static_cast<std::uint32_t>(core.state.trials.size())};
    study::TrialCreated record{id, now, 1, create.bracket, create.target, {}, {}};
    if (const auto first = to_repeat(core)) {
        record.origin = {Origin::Kind::repeat, first->value(), id.value() - first->value()};
        record.configuration = core.state.trials[*first].configuration;
        record.ranks = core.spec.ranks_for(record.configuration);
        return record;
    }
    if (has_starting_point(core)) {
        record.origin = {Origin::Kind::start, configurations(core), 0};
        record.configuration = completed(core, core.spec.searcher.start[configurations(core)]);
        record.ranks = core.spec.ranks_for(record.configuration);
        return record;
    }
    if (!core.state.requests.points().empty()) {
        record.origin = {Origin::Kind::user, core.state.requests.created(), 0};
        record.configuration = completed(core, core.state.requests.points().front());
        record.ranks = core.spec.ranks_for(record.configuration);
        return record;
    }
    const bool prepares = tickets_wanted(core) > 0;
    const bool in_order = core.admission->waits_for_tickets();
    const Ticket* ticket = next_ticket(core);
    if (prepares && takes_no_stopgap(core) && (ticket == nullptr || !ticket->answered)) return {};
    if (ticket != nullptr && ticket->configuration) {
        record.origin = {Origin::Kind::ticket, ticket->number, 0};
        record.configuration = *ticket->configuration;
    } else {
        auto configuration = core.searcher->suggest(core.state.suggested, core.state.observations);
        if (!configuration) return {};
        // A trial that waits for its ticket comes here when that failed. Otherwise a searcher that failed too often
        // prepares nothing more.
        const std::uint32_t failures = in_order ? (prepares ? 1 : 0) : core.state.tickets.failures();
        const bool stopgap = prepares || failures > 0;
        record.origin = {stopgap ? Origin::Kind::stopgap : Origin::Kind::searcher, core.state.suggested, failures};
        record.configuration = std::move(*configuration);
    }
    record.ranks = core.spec.ranks_for(record.configuration);
    return record;
}

/// Promotes a paused trial or makes a new one.
Next next_work(const Core& core, Round& round) {
    const schedulers::Pool known = pool(core);
    const schedulers::Work work = core.scheduler->next(known);
    if (const auto* promotion = std::get_if<schedulers::Promotion>(&work)) {
        if (const auto wanted = core.exploits ? core.scheduler->exploit_at(*promotion) : std::nullopt)
            round.exploit =
                takeover(core, promotion->trial, core.state.trials[promotion->trial].iteration, *wanted, round.now);
        return study::TrialPromoted{promotion->trial, round.now, promotion->from, promotion->target, promotion->reason};
    }
    const auto* create = std::get_if<schedulers::Create>(&work);
    return create != nullptr && known.can_create ? new_trial(core, *create, round.now) : Next{};
}

/// Keeps as many tickets open as the searcher prepares ahead.
Next open_ticket(const Core& core, StudyTime now) {
    const std::size_t wanted = tickets_wanted(core);
    const std::size_t taken =
        std::max(configurations(core), core.spec.searcher.start.size()) + core.state.requests.points().size();
    const std::size_t all = core.spec.num_trials / core.spec.searcher.repeats;
    const std::size_t to_come = all - std::min(all, taken);
    if (core.state.tickets.open().size() >= std::min(wanted, to_come)) return {};
    return study::TicketOpened{core.state.tickets.next(), now, core.state.observations.size()};
}

/// Enough of them are alive.
bool is_possible(const Core& core, const Trial& t) { return t.wanted_ranks <= core.state.placement.alive(t.workers); }

/// So many trials wait that no further one is made, even if ranks are free. Which kind of worker a trial can use is
/// known only when the trial is made. So with two kinds more trials may wait: else one kind could run out of trials.
bool too_many_wait(const Core& core) {
    const auto& waiting = core.state.trials.waiting();
    if (core.spec.resources.gpus != study::GpuUse::some) return waiting.size() >= max_unplaced;
    const auto possible = [&core](TrialId id) { return is_possible(core, core.state.trials[id]); };
    return std::ranges::count_if(waiting, possible) >= static_cast<std::ptrdiff_t>(max_unplaced_of_two_kinds);
}

/// Enough workers that the trial can use are free.
bool fits(const Core& core, const Trial& t) { return t.wanted_ranks <= core.state.placement.free(t.workers); }

bool room_for_one_more(const Core& core) {
    return core.spec.max_concurrent == 0 || core.state.trials.live_attempts() < core.spec.max_concurrent;
}

bool is_training(const Core& core, TrialId id) {
    return core.state.trials[id].attempt.live && !core.admission->is_parked(id);
}

/// The trial wants ranks, and enough ranks are alive.
bool waits_for_ranks(const Core& core, TrialId id) {
    return core.admission->wants_ranks(id) && is_possible(core, core.state.trials[id]);
}

/// Whether a suspect waits or trains. Then nothing else is started, so that a death identifies its cause. Suspects that
/// are paused, cannot have ranks, or wait for their turn do not count.
bool suspects_come_first(const Core& core) {
    return std::ranges::any_of(core.state.blame.suspects(),
                               [&core](TrialId id) { return is_training(core, id) || waits_for_ranks(core, id); });
}

/// Whether an attempt that starts now reaches a checkpoint before the deadline, or its end if it cannot save.
bool in_time(const Core& core, TrialId id, StudyTime now) {
    if (!core.state.pace.deadline()) return true;
    const double known = core.state.trials[id].pace;
    const double iteration = known > 0.0 ? known : core.state.pace.iteration();
    return core.state.pace.is_time_for(core.state.pace.needed(iteration, stretch_of(core, id)), now);
}

/// Whether ranks are free that no waiting trial can use or has reserved.
bool ranks_are_left_over(const Core& core, StudyTime now) {
    if (core.state.placement.free() == 0 || !room_for_one_more(core) || suspects_come_first(core)) return false;
    // Free ranks are not for others while a trial reserves them, or while too many trials wait.
    if (too_many_wait(core) || !core.state.pace.is_time_for_another(now)) return false;
    return std::ranges::any_of(kinds_of_workers(core), [&](WorkerKind kind) {
        const std::uint32_t fewest = kind == WorkerKind::without_gpu ? core.spec.resources.ranks : 1;
        return core.state.placement.free(kind) >= fewest &&
               std::ranges::none_of(core.state.trials.waiting(), [&](TrialId id) {
                   const Trial& t = core.state.trials[id];
                   const bool reserves = t.overtaken >= max_overtaken && is_possible(core, t);
                   return t.workers == kind && (fits(core, t) || reserves) && in_time(core, id, now);
               });
    });
}

/// A trial that exploits gets the ranks that it had, if they are still free: its program may wait there.
std::vector<Rank> ranks_for(const Core& core, const Trial& t, const study::StartFrom& from) {
    const Placement& placement = core.state.placement;
    const bool had_them =
        t.attempt.since > core.state.began && t.attempt.ranks.size() == t.wanted_ranks; // in this incarnation
    const bool again = std::holds_alternative<study::Donor>(from) && had_them && placement.are_free(t.attempt.ranks);
    return again ? std::vector<Rank>(t.attempt.ranks)
                 : placement.plan(t.wanted_ranks, core.spec.max_ranks_per_trial(t.workers), t.workers);
}

/// What the trial takes over because no state of it is left. (One that has yet to save for the first time begins
/// again.)
std::optional<study::Exploited> replaced(const Core& core, TrialId id, StudyTime now) {
    const Trial& t = core.state.trials[id];
    if (!core.exploits || !t.has_saved || !std::holds_alternative<Fresh>(start_of(t).from)) return {};
    const auto wanted = core.scheduler->replacement(id);
    return wanted ? takeover(core, id, t.iteration, *wanted, now) : std::nullopt;
}

/// The trial starts, once it has a state to start from.
Next started(const Core& core, TrialId id, StudyTime now) {
    if (auto takeover = replaced(core, id, now)) return *std::move(takeover);
    constexpr double whole = 1000.0;
    const Trial& t = core.state.trials[id];
    const study::ResourceSpec& wanted = core.spec.resources;
    const bool asked = wanted.gpus == study::GpuUse::one_per_rank || t.workers == study::WorkerKind::with_gpu;
    const auto gpus = asked ? static_cast<std::uint32_t>(std::lround(whole * wanted.gpu_share)) : 0U;
    study::StartFrom from = start_of(t).from;
    std::vector<Rank> ranks = ranks_for(core, t, from);
    return study::TrialStarted{id, t.attempt.id.next(), now, std::move(ranks), std::move(from), gpus, wanted.roles};
}

/// Suspects are tried one at a time, in trial order. Only cleared trials run beside a suspect.
Next place_suspect(const Core& core, StudyTime now) {
    const auto& suspects = core.state.blame.suspects();
    if (std::ranges::any_of(suspects, [&core](TrialId id) { return is_training(core, id); })) return {};
    const auto next = std::ranges::find_if(suspects, [&core](TrialId id) { return waits_for_ranks(core, id); });
    if (next == suspects.end() || !in_time(core, *next, now)) return {};
    if (fits(core, core.state.trials[*next])) return started(core, *next, now);
    const std::uint32_t wanted = core.state.trials[*next].wanted_ranks;
    // A trial that waits for its turn can give up its ranks for the suspect.
    if (const auto other = core.admission->to_yield({}, wanted, core.state.placement.free()))
        return study::YieldAsked{*other, now};
    return {};
}

/// Starts the first trial in line that fits. If the line is kept, the first trial is waited for. Otherwise a later one
/// may overtake a trial that does not fit, at most `max_overtaken` times.
Next place_in_line(const Core& core, StudyTime now) {
    Next record;
    const Placement& placement = core.state.placement;
    std::vector<WorkerKind> reserved; // by trials further ahead in the line
    core.admission->visit_line([&](TrialId id) {
        const Trial& t = core.state.trials[id];
        if (std::ranges::find(reserved, t.workers) != reserved.end()) return true;
        const bool late = !in_time(core, id, now);
        const bool possible = is_possible(core, t);
        if (!late && fits(core, t)) {
            record = started(core, id, now);
            return false;
        }
        if (!core.admission->keeps_the_line()) {
            if (!late && possible && t.overtaken >= max_overtaken) reserved.push_back(t.workers);
            return reserved.size() < kinds_of_workers(core).size();
        }
        if (late) return false; // too late for this job, and later trials could not be admitted
        if (!possible) {        // all later trials would wait for this one forever
            record = study::DrainBegan{now, Reason::no_ranks, study::describe(Reason::no_ranks, 0, 0)};
        } else if (const auto other = core.admission->to_yield(id, t.wanted_ranks, placement.free())) {
            record = study::YieldAsked{*other, now};
        }
        return false;
    });
    return record;
}

Next place(const Core& core, StudyTime now) {
    const std::uint32_t free = core.state.placement.free();
    const bool full = !core.admission->keeps_the_line() && !room_for_one_more(core);
    if (core.admission->keeps_the_line() || (free > 0 && !full))
        if (Next record = suspects_come_first(core) ? place_suspect(core, now) : place_in_line(core, now))
            return record;
    if (const auto idle = core.admission->surplus(free, full)) return study::YieldAsked{*idle, now};
    return {};
}

} // namespace

Next decide(const Core& core, Fill&, Round& round) {
    if (core.state.ended) return {};
    if (!core.state.side.is_prepared()) return next_side(core, round.now);
    if (!core.state.draining) {
        const auto room = core.admission->room();
        const bool has_room =
            room == Admission::Room::one || (room == Admission::Room::by_ranks && ranks_are_left_over(core, round.now));
        if (has_room)
            if (auto work = next_work(core, round)) return work;
        if (auto ticket = open_ticket(core, round.now)) return ticket;
    }
    // Nothing takes effect before a slot that waits for its suggestion has a trial: that would change the order.
    if (!waits_for_ticket(core))
        if (auto fact = core.admission->next()) return judged(core, *fact, round);
    if (!core.state.draining)
        if (Next trial = place(core, round.now)) return trial;
    if (suspects_come_first(core)) return {}; // they are tried alone
    return next_side(core, round.now);
}

study::SuggestionBasis basis_of(const Core& core, const Origin& origin) {
    return core.searcher->basis(origin.index, core.state.observations);
}

bool new_trial_waits(const Core& core) {
    if (!takes_no_stopgap(core) || core.state.draining || !core.state.side.is_prepared() || to_repeat(core) ||
        has_starting_point(core) || !core.state.requests.points().empty() || tickets_wanted(core) == 0)
        return false;
    if (core.admission->room() == Admission::Room::none || !can_create(core)) return false;
    const Ticket* ticket = next_ticket(core);
    const bool ready = ticket != nullptr && ticket->answered;
    return !ready && std::holds_alternative<schedulers::Create>(core.scheduler->next(pool(core)));
}

bool waits_for_ticket(const Core& core) { return core.admission->waits_for_tickets() && new_trial_waits(core); }

std::span<const WorkerKind> kinds_of_workers(const Core& core) {
    static constexpr WorkerKind all[] = {WorkerKind::any, WorkerKind::with_gpu, WorkerKind::without_gpu};
    const std::span<const WorkerKind> kinds(all);
    return core.spec.resources.gpus == study::GpuUse::some ? kinds.subspan(1) : kinds.first(1);
}

/// The iteration up to which a trial is trained: its next rung if trials pause at rungs, otherwise the end. Null: a new
/// trial.
Iteration trained_up_to(const Core& core, const Trial* t) {
    const auto rungs =
        core.scheduler->pauses() ? core.scheduler->rungs() : std::vector<schedulers::Scheduler::RungView>{};
    if (rungs.empty()) return core.spec.max_iterations;
    if (t == nullptr) return rungs.front().iteration;
    return t->target > 0 ? std::min(t->target, core.spec.max_iterations)
                         : rungs[std::min<std::size_t>(t->bracket, rungs.size() - 1)].iteration;
}

/// Iterations that an attempt trains before its work is saved.
Iteration stretch_of(const Core& core, TrialId id) {
    const Trial& t = core.state.trials[id];
    return core.state.pace.stretch_of(t, trained_up_to(core, &t), core.spec.max_iterations,
                                      core.spec.checkpoint.supported);
}

/// Nothing runs although there is work: only the deadline prevents it.
bool waits_for_time(const Core& core, StudyTime now) {
    if (!core.state.pace.deadline()) return false;
    if (std::ranges::any_of(core.state.trials.waiting(), [&](TrialId id) { return !in_time(core, id, now); }))
        return true;
    if (core.state.pace.is_time_for_another(now)) return false;
    const schedulers::Work work =
        core.scheduler->next({.can_create = can_create(core), .active = false, .trial = pool(core).trial});
    return std::holds_alternative<schedulers::Create>(work) || std::holds_alternative<schedulers::Promotion>(work);
}

double slowest_running(const Core& core) {
    double slowest = 0.0;
    for (const auto& worker : core.state.placement.workers())
        if (worker.alive && worker.trial) slowest = std::max(slowest, core.state.trials[*worker.trial].pace);
    return slowest;
}

std::optional<StudyTime> timer(const Core& core) {
    if (core.state.ended || (core.state.draining && !goes_on_beside(core.state))) return {};
    std::optional<StudyTime> at = core.state.pace.time_to_tell(core.slowest);
    if (core.spec.time_budget && !core.state.draining)
        at = std::min(at.value_or(StudyTime::max()), StudyTime{*core.spec.time_budget});
    if (const auto until = held_until(core.state); until && core.state.now < *until)
        at = std::min(at.value_or(StudyTime::max()), *until);
    return at;
}

} // namespace ranktune::tuner
