// SPDX-License-Identifier: Apache-2.0
#include "testing/scheduler_world.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "testing/rules.hpp"

namespace ranktune::testing {

using base::Iteration;
using study::AttemptOutcome;
using study::TrialPhase;

namespace {

double any_value(TrialId, Iteration, base::RngStream& random) {
    switch (random.below(24)) {
        case 0:
            return std::numeric_limits<double>::quiet_NaN();
        case 1:
            return std::numeric_limits<double>::infinity();
        case 2:
            return -std::numeric_limits<double>::infinity();
        case 3:
            return 0.5; // ties
        default:
            return random.uniform();
    }
}

bool fits(const Verdict& verdict) {
    switch (verdict.reason) {
        case Reason::none:
            return verdict.verb == Verb::go_on || verdict.verb == Verb::exploit;
        case Reason::below_rung:
        case Reason::in_top:
        case Reason::first_arrival:
        case Reason::finish_top:
        case Reason::published:
        case Reason::kept:
        case Reason::unpublished:
            return verdict.verb == Verb::go_on;
        case Reason::turn:
        case Reason::scheduled:
        case Reason::rung:
            return verdict.verb == Verb::pause;
        case Reason::not_in_top:
        case Reason::max_iterations:
            return verdict.verb == Verb::stop;
        case Reason::below_median:
        case Reason::scheduler_limit:
            return verdict.verb != Verb::go_on;
        default:
            return false;
    }
}

TrialPhase end_of(const Verdict& verdict) {
    return verdict.reason == Reason::max_iterations ? TrialPhase::finished : TrialPhase::stopped;
}

study::StudySpec spec_of(study::StudySpec spec, const WorldOptions& options) {
    spec.num_trials = options.trials;
    spec.deterministic = options.by_turn;
    return spec;
}

study::Bytes bytes_of(const schedulers::Scheduler& scheduler) {
    study::Bytes bytes;
    study::Encoder out(bytes);
    scheduler.snapshot(out);
    return bytes;
}

} // namespace

World::World(const study::StudySpec& spec, WorldOptions options)
    : options_(std::move(options)),
      random_(options_.seed, base::Purpose::fault),
      driver_(spec_of(spec, options_), options_.checked) {
    if (!options_.value) options_.value = any_value;
    records_.emplace_back(study::MetricDefined{study::MetricId(0), "noise"});
    records_.emplace_back(study::MetricDefined{study::MetricId(1), spec.objective.metric});
    if (options_.checked) twin_ = driver_.restored(driver_.snapshot());
}

void World::apply(const study::Record& record) {
    driver_.apply(record);
    records_.push_back(record);
    if (!twin_) return;
    twin_->apply(record);
    if (!chance(0.05)) return;
    // A restored scheduler must be as good as the original.
    const auto bytes = driver_.snapshot();
    require(bytes_of(*twin_) == bytes, "equal histories give equal snapshots");
    twin_ = driver_.restored(bytes);
    require(bytes_of(*twin_) == bytes, "a restored scheduler gives the snapshot that it was restored from");
}

/// What happens to ranks, hosts and the job reaches schedulers, too.
void World::tell_of_others() {
    const std::array<study::Record, 6> others{study::RankLost{base::Rank(1), {}, "its host died"},
                                              study::DrainBegan{{}, Reason::draining, "SIGTERM"},
                                              study::DeadlineSet{},
                                              study::JobDied{},
                                              study::HostRetired{"node1", {}, {TrialId(0)}},
                                              study::Steered{{}, "ada@login1", "pause", {}, {}}};
    const auto before = driver_.snapshot();
    apply(others[random_.below(others.size())]);
    require(driver_.snapshot() == before, "a record that is not about trials changes nothing");
}

Verdict World::ask(const schedulers::Report& report, bool contended) {
    const schedulers::Scheduler& scheduler = driver_.scheduler();
    Verdict verdict = scheduler.decide(report, contended);
    require(fits(verdict), "the reason " + std::to_string(static_cast<int>(verdict.reason)) + " fits the verb");
    require(verdict.verb != Verb::pause || scheduler.pauses(), "only a scheduler whose pauses() is true pauses trials");
    if (twin_) {
        const bool look = chance(0.05);
        const auto before = look ? driver_.snapshot() : study::Bytes{};
        require(scheduler.decide(report, contended) == verdict, "the same question gets the same answer");
        require(!look || driver_.snapshot() == before, "decide changes nothing");
        require(twin_->decide(report, contended) == verdict, "a restored scheduler decides the same");
    }
    takeover_.reset();
    if (verdict.verb == Verb::exploit) take_over(report, verdict);
    return verdict;
}

/// A trial without a donor goes on unchanged, and gets the reason.
void World::take_over(const schedulers::Report& report, Verdict& verdict) {
    const schedulers::Scheduler& scheduler = driver_.scheduler();
    require(scheduler.exploits(), "only a scheduler whose exploits() is true exploits trials");
    const schedulers::Exploit exploit = scheduler.exploit(report);
    require(scheduler.exploit(report) == exploit, "the same question gets the same answer");
    require(!twin_ || twin_->exploit(report) == exploit, "a restored scheduler exploits the same");
    require(exploit.donor != report.trial && exploit.donor.value() < trials_.size(),
            "a donor is another trial of the study");
    require(lies_in(driver_.spec().space, exploit.configuration), "the configuration of an exploit lies in the space");
    takeover_ = takeover_of(report.trial, report.iteration, exploit);
    verdict = {takeover_ ? Verb::exploit : Verb::go_on, takeover_ ? Reason::exploited : Reason::no_donor,
               static_cast<double>(exploit.donor.value()), static_cast<double>(exploit.iteration)};
}

/// nullopt: the donor has no checkpoint of that iteration.
std::optional<study::Exploited> World::takeover_of(TrialId trial, Iteration iteration,
                                                   const schedulers::Exploit& exploit) const {
    const auto& all = trials_[exploit.donor.value()].checkpoints;
    const auto found =
        std::find_if(all.rbegin(), all.rend(), [&](const auto& each) { return each.iteration == exploit.iteration; });
    if (found == all.rend()) return {};
    return study::Exploited{
        trial, {}, iteration, {exploit.donor, *found}, trials_[trial.value()].generation + 1, exploit.configuration};
}

schedulers::Work World::ask_next(const schedulers::Pool& pool) {
    const schedulers::Work work = driver_.work(pool);
    require(pool.can_create || !std::holds_alternative<schedulers::Create>(work),
            "no trial is created beyond their number");
    if (const auto* promotion = std::get_if<schedulers::Promotion>(&work)) {
        require(driver_.scheduler().pauses(), "only a scheduler whose pauses() is true promotes trials");
        require(trials_.at(promotion->trial.value()).phase == Phase::paused, "only paused trials are offered");
        require(promotion->from < promotion->target && promotion->target <= driver_.spec().max_iterations,
                "a promotion leads upwards, to the ceiling at most");
        require(promotion->reason == Reason::finish_top || !driver_.scheduler().out_of_reach(promotion->trial),
                "a trial that is out of reach is not promoted");
    }
    if (twin_) {
        require(driver_.work(pool) == work, "the same question gets the same answer");
        require(twin_->next(pool) == work, "a restored scheduler gives the same work");
    }
    return work;
}

std::vector<TrialId> World::in(std::initializer_list<Phase> phases) const {
    std::vector<TrialId> found;
    for (std::uint32_t i = 0; i < trials_.size(); ++i) {
        if (std::find(phases.begin(), phases.end(), trials_[i].phase) != phases.end()) found.emplace_back(i);
    }
    return found;
}

std::vector<TrialId> World::busy() const {
    std::vector<TrialId> found;
    for (std::uint32_t i = 0; i < trials_.size(); ++i)
        if (trials_[i].holds_ranks) found.emplace_back(i);
    return found;
}

void World::run() {
    // Far more steps than any study of this size needs.
    const std::uint64_t limit = 100ULL * (options_.trials + 1) * (driver_.spec().max_iterations + 1);
    for (std::uint64_t step = 0; step < limit; ++step) {
        while ((busy().size() < options_.slots && fill()) || judge_held()) {
        }
        const auto training = busy();
        if (training.empty()) {
            require(in({Phase::waiting}).empty() && trials_.size() == options_.trials,
                    "every trial is made and started");
            require(in({Phase::held}).empty(), "every report at a barrier is judged");
            for (const TrialId trial : in({Phase::paused})) close(trial, TrialPhase::stopped, Reason::not_promoted);
            require(!std::holds_alternative<schedulers::Promotion>(ask_next({.can_create = false, .active = false})),
                    "nothing goes on after the end");
            if (!std::exchange(another_life_, false) || !reopen()) return;
            apply(study::IncarnationBegan{base::Incarnation(2), {}, "", {}});
            continue;
        }
        if (options_.checked && chance(options_.other)) tell_of_others();
        if (chance(options_.restart)) {
            restart();
        } else {
            advance(training[random_.below(training.size())]);
        }
    }
    throw std::logic_error("the study does not end");
}

schedulers::Pool World::pool() const {
    const bool active = !in({Phase::waiting, Phase::running}).empty();
    return {trials_.size() < options_.trials, active, TrialId(static_cast<std::uint32_t>(trials_.size()))};
}

/// Fills one free slot with a waiting trial, a promotion, or a new trial.
bool World::fill() {
    for (const TrialId trial : in({Phase::waiting})) {
        if (trials_[trial.value()].holds_ranks) continue; // its attempt winds down
        start(trial);
        return true;
    }
    const TrialId next{static_cast<std::uint32_t>(trials_.size())};
    const schedulers::Work work = ask_next(pool());
    if (const auto* promotion = std::get_if<schedulers::Promotion>(&work)) {
        promote(*promotion);
        return true;
    }
    const auto* create = std::get_if<schedulers::Create>(&work);
    if (create == nullptr) return false;
    require(create->target <= driver_.spec().max_iterations, "a trial is trained to the ceiling at most");
    trials_.emplace_back().configuration = driver_.spec().space.sample(driver_.spec().seed, next);
    apply(study::TrialCreated{next, {}, 1, create->bracket, create->target, {}, trials_.back().configuration});
    require(driver_.scheduler().next_decision_point(next, 0) > 0, "the next decision point lies ahead");
    return true;
}

/// A paused trial may go on from another state than the one it paused with.
void World::promote(const schedulers::Promotion& promotion) {
    Trial& t = trials_[promotion.trial.value()];
    const schedulers::Scheduler& scheduler = driver_.scheduler();
    const auto exploit = scheduler.exploits() ? scheduler.exploit_at(promotion) : std::nullopt;
    require(!exploit || !twin_ || twin_->exploit_at(promotion) == exploit, "a restored scheduler exploits the same");
    takeover_.reset();
    if (exploit) {
        require(exploit->donor.value() < trials_.size(), "a donor is a trial of the study");
        require(lies_in(driver_.spec().space, exploit->configuration),
                "the configuration of an exploit lies in the space");
        takeover_ = takeover_of(promotion.trial, t.iteration, *exploit);
    }
    t.phase = Phase::waiting;
    apply(study::TrialPromoted{promotion.trial, {}, promotion.from, promotion.target, promotion.reason});
    if (takeover_) take(promotion.trial);
}

void World::start(TrialId trial) {
    Trial& t = trials_[trial.value()];
    if (!t.takeovers.empty() && chance(options_.undone)) {
        t.start = t.takeovers.back().start;
        t.configuration = std::move(t.takeovers.back().configuration);
        t.takeovers.pop_back();
        apply(study::ExploitUndone{trial, {}, --t.generation});
    }
    t.phase = Phase::running;
    t.holds_ranks = true;
    t.trained = t.generation;
    t.iteration = t.start;
    apply(study::TrialStarted{trial, base::AttemptId(1), {}, {base::Rank(1)}, {}});
}

/// Failed trials whose user has them tried again wait once more. Returns whether there are any.
bool World::reopen() {
    bool any = false;
    for (std::uint32_t i = 0; i < trials_.size(); ++i) {
        Trial& t = trials_[i];
        if (!t.failed || !chance(options_.reopening)) continue;
        const bool from_scratch = t.generation == 0 && chance(0.5);
        t.failed = false;
        t.phase = Phase::waiting;
        t.verdict = {};
        apply(study::TrialReopened{TrialId(i), {}, from_scratch});
        if (from_scratch) {
            release_all(TrialId(i));
            t.start = 0;
        }
        any = true;
    }
    return any;
}

void World::restart() {
    reopen();
    apply(study::IncarnationBegan{base::Incarnation(2), {}, "", {}});
    for (std::uint32_t i = 0; i < trials_.size(); ++i) {
        Trial& t = trials_[i];
        t.holds_ranks = false;
        if (t.phase == Phase::running) t.phase = Phase::waiting;
    }
}

void World::advance(TrialId trial) {
    Trial& t = trials_[trial.value()];
    if (t.phase == Phase::held && !chance(options_.failure) && !chance(options_.loss)) {
        if (chance(0.5)) return;
        save(trial); // it gives its ranks to others
        attempt_over(trial, AttemptOutcome::paused);
    } else if (t.phase != Phase::running && t.phase != Phase::held) {
        wind_down(trial);
    } else if (chance(options_.failure)) {
        attempt_over(trial, AttemptOutcome::failed);
    } else if (chance(options_.loss)) {
        attempt_over(trial, AttemptOutcome::lost);
    } else if (t.phase == Phase::running && !chance(options_.drain)) {
        report(trial);
    } else { // for a reason of the tuner's own
        save(trial);
        attempt_over(trial, AttemptOutcome::paused);
    }
}

/// Its verdict has taken effect before: when the group saves and ends depends on the machine.
void World::wind_down(TrialId trial) {
    const schedulers::Work before = driver_.work(pool());
    if (trials_[trial.value()].verdict.verb == Verb::pause && !chance(options_.loss)) save(trial);
    attempt_over(trial, AttemptOutcome::paused);
    require(!options_.by_turn || driver_.work(pool()) == before,
            "in a deterministic study it does not matter when the attempt of a paused trial ends");
}

void World::report(TrialId trial) {
    Trial& t = trials_[trial.value()];
    const Iteration iteration = ++t.iteration;
    ++iterations_;
    const double value = options_.value(trial, iteration, random_);
    const auto ceiling = driver_.spec().max_iterations;
    const schedulers::Scheduler& scheduler = driver_.scheduler();
    if (scheduler.synchronous() && iteration > released_ && scheduler.is_barrier(trial, iteration))
        return hold(trial, value);
    const schedulers::Report report{trial, iteration, study::score(value, driver_.spec().objective.mode),
                                    std::isnan(value)};
    Verdict verdict = ask(report, !options_.by_turn && chance(0.3));
    require(iteration < ceiling || verdict.verb != Verb::pause, "no trial pauses at the ceiling");
    if (iteration >= ceiling) {
        verdict = {Verb::stop, Reason::max_iterations, static_cast<double>(ceiling)};
        ++reached_ceiling_;
    } else if (chance(options_.stopper)) {
        verdict = {Verb::stop, Reason::metric_threshold, value, 0.5};
    }
    study::Reported record = record_of(trial, value);
    record.verdict = verdict;
    apply(record);
    require(driver_.scheduler().next_decision_point(trial, iteration) > iteration,
            "the next decision point lies ahead");
    t.verdict = verdict;
    if (verdict.verb == Verb::pause) t.phase = Phase::paused;
    if (verdict.verb == Verb::stop) close(trial, end_of(verdict), verdict.reason);
    if (verdict.verb == Verb::exploit) take(trial);
    if (verdict.verb == Verb::go_on && chance(options_.save)) save(trial);
}

study::Reported World::record_of(TrialId trial, double value) {
    study::Reported record{trial, base::AttemptId(1), {}, trials_[trial.value()].iteration, 0.0, {}, {}};
    record.metrics.push_back({study::MetricId(0), 0.5});
    if (!(std::isnan(value) && chance(0.5)))
        record.metrics.push_back({study::MetricId(1), value}); // or not reported at all
    return record;
}

// ---- barriers

void World::hold(TrialId trial, double value) {
    Trial& t = trials_[trial.value()];
    const study::Reported record = record_of(trial, value);
    t.report = {trial, base::AttemptId(1), {}, record.iteration, 0.0, record.metrics};
    t.value = value;
    t.phase = Phase::held;
    apply(t.report);
}

/// When all trials have got to the barrier, judges one of the reports that are held there.
bool World::judge_held() {
    const schedulers::Scheduler& scheduler = driver_.scheduler();
    const auto all = in({Phase::held});
    if (all.empty()) return false;
    Iteration barrier = trials_[all.front().value()].report.iteration;
    for (const TrialId trial : all) barrier = std::min(barrier, trials_[trial.value()].report.iteration);
    const auto coming = in({Phase::waiting, Phase::running});
    if (barrier > released_ && (!coming.empty() || trials_.size() < options_.trials)) return false;
    const auto next = scheduler.next_verdict(barrier);
    require(!twin_ || twin_->next_verdict(barrier) == next, "a restored scheduler gives the same next verdict");
    if (!next) {
        require(!busy().empty(), "verdicts at a barrier wait for trials that train");
        return false;
    }
    Trial& t = trials_.at(next->value());
    require(t.phase == Phase::held && t.report.iteration == barrier, "a verdict is on a report at this barrier");
    released_ = std::max(released_, barrier);
    const schedulers::Report report{*next, barrier, study::score(t.value, driver_.spec().objective.mode),
                                    std::isnan(t.value)};
    Verdict verdict = ask(report, false);
    require(verdict.verb == Verb::go_on || verdict.verb == Verb::exploit, "a trial at a barrier goes on, or exploits");
    if (chance(options_.stopper)) verdict = {Verb::stop, Reason::metric_threshold, t.value, 0.5};
    apply(study::Reported{*next, base::AttemptId(1), {}, barrier, 0.0, t.report.metrics, verdict});
    t.verdict = verdict;
    t.phase = t.holds_ranks ? Phase::running : Phase::waiting;
    if (verdict.verb == Verb::exploit) {
        take(*next);
    } else if (verdict.verb == Verb::stop) {
        close(*next, end_of(verdict), verdict.reason);
    } else if (t.holds_ranks && chance(options_.save)) {
        save(*next);
    }
    return true;
}

/// The group stops without saving; the next one starts from the donor's checkpoint and keeps counting iterations.
void World::take(TrialId trial) {
    Trial& t = trials_[trial.value()];
    if (t.phase == Phase::running) t.phase = Phase::waiting;
    ++exploits_;
    t.takeovers.push_back({t.start, t.configuration});
    t.start = t.iteration;
    t.configuration = takeover_->configuration;
    t.generation = takeover_->generation;
    apply(*takeover_);
}

/// A trial keeps its two newest checkpoints.
void World::save(TrialId trial) {
    Trial& t = trials_[trial.value()];
    study::CheckpointRef checkpoint{.iteration = t.iteration, .path = std::to_string(saves_++), .bytes = 1};
    checkpoint.generation = t.trained;
    t.checkpoints.push_back(checkpoint);
    if (t.trained == t.generation) { // it has not taken over another state meanwhile
        t.start = t.iteration;
        t.takeovers.clear();
    }
    apply(study::CheckpointCommitted{trial, base::AttemptId(1), {}, checkpoint});
    if (t.checkpoints.size() <= 2) return;
    apply(study::CheckpointReleased{trial, t.checkpoints.front().path});
    t.checkpoints.erase(t.checkpoints.begin());
}

void World::attempt_over(TrialId trial, AttemptOutcome outcome) {
    Trial& t = trials_[trial.value()];
    t.holds_ranks = false;
    apply(study::AttemptEnded{trial, base::AttemptId(1), {}, outcome, outcome == AttemptOutcome::lost, {}});
    if (outcome == AttemptOutcome::failed) return close(trial, TrialPhase::failed, Reason::exception);
    if (t.phase == Phase::running) t.phase = Phase::waiting;
}

void World::close(TrialId trial, TrialPhase phase, Reason reason) {
    Trial& t = trials_[trial.value()];
    t.phase = Phase::closed;
    t.failed = phase == TrialPhase::failed;
    apply(study::TrialClosed{trial, {}, phase, reason, 0.0, 0.0, {}});
    if (!t.failed) release_all(trial);
}

void World::release_all(TrialId trial) {
    Trial& t = trials_[trial.value()];
    for (const study::CheckpointRef& checkpoint : t.checkpoints)
        apply(study::CheckpointReleased{trial, checkpoint.path});
    t.checkpoints.clear();
}

} // namespace ranktune::testing
