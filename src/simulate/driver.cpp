// SPDX-License-Identifier: Apache-2.0
#include "simulate/driver.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <functional>
#include <limits>
#include <queue>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "ranktune/base/rng.hpp"
#include "ranktune/study/parse.hpp"
#include "simulate/curves.hpp"
#include "trial/checkpoints/checkpoint_clock.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::simulate {
namespace {

using study::AttemptOutcome;
using study::Verb;

constexpr std::size_t batch_records = 4096;
constexpr double near_share = 0.99;
constexpr const char* epoch = "1970-01-01T00:00:00Z";
/// Draw of the purpose `fault` that says whether a rank is a straggler; attempts have smaller numbers.
constexpr std::uint32_t draw_straggler = 0x8000'0000U;

std::int64_t nanoseconds(double seconds) { return static_cast<std::int64_t>(std::llround(1e9 * seconds)); }

/// A trial, as its group sees it.
struct Running {
    /// reporting: its report is being judged, and it trains on unless it is told otherwise.
    enum class Phase : std::uint8_t { idle, training, reporting, waiting, saving };
    Phase phase = Phase::idle;
    base::Attempt attempt;
    std::uint32_t generation = 0;
    std::uint32_t ranks = 1;
    std::optional<Curve> curve; ///< of `generation`
    std::optional<trial::CheckpointClock> clock;
    Progress progress;
    base::Iteration iteration = 0;
    base::Iteration decision_point = 0;
    base::Iteration fails_at = 0; ///< 0: never in this attempt
    double seconds = 0.0;         ///< training time, all attempts
    double slowness = 1.0;        ///< of its ranks
    double step_s = 0.0;          ///< of the iteration that it trains
    double noise = 0.0;           ///< of its report
    double quality = 0.0;         ///< after the last iteration, without noise
    double value = 0.0;           ///< as it was reported
    std::optional<study::Verdict> interrupt;
    AttemptOutcome outcome = AttemptOutcome::finished; ///< saving: how the attempt ends then
    bool saves = false;                                ///< saving: there is a checkpoint
    /// A checkpoint that is written while the trial trains on.
    std::optional<study::CheckpointRef> in_flight;
};

/// In the order of time, at equal times in the order of scheduling.
struct Item {
    enum class Kind : std::uint8_t { iterated, saved, over };
    std::int64_t at = 0;
    std::uint64_t number = 0;
    std::uint32_t trial = 0;
    std::uint32_t attempt = 0;
    Kind kind = Kind::iterated;
    friend bool operator>(const Item& a, const Item& b) { return std::tie(a.at, a.number) > std::tie(b.at, b.number); }
};

class Driver {
  public:
    Driver(const Setup& setup, study::RecordSink* sink)
        : setup_(setup), sink_(sink), curves_(setup.model.curves, setup.model.time, setup.spec), tuner_(setup.spec) {
        figures_.ranks = std::uint64_t{setup.groups} * setup.spec.max_ranks_per_trial();
        reachable_ = curves_.best_reachable();
        find_stragglers();
    }

    Figures run(const std::string& uuid, const std::string& version) {
        tuner_.create(uuid, study::resolved_toml(setup_.spec), version, out_, description(setup_));
        step(began());
        while (!tuner_.state().ended) next();
        flush();
        return finished();
    }

    void operator()(const study::StartTrial& start);
    void operator()(const study::Decide& decide);
    void operator()(const study::Interrupt& interrupt);
    void operator()(const study::Abandon&) { throw std::logic_error("simulated ranks are never lost"); }
    void operator()(const study::DeleteCheckpoint&) {} // the states are in the records
    void operator()(const study::EndStudy&) {}
    void operator()(const study::Prepare& prepare) { tickets_.push_back(prepare.ticket); }

  private:
    void find_stragglers();
    [[nodiscard]] study::Began began() const;
    void next();
    void take(const Item& item);
    void step(study::EventBody body);
    void flush();
    void prepare_ticket();
    void schedule(Item::Kind kind, std::uint32_t trial, double after_s);
    void train_on(std::uint32_t trial, double after_s);
    void iterated(std::uint32_t trial);
    void report(std::uint32_t trial, Running& run);
    void go_on(std::uint32_t trial, const study::Verdict& verdict);
    void obey(std::uint32_t trial, const study::Verdict& verdict);
    void end_attempt(std::uint32_t trial, AttemptOutcome outcome, study::Failure failure);
    [[nodiscard]] study::CheckpointRef checkpoint(std::uint32_t trial) const;
    void load(const study::StartTrial& start, Running& run) const;
    [[nodiscard]] base::Iteration failing_iteration(const study::StartTrial& start) const;
    [[nodiscard]] Figures finished() const;

