// SPDX-License-Identifier: Apache-2.0
#include "simulate/cluster/curve_world.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "ranktune/base/rng.hpp"
#include "worker/trial/own_end.hpp"

namespace ranktune::simulate {

using base::Duration;
using base::StudyTime;
using study::AttemptOutcome;
using study::Verb;

namespace {

/// Base index of each kind of draw; iterations, attempts and ranks are added to it.
enum Draw : std::uint32_t {
    draw_shape = 0,
    draw_throw = 1,
    draw_nan = 2,
    draw_done = 3,
    draw_speed = 4,
    draw_noise = 1U << 16,
    draw_duration = 2U << 16,
    draw_formation = 3U << 16,
    draw_save = 4U << 16,
    draw_return = 5U << 16,
    draw_stuck = 6U << 16,
    draw_notice = 7U << 16,
    draw_load = 8U << 16,
    draw_preparation = 9U << 16,
    draw_resize = 10U << 16,
};

constexpr std::uint32_t low16(std::uint64_t value) { return static_cast<std::uint32_t>(value & 0xFFFFU); }
/// One index per (attempt, rank), for draws.
constexpr std::uint32_t place(base::AttemptId attempt, base::Rank rank) {
    return low16(attempt.value() * 131 + rank.value());
}

} // namespace

/// The members of an attempt in lockstep: stands for the communicator and the trial threads of a real run.
struct CurveWorld::Group {
    enum class Phase : std::uint8_t { forming, training, waiting, saving, over };
    study::StartTrial start;
    std::vector<CurveRunner*> members; ///< in the order of the roster; null: not started yet, or gone
    std::size_t joined = 0;
    bool broken = false; ///< a member is dead or gave up: the others' next collective operation never ends
    Phase phase = Phase::forming;
    base::Iteration iteration = 0;
    base::Iteration decision_point = 0;
    double seconds = 0.0;
    std::optional<study::Verdict> interrupt;
    study::Verdict last; ///< the verdict it obeys while saving
    AttemptOutcome outcome = AttemptOutcome::finished;
    std::optional<StudyTime> due;
    std::optional<worker::OwnEnd> own_end; ///< from the first start on
};

class CurveRunner final : public worker::Runner {
  public:
    CurveRunner(CurveWorld& world, base::Rank rank) : world_(world), rank_(rank) {}
    ~CurveRunner() override { world_.kill(rank_); }

    void start(const worker::Assignment& assignment) override { world_.join(*this, assignment); }
    void decide(const study::Decide& decide) override {
        if (!group || group->phase != CurveWorld::Group::Phase::waiting || decide.iteration != group->iteration) return;
        if (decide.verdict.verb == Verb::go_on) {
            group->decision_point = decide.decision_point;
            if (decide.verdict.reason == study::Reason::published) world_.publish(*group);
            if (group->interrupt) return world_.obey(*group, *group->interrupt);
            return world_.train_on(*group);
        }
        world_.obey(*group, decide.verdict);
    }
    void interrupt(const study::Verdict& verdict) override {
        if (!group) return;
        group->interrupt = verdict;
        if (group->phase == CurveWorld::Group::Phase::waiting) world_.obey(*group, verdict);
    }
    void abandon() override { world_.give_up(*this); }
    std::optional<worker::RunnerEvent> poll() override {
        if (queue.empty() || queue.front().first > world_.now_) return std::nullopt;
        worker::RunnerEvent event = std::move(queue.front().second);
        queue.erase(queue.begin());
        if (std::holds_alternative<worker::RunnerEnded>(event)) world_.leave(*this);
        return event;
    }
    std::uint64_t progress() const override { return progress_count; }

    base::Rank rank() const { return rank_; }
    bool ends() const { return !queue.empty() && std::holds_alternative<worker::RunnerEnded>(queue.back().second); }

    std::shared_ptr<CurveWorld::Group> group;
    std::vector<std::pair<StudyTime, worker::RunnerEvent>> queue; ///< ordered by time
    bool stuck = false;
    std::uint64_t progress_count = 0;