    const Setup& setup_;
    study::RecordSink* sink_;
    Curves curves_;
    tuner::Tuner tuner_;
    tuner::Output out_;
    std::vector<study::Command> commands_; ///< of the newest step
    std::deque<Running> trials_;           ///< references stay valid
    std::vector<bool> straggles_;          ///< by rank
    std::deque<std::uint64_t> tickets_;    ///< to prepare
    std::priority_queue<Item, std::vector<Item>, std::greater<>> heap_;
    std::uint64_t scheduled_ = 0;
    std::int64_t now_ = 0;
    double reachable_ = 0.0; ///< quality
    double best_ = std::numeric_limits<double>::quiet_NaN();
    Figures figures_;
};

void Driver::find_stragglers() {
    straggles_.resize(figures_.ranks + 1);
    if (setup_.model.time.stragglers == 0.0) return;
    for (std::size_t rank = 1; rank < straggles_.size(); ++rank) {
        base::RngStream random(curves_.seed(), base::Purpose::fault, static_cast<std::uint32_t>(rank), draw_straggler);
        straggles_[rank] = random.uniform() < setup_.model.time.stragglers;
    }
}

study::Began Driver::began() const {
    const std::uint32_t width = setup_.spec.max_ranks_per_trial();
    // A group never spans two hosts unless it is larger than one.
    const std::uint32_t groups_per_host = std::max(1U, setup_.model.cluster.ranks_per_host / width);
    const bool has_gpus = setup_.spec.resources.gpus == study::GpuUse::one_per_rank;
    study::Began began;
    began.incarnation = base::Incarnation{1};
    began.wall_time = epoch;
    began.workers.reserve(figures_.ranks);
    for (std::uint32_t i = 0; i < figures_.ranks; ++i)
        began.workers.push_back(
            {base::Rank{i + 1}, "n" + std::to_string(i / (groups_per_host * width)), has_gpus ? 1U : 0U});
    return began;
}

// ---- time

void Driver::next() {
    if (!tickets_.empty()) return prepare_ticket();
    const auto timer = tuner_.timer();
    if (timer && (heap_.empty() || base::to_ns(*timer) <= heap_.top().at)) {
        now_ = std::max(now_, base::to_ns(*timer));
        return step(study::TimerFired{});
    }
    if (heap_.empty()) throw std::logic_error("the simulated study neither runs nor ends");
    const Item item = heap_.top();
    heap_.pop();
    now_ = item.at;
    take(item);
}

/// Items of attempts that are over are dropped.
void Driver::take(const Item& item) {
    Running& run = trials_[item.trial];
    if (run.attempt.value() != item.attempt || run.phase == Running::Phase::idle) return;
    switch (item.kind) {
        case Item::Kind::iterated:
            return iterated(item.trial);
        case Item::Kind::saved:
            run.clock->measured(0.0, setup_.model.time.checkpoint);
            return step(study::CheckpointSaved{base::TrialId{item.trial}, run.attempt, base::Incarnation{1},
                                               *std::exchange(run.in_flight, std::nullopt)});
        case Item::Kind::over:
            if (run.saves)
                step(study::CheckpointSaved{base::TrialId{item.trial}, run.attempt, base::Incarnation{1},
                                            checkpoint(item.trial)});
            return end_attempt(item.trial, run.outcome, {});
    }
}

void Driver::step(study::EventBody body) {
    tuner_.step({base::from_ns(now_), std::move(body)}, out_);
    std::swap(commands_, out_.commands);
    for (const auto& command : commands_) std::visit(*this, command);
    commands_.clear();
    if (sink_ == nullptr || out_.records.size() >= batch_records) flush();
}

void Driver::flush() {
    if (sink_ != nullptr) sink_->append(out_.records);
    out_.records.clear();
}

/// Preparing a suggestion takes no virtual time.
void Driver::prepare_ticket() {
    const std::uint64_t ticket = tickets_.front();
    tickets_.pop_front();
    const auto work = tuner_.preparation(ticket);
    if (!work) return;
    study::Prepared prepared{ticket, {}, {}};
    try {
        prepared.configuration = (*work)();
    } catch (const std::exception& error) {
        prepared.why = error.what();
    }
    step(std::move(prepared));
}

void Driver::schedule(Item::Kind kind, std::uint32_t trial, double after_s) {
    heap_.push({now_ + nanoseconds(after_s), scheduled_++, trial, trials_[trial].attempt.value(), kind});
}

// ---- training

void Driver::operator()(const study::StartTrial& start) {
    const std::uint32_t trial = start.trial.value();
    while (trials_.size() <= trial) trials_.emplace_back();
    Running& run = trials_[trial];
    if (!run.curve || run.generation != start.generation) run.curve = curves_.curve(start.configuration);
    run.generation = start.generation;
    run.attempt = start.attempt;
    run.ranks = static_cast<std::uint32_t>(start.ranks.size());
    run.iteration = start.iteration;
    run.decision_point = start.decision_point;
    run.seconds = start.seconds;
    run.interrupt.reset();
    run.in_flight.reset();
    run.clock.emplace(setup_.spec.checkpoint, start.between_failures, start.iteration, start.seconds);
    const bool slow = std::ranges::any_of(start.ranks, [&](base::Rank rank) { return straggles_[rank.value()]; });
    run.slowness = run.curve->slowness * (slow ? setup_.model.time.straggler_factor : 1.0);
    run.fails_at = failing_iteration(start);
    load(start, run);
    const bool exploits = std::holds_alternative<study::Donor>(start.from);
    train_on(trial, exploits ? setup_.model.time.exploit : setup_.model.time.start);
}

/// The digest of a simulated checkpoint is its state: the quality that the trial has reached.
void Driver::load(const study::StartTrial& start, Running& run) const {
    run.progress = {};
    if (const auto* from = study::checkpoint_of(start.from))
        run.progress = run.curve->progress_at(std::bit_cast<double>(from->digest));
}

study::CheckpointRef Driver::checkpoint(std::uint32_t trial) const {
    const Running& run = trials_[trial];
    study::CheckpointRef ref;
    ref.iteration = run.iteration;
    ref.path = "checkpoints/" + std::to_string(trial) + "/" + std::to_string(run.iteration) + "-1." +
               std::to_string(run.attempt.value()) + ".h5";
    ref.bytes = sizeof(double);
    ref.digest = std::bit_cast<std::uint64_t>(run.quality);
    ref.value = run.value;
    ref.generation = run.generation;
    return ref;
}

/// Every iteration fails with the same probability, such that a whole training fails with `failures.rate`.
base::Iteration Driver::failing_iteration(const study::StartTrial& start) const {
    const double rate = setup_.model.failures.rate;
    if (rate == 0.0) return 0;
    const double survives = std::log1p(-rate) / static_cast<double>(setup_.spec.max_iterations); // log of probability
    base::RngStream random(curves_.seed(), base::Purpose::fault, start.trial.value(), start.attempt.value());
    const double lasts = std::floor(std::log(random.uniform_open()) / survives);
    constexpr double never = 1e15;
    return lasts >= never ? 0 : start.iteration + 1 + static_cast<base::Iteration>(lasts);
}

void Driver::train_on(std::uint32_t trial, double after_s) {
    Running& run = trials_[trial];
    const Chance chance = curves_.chance(*run.curve, run.iteration + 1);
    run.phase = Running::Phase::training;
    run.noise = chance.noise;
    run.step_s = setup_.model.time.iteration * run.slowness * chance.time;
    schedule(Item::Kind::iterated, trial, after_s + run.step_s);
}

void Driver::iterated(std::uint32_t trial) {
    Running& run = trials_[trial];
    curves_.advance(run.progress);
    ++run.iteration;
    run.seconds += run.step_s;
    figures_.training_s += run.step_s * run.ranks;
    if (run.iteration == run.fails_at)
        return end_attempt(trial, AttemptOutcome::failed, {"simulated failure", std::uint32_t{0}});
    run.quality = run.curve->quality(run.progress);
    run.value = curves_.metric(run.quality + run.noise);
    report(trial, run);
    if (run.phase == Running::Phase::reporting) go_on(trial, {});
}

void Driver::report(std::uint32_t trial, Running& run) {
    run.phase = run.iteration >= run.decision_point ? Running::Phase::waiting : Running::Phase::reporting;
    ++figures_.reports;
    const base::TrialId id{trial};
    const base::Iteration iteration = run.iteration;
    step(study::ReportArrived{
        id, run.attempt, base::Incarnation{1}, iteration, run.seconds, {{setup_.spec.objective.metric, run.value}}});
    const auto& state = tuner_.state();
    if (state.best != id || state.trial(id).best_iteration != iteration) return;
    best_ = run.quality;
    if (!figures_.near_best_s && best_ >= near_share * reachable_)
        figures_.near_best_s = static_cast<double>(now_) / 1e9;
}

void Driver::operator()(const study::Decide& decide) {
    Running& run = trials_[decide.trial.value()];
    const bool asks = run.phase == Running::Phase::waiting || run.phase == Running::Phase::reporting;
    if (run.attempt != decide.attempt || !asks || run.iteration != decide.iteration) return;
    if (decide.verdict.verb != Verb::go_on) return obey(decide.trial.value(), decide.verdict);
    run.decision_point = decide.decision_point;
    go_on(decide.trial.value(), decide.verdict);
}

void Driver::operator()(const study::Interrupt& interrupt) {
    Running& run = trials_[interrupt.trial.value()];
    if (run.attempt != interrupt.attempt || run.phase == Running::Phase::idle) return;
    run.interrupt = interrupt.verdict;
    if (run.phase == Running::Phase::waiting) obey(interrupt.trial.value(), interrupt.verdict);
}

/// Saves its state, if that is due, while it trains on.
void Driver::go_on(std::uint32_t trial, const study::Verdict& verdict) {
    Running& run = trials_[trial];
    if (run.interrupt) return obey(trial, *run.interrupt);
    if (setup_.spec.checkpoint.supported && run.clock->due(run.iteration, run.seconds, verdict) && !run.in_flight) {
        run.in_flight = checkpoint(trial);
        run.clock->taken(run.iteration, run.seconds);
        schedule(Item::Kind::saved, trial, setup_.model.time.checkpoint);
    }
    train_on(trial, 0.0);
}

void Driver::obey(std::uint32_t trial, const study::Verdict& verdict) {
    Running& run = trials_[trial];
    const bool supported = setup_.spec.checkpoint.supported;
    run.phase = Running::Phase::saving;
    run.saves = supported && verdict.verb != Verb::discard;
    run.outcome = verdict.verb != Verb::pause ? AttemptOutcome::stopped
                  : supported                 ? AttemptOutcome::paused
                                              : AttemptOutcome::stateless;
    schedule(Item::Kind::over, trial, run.saves ? setup_.model.time.checkpoint : 0.0);
}

void Driver::end_attempt(std::uint32_t trial, AttemptOutcome outcome, study::Failure failure) {
    Running& run = trials_[trial];
    run.phase = Running::Phase::idle;
    step(study::AttemptOver{base::TrialId{trial}, run.attempt, base::Incarnation{1}, outcome, std::move(failure)});
}

Figures Driver::finished() const {
    Figures figures = figures_;
    const auto& state = tuner_.state();
    figures.outcome = state.outcome;
    figures.trials = state.trials.size();
    figures.seconds = static_cast<double>(now_) / 1e9;
    figures.core_hours =
        figures.seconds / 3600.0 * static_cast<double>(figures.ranks) * setup_.spec.resources.cpus_per_rank;
    figures.best = curves_.metric(best_);
    figures.best_reachable = curves_.metric(reachable_);
    return figures;
}

} // namespace

double Figures::utilisation() const {
    return seconds > 0.0 ? training_s / (seconds * static_cast<double>(ranks)) : 0.0;
}

std::string description(const Setup& setup) {
    const std::uint32_t width = setup.spec.max_ranks_per_trial();
    return std::to_string(setup.groups) + (setup.groups == 1 ? " group of " : " groups of ") + std::to_string(width) +
           (width == 1 ? " rank" : " ranks");
}

Figures simulate(const Setup& setup, const std::string& uuid, const std::string& version, study::RecordSink* sink) {
    return Driver(setup, sink).run(uuid, version);
}

} // namespace ranktune::simulate