  private:
    CurveWorld& world_;
    base::Rank rank_;
};

CurveWorld::CurveWorld(const study::StudySpec& spec, CurveOptions options, std::uint64_t seed)
    : spec_(spec), options_(options), seed_(seed) {}
CurveWorld::~CurveWorld() = default;

std::unique_ptr<worker::Runner> CurveWorld::make_runner(base::Rank rank) {
    auto runner = std::make_unique<CurveRunner>(*this, rank);
    runners_[rank] = runner.get();
    return runner;
}

double CurveWorld::draw(std::uint32_t trial, std::uint32_t what) const {
    return base::RngStream(seed_, base::Purpose::curve, trial, what).uniform();
}

double CurveWorld::draw_fate(std::uint32_t trial, std::uint32_t what) const {
    return base::RngStream(options_.fate.value_or(seed_), base::Purpose::curve, trial, what).uniform();
}

Duration CurveWorld::iteration_time(std::uint32_t trial, base::Iteration iteration) const {
    const Duration time = draw(trial, draw_duration + low16(iteration), options_.min_iteration, options_.max_iteration);
    if (options_.spread == 0.0) return time;
    const double factor = std::exp(options_.spread * (2.0 * draw_fate(trial, draw_speed) - 1.0));
    return Duration(static_cast<Duration::rep>(static_cast<double>(time.count()) * factor));
}

Duration CurveWorld::draw(std::uint32_t trial, std::uint32_t what, Duration low, Duration high) const {
    return low + Duration(static_cast<Duration::rep>(draw(trial, what) * static_cast<double>((high - low).count())));
}

Duration CurveWorld::preparation_time(std::uint64_t ticket) const {
    return draw(low16(ticket), draw_preparation, options_.min_iteration, 2 * options_.max_iteration);
}

double CurveWorld::score(base::TrialId trial, base::Iteration iteration) const {
    const std::uint32_t id = trial.value();
    if (draw_fate(id, draw_nan) < options_.nan_rate && iteration > 1) return std::numeric_limits<double>::quiet_NaN();
    const double limit = draw_fate(id, draw_shape);
    const double noise = 0.05 * (draw_fate(id, draw_noise + low16(iteration)) - 0.5);
    return limit - 0.5 / std::sqrt(static_cast<double>(iteration)) + noise;
}

// --- groups ---

void CurveWorld::join(CurveRunner& runner, const worker::Assignment& assignment) {
    const study::StartTrial& start = assignment.start;
    if (runner.group) problems_.push_back("an attempt was started on a rank whose user code still runs");
    auto& group = groups_[{start.trial, start.attempt}];
    if (!group) {
        group = std::make_shared<Group>();
        group->start = start;
        group->own_end.emplace(spec_, start);
        group->members.resize(start.ranks.size());
        group->decision_point = start.decision_point;
        group->seconds = start.seconds;
        group->iteration = start.iteration;
        const auto* from = study::checkpoint_of(start.from);
        if (from != nullptr && !files.contains(from->path))
            problems_.push_back("a start from the missing checkpoint " + from->path);
        ++attempts_;
    }
    study::StartTrial told = start;
    told.to_beat = group->start.to_beat; // the leader alone asks it, and a start may be told again later
    if (group->start != told) problems_.push_back("two members were told different things about one attempt");
    group->members[static_cast<std::size_t>(assignment.group_rank)] = &runner;
    runner.group = group;
    runner.stuck = false;
    if (++group->joined < group->members.size() || group->broken) return;
    group->due = now_ + draw(start.trial.value(), draw_formation + low16(start.attempt.value()), Duration{0},
                             options_.max_formation);
    touched_.push_back(start.ranks.front());
}

void CurveWorld::leave(CurveRunner& runner) {
    if (!runner.group) return;
    const auto group = std::exchange(runner.group, nullptr);
    std::replace(group->members.begin(), group->members.end(), &runner, static_cast<CurveRunner*>(nullptr));
    if (std::all_of(group->members.begin(), group->members.end(), [](const auto* m) { return m == nullptr; }))
        groups_.erase({group->start.trial, group->start.attempt});
}

void CurveWorld::kill(base::Rank rank) {
    const auto at = runners_.find(rank);
    if (at == runners_.end()) return;
    CurveRunner& runner = *at->second;
    runners_.erase(at);
    runner.queue.clear();
    if (!runner.group) return;
    const auto group = runner.group;
    leave(runner);
    break_group(*group);
    for (CurveRunner* member : group->members) {
        if (member == nullptr || member->ends()) continue;
        const std::uint32_t where = place(group->start.attempt, member->rank());
        if (draw(group->start.trial.value(), draw_notice + where) < options_.notice_rate)
            schedule(*member, draw(group->start.trial.value(), draw_return + where, Duration{0}, options_.max_return),
                     worker::RunnerEnded{AttemptOutcome::lost, {"a partner is gone"}});
    }
}

void CurveWorld::break_group(Group& group) {
    group.broken = true;
    group.due.reset();
}

void CurveWorld::give_up(CurveRunner& runner) {
    if (!runner.group || runner.ends() || runner.stuck) return;
    break_group(*runner.group);
    const std::uint32_t trial = runner.group->start.trial.value();
    const std::uint32_t where = place(runner.group->start.attempt, runner.rank());
    runner.stuck = draw(trial, draw_stuck + where) < options_.stuck_rate;
    if (runner.stuck) return;
    schedule(runner, draw(trial, draw_return + where, Duration{0}, options_.max_return),
             worker::RunnerEnded{AttemptOutcome::lost, {}});
}

void CurveWorld::schedule(CurveRunner& runner, Duration after, worker::RunnerEvent event) {
    const StudyTime at = runner.queue.empty() ? now_ + after : std::max(now_ + after, runner.queue.back().first);
    runner.queue.emplace_back(at, std::move(event));
    touched_.push_back(runner.rank());
}

// --- training ---

void CurveWorld::run_due(base::Rank rank) {
    const auto at = runners_.find(rank);
    if (at == runners_.end()) return;
    // Keeps the group alive, because it may end in a step.
    const std::shared_ptr<Group> group = at->second->group;
    while (group && group->start.ranks.front() == rank && group->due && *group->due <= now_) step(*group);
}

void CurveWorld::step(Group& group) {
    group.due.reset();
    switch (group.phase) {
        case Group::Phase::forming:
            if (const auto trouble = load(group)) return end_all(group, *trouble);
            for (CurveRunner* member : group.members) ++member->progress_count;
            train_on(group);
            break;
        case Group::Phase::training:
            iterate(group);
            break;
        case Group::Phase::saving:
            save(group);
            break;
        case Group::Phase::waiting:
        case Group::Phase::over:
            break;
    }
}

/// How an attempt ends that cannot load its checkpoint; nothing: it can.
std::optional<AttemptOutcome> CurveWorld::load(const Group& group) const {
    if (study::checkpoint_of(group.start.from) == nullptr) return std::nullopt;
    const double luck = draw(group.start.trial.value(), draw_load + low16(group.start.attempt.value()));
    if (luck < options_.unreadable_rate) return AttemptOutcome::unreadable;
    if (luck < options_.unreadable_rate + options_.unreachable_rate) return AttemptOutcome::unreachable;
    return std::nullopt;
}

void CurveWorld::train_on(Group& group) {
    if (group.broken) return;
    const std::uint32_t trial = group.start.trial.value();
    // A trial that ends on its own does so after the answer to its report.
    const auto last = 1 + static_cast<base::Iteration>(draw_fate(trial, draw_done) * 1e6) % spec_.max_iterations;
    if (draw_fate(trial, draw_done) < options_.done_rate && group.iteration >= last)
        return obey(group, {Verb::go_on, study::Reason::trainable_done, 0.0, 0.0});
    group.phase = Group::Phase::training;
    group.due = now_ + iteration_time(trial, group.iteration);
    touched_.push_back(group.start.ranks.front());
}

void CurveWorld::iterate(Group& group) {
    const base::TrialId trial = group.start.trial;
    group.seconds += base::to_seconds(iteration_time(trial.value(), group.iteration));
    ++group.iteration;
    for (CurveRunner* member : group.members) ++member->progress_count;
    const double fate = draw_fate(trial.value(), draw_throw);
    const auto fatal = 1 + static_cast<base::Iteration>(fate * 1e6) % spec_.max_iterations;
    const bool is_side_task = study::side_task_of(trial).has_value(); // one iteration
    if (fate < options_.throw_rate && (is_side_task || group.iteration == fatal))
        return end_all(group, AttemptOutcome::failed);
    CurveRunner& leader = *group.members.front();
    if (is_side_task && group.interrupt) return end_all(group, AttemptOutcome::lost);
    if (is_side_task) {
        schedule(leader, Duration{0}, worker::RunnerReported{1, group.seconds, {{"test", score(trial, 1)}}});
        return end_all(group, AttemptOutcome::finished);
    }
    const double value = score(trial, group.iteration);
    group.own_end->reported(value); // also where it violates a constraint: then it asks more often
    const auto known = group.own_end->verdict_at(group.iteration);
    schedule(leader, Duration{0},
             worker::RunnerReported{group.iteration,
                                    group.seconds,
                                    {{spec_.objective.metric, value}, {"loss", 1.0 - value}},
                                    known.has_value()});
    if (known) return obey(group, *known);
    after_report(group);
}

/// Saves what the trial has, and it trains on.
void CurveWorld::publish(Group& group) {
    group.last = {};
    save(group);
}

void CurveWorld::after_report(Group& group) {
    if (options_.save_every > 0 && group.iteration % options_.save_every == 0) publish(group);
    if (group.interrupt) {
        obey(group, *group.interrupt);
    } else if (group.iteration >= group.decision_point) {
        group.phase = Group::Phase::waiting;
    } else if (draw(group.start.trial.value(), draw_resize + low16(group.iteration)) < options_.resize_rate) {
        obey(group, {Verb::pause, study::Reason::none, 0.0, 0.0});
        group.outcome = AttemptOutcome::resized;
    } else {
        train_on(group);
    }
}

void CurveWorld::obey(Group& group, const study::Verdict& verdict) {
    if (group.broken) return;
    group.last = verdict;
    group.outcome = verdict.verb == Verb::pause   ? AttemptOutcome::paused
                    : verdict.verb == Verb::go_on ? AttemptOutcome::finished
                                                  : AttemptOutcome::stopped;
    group.phase = Group::Phase::saving;
    group.due =
        now_ + draw(group.start.trial.value(), draw_save + low16(group.iteration), Duration{0}, options_.max_save);
    touched_.push_back(group.start.ranks.front());
}

void CurveWorld::save(Group& group) {
    const study::StartTrial& start = group.start;
    const std::string path = "checkpoints/" + std::to_string(start.trial.value()) + "/" +
                             std::to_string(group.iteration) + "-" + std::to_string(start.incarnation.value()) + "." +
                             std::to_string(start.attempt.value()) + ".h5";
    const bool keeps = group.last.verb != Verb::discard;
    if (keeps && files.insert(path).second)
        schedule(*group.members.front(), Duration{0},
                 worker::RunnerSaved{{group.iteration, path, 1000, group.iteration}});
    if (group.phase == Group::Phase::saving) end_all(group, group.outcome);
}

void CurveWorld::end_all(Group& group, AttemptOutcome outcome) {
    group.phase = Group::Phase::over;
    const std::uint32_t trial = group.start.trial.value();
    const auto thrower =
        static_cast<std::size_t>(draw(trial, draw_shape) * 1e6) % static_cast<std::size_t>(group.members.size());
    for (std::size_t i = 0; i < group.members.size(); ++i) {
        CurveRunner& member = *group.members[i];
        const Duration delay =
            draw(trial, draw_return + place(group.start.attempt, member.rank()), Duration{0}, options_.max_return / 4);
        const bool threw = outcome == AttemptOutcome::failed && i == thrower;
        schedule(
            member, delay,
            worker::RunnerEnded{outcome, threw ? study::Failure{"simulated exception", static_cast<std::uint32_t>(i)}
                                               : study::Failure{}});
    }
}

// --- time ---

std::optional<StudyTime> CurveWorld::next_due(base::Rank rank) const {
    const auto at = runners_.find(rank);
    if (at == runners_.end()) return std::nullopt;
    const CurveRunner& runner = *at->second;
    std::optional<StudyTime> due;
    if (!runner.queue.empty()) due = runner.queue.front().first;
    if (runner.group && runner.group->start.ranks.front() == rank && runner.group->due)
        due = due ? std::min(*due, *runner.group->due) : *runner.group->due;
    return due;
}

std::vector<base::Rank> CurveWorld::take_touched() { return std::exchange(touched_, {}); }

void CurveWorld::delete_checkpoint(const std::string& path) {
    if (files.erase(path) == 0) problems_.push_back("an unlink of the missing checkpoint " + path);
}

} // namespace ranktune::simulate
