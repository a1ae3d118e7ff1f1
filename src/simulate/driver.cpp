// SPDX-License-Identifier: Apache-2.0
#include "simulate/driver.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <deque>
#include <functional>
#include <limits>
#include <queue>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "ranktune/base/error.hpp"
#include "ranktune/base/rng.hpp"
#include "ranktune/study/parse.hpp"
#include "simulate/curves.hpp"
#include "tuner/tuner.hpp"
#include "worker/checkpoints/checkpoint_clock.hpp"

namespace ranktune::simulate {
namespace {

using study::AttemptOutcome;
using study::Verb;

constexpr std::size_t batch_records = 4096;
constexpr double near_share = 0.01;
/// Jobs in a row without a single report.
constexpr std::uint32_t patience = 20;
/// Of the head.
constexpr std::uint64_t steps_between_signs = 64;
/// Draws of the purpose `fault`; attempts have smaller numbers, and those of incarnations are added.
constexpr std::uint32_t draw_straggler = 0x8000'0000U;
constexpr std::uint32_t draw_rank = 0x9000'0000U;
constexpr std::uint32_t draw_job = 0xA000'0000U;

/// Three centuries: study time is counted in nanoseconds.
constexpr double never_s = 9e9;

std::int64_t nanoseconds(double seconds) {
    return static_cast<std::int64_t>(std::llround(1e9 * std::min(seconds, never_s)));
}

constexpr std::int64_t end_of_time = std::int64_t{9'000'000'000} * 1'000'000'000;

/// Not after the end of time.
std::int64_t later(std::int64_t now, std::int64_t ns) { return now + std::min(ns, end_of_time - now); }

/// RFC 3339; time begins in 1970.
std::string wall_time(std::int64_t ns) {
    using namespace std::chrono;
    const sys_seconds at{seconds(ns / 1'000'000'000)};
    const auto day = floor<days>(at);
    const year_month_day date(day);
    const hh_mm_ss time(at - day);
    char text[32];
    std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02dZ", static_cast<int>(date.year()),
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                  static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                  static_cast<int>(time.seconds().count()));
    return text;
}

/// The first ranks of a group have a GPU each.
std::uint32_t gpus_of_group(const study::StudySpec& spec) {
    if (spec.resources.gpus == study::GpuUse::some) return spec.max_ranks_per_trial(study::WorkerKind::with_gpu);
    return spec.resources.gpus == study::GpuUse::one_per_rank ? spec.max_ranks_per_trial() : 0;
}

/// A trial, as its group sees it.
struct Running {
    /// reporting: its report is being judged, and it trains on unless it is told otherwise.
    enum class Phase : std::uint8_t { idle, training, reporting, waiting, saving };
    Phase phase = Phase::idle;
    base::AttemptId attempt;
    std::uint32_t generation = 0;
    std::uint32_t ranks = 1;
    base::Rank leader;
    std::shared_ptr<const Curve> curve; ///< of `generation`
    std::optional<worker::CheckpointClock> clock;
    Progress progress;
    double shift = 0.0; ///< of `generation`: how far progress.iterations is ahead of `iteration`
    base::Iteration iteration = 0;
    base::Iteration furthest = 0; ///< in any attempt
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
    enum class Kind : std::uint8_t { iterated, saved, over, rank_fails, job_fails, prepared };
    std::int64_t at = 0;
    std::uint64_t number = 0;
    std::uint32_t subject = 0; ///< a trial or a rank
    std::uint32_t attempt = 0; ///< of a trial
    Kind kind = Kind::iterated;
    friend bool operator>(const Item& a, const Item& b) { return std::tie(a.at, a.number) > std::tie(b.at, b.number); }
};

class Driver {
  public:
    Driver(const Setup& setup, study::RecordSink* sink, const Progressing& progress)
        : setup_(setup),
          sink_(sink),
          progress_(progress),
          time_(setup.recordings ? times_of(setup.model.time, *setup.recordings) : setup.model.time),
          head_ns_(nanoseconds(time_.head)),
          seed_(setup.model.curves.seed.value_or(setup.spec.seed)),
          curves_(make_curves(setup)),
          tuner_(setup.spec),
          reachable_(curves_->best_reachable()) {
        figures_.ranks = std::uint64_t{setup.groups} * ranks_of_group(setup.spec);
        find_stragglers();
    }

    Figures run(const std::string& uuid, const std::string& version) {
        tuner_.create(uuid, study::resolved_toml(setup_.spec), version, out_, description(setup_));
        if (setup_.earlier) tuner_.warm_start(*setup_.earlier, out_);
        begin_job();
        while (!over_) next();
        flush();
        return finished();
    }

    void operator()(const study::StartTrial& start);
    void operator()(const study::Decide& decide);
    void operator()(const study::Interrupt& interrupt);
    void operator()(const study::Abandon&) {}          // rank_fails has ended the attempt
    void operator()(const study::DeleteCheckpoint&) {} // the states are in the records
    void operator()(const study::EndStudy&) {}
    void operator()(const study::Prepare& prepare) { tickets_.push_back(prepare.ticket); }

  private:
    void find_stragglers();
    [[nodiscard]] study::Began began() const;
    void begin_job();
    void end_job(bool suddenly);
    [[nodiscard]] double time_to_failure(double mean_s, std::uint32_t subject, std::uint32_t draw) const;
    void rank_fails(std::uint32_t rank);
    [[nodiscard]] std::int64_t in_jobs() const { return std::max(now_, head_is_free_); }
    [[nodiscard]] std::int64_t elapsed() const { return later(in_jobs(), waited_); }
    void next();
    void take(const Item& item);
    void step(study::EventBody body);
    void flush();
    void prepare_ticket();
    void schedule(Item::Kind kind, std::uint32_t trial, double after_s);
    void schedule_failure(Item::Kind kind, std::uint32_t rank, double after_s);
    void train_on(std::uint32_t trial, double after_s);
    void iterated(std::uint32_t trial);
    void report(std::uint32_t trial, Running& run);
    void go_on(std::uint32_t trial, const study::Verdict& verdict);
    void obey(std::uint32_t trial, const study::Verdict& verdict);
    void end_attempt(std::uint32_t trial, AttemptOutcome outcome, study::Failure failure);
    [[nodiscard]] study::CheckpointRef checkpoint(std::uint32_t trial) const;
    void load(const study::StartTrial& start, bool same_curve, Running& run) const;
    [[nodiscard]] double time_to_start(const study::StartTrial& start);
    [[nodiscard]] base::Iteration failing_iteration(const study::StartTrial& start) const;
    [[nodiscard]] Figures finished() const;

    const Setup& setup_;
    study::RecordSink* sink_;
    const Progressing& progress_;
    std::uint64_t steps_ = 0;
    TimeModel time_;
    std::int64_t head_ns_; ///< for one event
    std::uint64_t seed_;
    std::unique_ptr<Curves> curves_;
    tuner::Tuner tuner_;
    tuner::Output out_;
    std::vector<study::Command> commands_; ///< of the newest step
    std::deque<Running> trials_;           ///< references stay valid
    std::vector<bool> straggles_;          ///< by rank
    std::vector<bool> has_begun_;          ///< by rank: it has had a trial in this job
    /// By rank: the trial and attempt that got it last.
    std::vector<std::pair<std::uint32_t, base::AttemptId>> holders_;
    std::deque<std::uint64_t> tickets_; ///< to prepare
    bool prepares_ = false;             ///< the oldest of them is under way
    std::priority_queue<Item, std::vector<Item>, std::greater<>> heap_;
    std::uint64_t scheduled_ = 0;
    base::Incarnation incarnation_{0};
    std::int64_t now_ = 0;    ///< study time
    std::int64_t waited_ = 0; ///< between jobs
    std::int64_t head_is_free_ = 0;
    bool over_ = false;
    std::uint64_t reports_before_ = 0; ///< this job
    std::uint32_t idle_jobs_ = 0;      ///< in a row
    std::uint64_t beyond_ = 0;         ///< reports without data
    double reachable_ = 0.0;           ///< quality
    double best_ = std::numeric_limits<double>::quiet_NaN();
    Figures figures_;
};

void Driver::find_stragglers() {
    straggles_.resize(figures_.ranks + 1);
    holders_.resize(figures_.ranks + 1);
    if (time_.stragglers == 0.0) return;
    for (std::size_t rank = 1; rank < straggles_.size(); ++rank) {
        base::RngStream random(seed_, base::Purpose::fault, static_cast<std::uint32_t>(rank), draw_straggler);
        straggles_[rank] = random.uniform() < time_.stragglers;
    }
}

study::Began Driver::began() const {
    const std::uint32_t width = ranks_of_group(setup_.spec);
    // A group never spans two hosts unless it is larger than one.
    const std::uint32_t groups_per_host = std::max(1U, setup_.model.cluster.ranks_per_host / width);
    const std::uint32_t gpus = gpus_of_group(setup_.spec);
    study::Began began;
    began.incarnation = incarnation_;
    began.wall_time = wall_time(elapsed());
    began.workers.reserve(figures_.ranks);
    for (std::uint32_t i = 0; i < figures_.ranks; ++i)
        began.workers.push_back(
            {base::Rank{i + 1}, "n" + std::to_string(i / (groups_per_host * width)), i % width < gpus ? 1U : 0U});
    return began;
}

// ---- jobs

void Driver::begin_job() {
    const FaultModel& faults = setup_.faults;
    incarnation_ = base::Incarnation{incarnation_.value() + 1};
    ++figures_.jobs;
    reports_before_ = figures_.reports;
    heap_ = {};
    tickets_.clear(); // the head asks again for those that it needs
    prepares_ = false;
    has_begun_.assign(figures_.ranks + 1, false);
    for (Running& run : trials_) run.phase = Running::Phase::idle;
    if (faults.walltime_s > 0.0) {
        step(study::DeadlineKnown{base::from_ns(later(now_, nanoseconds(faults.walltime_s)))});
        schedule_failure(Item::Kind::job_fails, 0, faults.walltime_s);
    }
    const std::uint32_t job = incarnation_.value();
    if (faults.job_mean_s > 0.0)
        schedule_failure(Item::Kind::job_fails, 0, time_to_failure(faults.job_mean_s, 0, draw_job + job));
    if (faults.rank_mean_s > 0.0)
        for (std::uint32_t rank = 1; rank <= figures_.ranks; ++rank)
            schedule_failure(Item::Kind::rank_fails, rank, time_to_failure(faults.rank_mean_s, rank, draw_rank + job));
    step(began());
}

/// The study has ended, or its job `suddenly`.
void Driver::end_job(bool suddenly) {
    const bool goes_on = setup_.faults.has_jobs() && figures_.jobs < setup_.faults.jobs &&
                         (suddenly || tuner_.state().outcome == study::StudyOutcome::resumable);
    over_ = !goes_on;
    if (over_) {
        figures_.outcome = suddenly ? study::StudyOutcome::resumable : tuner_.state().outcome;
        return;
    }
    idle_jobs_ = figures_.reports > reports_before_ ? 0 : idle_jobs_ + 1;
    if (idle_jobs_ == patience)
        throw base::UsageError(std::to_string(patience) +
                               " simulated jobs in a row ended before any trial reported: they are too short, or fail "
                               "too often, for one iteration");
    waited_ = later(waited_, nanoseconds(setup_.faults.wait_s));
    begin_job();
}

double Driver::time_to_failure(double mean_s, std::uint32_t subject, std::uint32_t draw) const {
    base::RngStream random(seed_, base::Purpose::fault, subject, draw);
    return -mean_s * std::log(random.uniform_open());
}

void Driver::rank_fails(std::uint32_t rank) {
    const auto [trial, attempt] = holders_[rank];
    const bool trains =
        trial < trials_.size() && trials_[trial].attempt == attempt && trials_[trial].phase != Running::Phase::idle;
    ++figures_.ranks_lost;
    if (trains) trials_[trial].phase = Running::Phase::idle;
    const bool leads = trains && trials_[trial].leader.value() == rank;
    step(study::RankGone{base::Rank{rank}, "simulated failure"});
    // The other ranks come back at once, with their leader's answer. Without a leader they are back already.
    if (trains && !leads) end_attempt(trial, AttemptOutcome::lost, {});
}

// ---- time

void Driver::next() {
    if (tuner_.state().ended) return end_job(false);
    if (!tickets_.empty() && !prepares_) {
        if (time_.suggestion == 0.0) return prepare_ticket();
        prepares_ = true;
        heap_.push({later(now_, nanoseconds(time_.suggestion)), scheduled_++, 0, 0, Item::Kind::prepared});
    }
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
    if (item.kind == Item::Kind::job_fails) return end_job(true);
    if (item.kind == Item::Kind::rank_fails) return rank_fails(item.subject);
    if (item.kind == Item::Kind::prepared) {
        prepares_ = false;
        return prepare_ticket();
    }
    Running& run = trials_[item.subject];
    if (run.attempt.value() != item.attempt || run.phase == Running::Phase::idle) return;
    if (item.kind == Item::Kind::iterated) return iterated(item.subject);
    const base::TrialId id{item.subject};
    if (item.kind == Item::Kind::saved) {
        run.clock->measured(0.0, time_.checkpoint);
        return step(study::CheckpointSaved{id, run.attempt, incarnation_, *std::exchange(run.in_flight, std::nullopt)});
    }
    if (run.saves) step(study::CheckpointSaved{id, run.attempt, incarnation_, checkpoint(item.subject)});
    end_attempt(item.subject, run.outcome, {});
}

/// The head takes events in the order in which they arrive, and what it says arrives when it is done.
void Driver::step(study::EventBody body) {
    const std::int64_t arrived = std::exchange(now_, std::max(now_, head_is_free_));
    if (elapsed() >= end_of_time)
        throw base::UsageError(
            "the simulated study takes longer than 285 years: lower the times of the model or the file of failures, or "
            "give --hours");
    if (progress_ && ++steps_ % steps_between_signs == 0) progress_(tuner_.state().trials.size());
    tuner_.step({base::from_ns(now_), std::move(body)}, out_);
    now_ = later(now_, head_ns_);
    head_is_free_ = now_;
    figures_.head_s += time_.head;
    std::swap(commands_, out_.commands);
    for (const auto& command : commands_) std::visit(*this, command);
    commands_.clear();
    now_ = arrived;
    if (sink_ == nullptr || out_.records.size() >= batch_records) flush();
}

void Driver::flush() {
    if (sink_ != nullptr) sink_->append(out_.records);
    out_.records.clear();
}

/// The oldest one, which is ready now.
void Driver::prepare_ticket() {
    const std::uint64_t ticket = tickets_.front();
    tickets_.pop_front();
    const auto work = tuner_.preparation(ticket);
    if (!work) return;
    study::Prepared prepared{ticket, {}, {}};
    try {
        auto made = (*work)();
        prepared.configuration = std::move(made.configuration);
        prepared.basis = std::move(made.basis);
    } catch (const std::exception& error) {
        prepared.why = error.what();
    }
    step(std::move(prepared));
}

void Driver::schedule(Item::Kind kind, std::uint32_t trial, double after_s) {
    heap_.push({later(now_, nanoseconds(after_s)), scheduled_++, trial, trials_[trial].attempt.value(), kind});
}

void Driver::schedule_failure(Item::Kind kind, std::uint32_t rank, double after_s) {
    if (after_s < never_s) heap_.push({later(now_, nanoseconds(after_s)), scheduled_++, rank, 0, kind});
}

// ---- training

void Driver::operator()(const study::StartTrial& start) {
    const std::uint32_t trial = start.trial.value();
    while (trials_.size() <= trial) trials_.emplace_back();
    Running& run = trials_[trial];
    const bool same_curve = run.curve && run.generation == start.generation;
    if (!same_curve) run.curve = curves_->curve(start.configuration);
    run.generation = start.generation;
    run.attempt = start.attempt;
    run.ranks = static_cast<std::uint32_t>(start.ranks.size());
    run.leader = start.ranks.front();
    for (const base::Rank rank : start.ranks) holders_[rank.value()] = {trial, start.attempt};
    run.iteration = start.iteration;
    run.decision_point = start.decision_point;
    run.seconds = start.seconds;
    run.interrupt.reset();
    run.in_flight.reset();
    run.clock.emplace(setup_.spec.checkpoint, start.between_failures, start.iteration, start.seconds);
    const bool slow = std::ranges::any_of(start.ranks, [&](base::Rank rank) { return straggles_[rank.value()]; });
    run.slowness = slow ? time_.straggler_factor : 1.0;
    run.fails_at = failing_iteration(start);
    load(start, same_curve, run);
    train_on(trial, time_to_start(start));
}

double Driver::time_to_start(const study::StartTrial& start) {
    bool is_first = false;
    for (const base::Rank rank : start.ranks) {
        is_first = is_first || !has_begun_[rank.value()];
        has_begun_[rank.value()] = true;
    }
    if (is_first) return time_.first_start.value_or(time_.start);
    return std::holds_alternative<study::Donor>(start.from) ? time_.exploit : time_.start;
}

/// The digest of a simulated checkpoint is its state: the quality that the trial has reached.
void Driver::load(const study::StartTrial& start, bool same_curve, Running& run) const {
    const auto* from = study::checkpoint_of(start.from);
    const auto quality = [&] { return std::bit_cast<double>(from->digest); };
    if (same_curve && std::holds_alternative<study::CheckpointRef>(start.from)) {
        run.progress = run.curve->resumed(quality(), static_cast<double>(from->iteration) + run.shift);
        return;
    }
    run.progress = from == nullptr ? Progress{} : run.curve->progress_at(quality());
    run.shift = run.progress.iterations - static_cast<double>(start.iteration);
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

/// Every iteration fails with the same probability, such that a whole training fails at the given rate.
base::Iteration Driver::failing_iteration(const study::StartTrial& start) const {
    const double rate = setup_.faults.trial_rate;
    if (rate == 0.0) return 0;
    const double survives = std::log1p(-rate) / static_cast<double>(setup_.spec.max_iterations); // log of probability
    base::RngStream random(seed_, base::Purpose::fault, start.trial.value(), start.attempt.value());
    const double lasts = std::floor(std::log(random.uniform_open()) / survives);
    constexpr double never = 1e15;
    return lasts >= never ? 0 : start.iteration + 1 + static_cast<base::Iteration>(lasts);
}

void Driver::train_on(std::uint32_t trial, double after_s) {
    Running& run = trials_[trial];
    const Step step = run.curve->step(run.progress, run.iteration + 1);
    run.phase = Running::Phase::training;
    run.noise = step.noise;
    run.step_s = step.seconds * run.slowness;
    schedule(Item::Kind::iterated, trial, after_s + run.step_s);
}

void Driver::iterated(std::uint32_t trial) {
    Running& run = trials_[trial];
    run.progress.iterations += 1.0;
    run.progress.lead *= 1.0 - setup_.model.curves.forgetting;
    ++run.iteration;
    run.seconds += run.step_s;
    figures_.training_s += run.step_s * run.ranks;
    if (run.iteration <= run.furthest) figures_.repeated_s += run.step_s * run.ranks;
    run.furthest = std::max(run.furthest, run.iteration);
    if (run.iteration == run.fails_at)
        return end_attempt(trial, AttemptOutcome::failed, {"simulated failure", std::uint32_t{0}});
    run.quality = run.curve->quality(run.progress);
    run.value = curves_->metric(run.quality + run.noise);
    if (!run.curve->is_known(run.progress)) ++beyond_;
    report(trial, run);
    if (run.phase == Running::Phase::reporting) go_on(trial, {});
}

void Driver::report(std::uint32_t trial, Running& run) {
    run.phase = run.iteration >= run.decision_point ? Running::Phase::waiting : Running::Phase::reporting;
    ++figures_.reports;
    const base::TrialId id{trial};
    const base::Iteration iteration = run.iteration;
    step(study::ReportArrived{
        id, run.attempt, incarnation_, iteration, run.seconds, {{setup_.spec.objective.metric, run.value}}});
    const auto& state = tuner_.state();
    if (state.best != id || state.trial(id).best_iteration != iteration) return;
    best_ = run.quality;
    if (!figures_.near_best_s && best_ >= reachable_ - near_share * std::abs(reachable_))
        figures_.near_best_s = static_cast<double>(elapsed()) / 1e9;
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
        schedule(Item::Kind::saved, trial, time_.checkpoint);
    }
    train_on(trial, time_.report);
}

void Driver::obey(std::uint32_t trial, const study::Verdict& verdict) {
    Running& run = trials_[trial];
    const bool supported = setup_.spec.checkpoint.supported;
    run.phase = Running::Phase::saving;
    run.saves = supported && verdict.verb != Verb::discard;
    run.outcome = verdict.verb != Verb::pause ? AttemptOutcome::stopped
                  : supported                 ? AttemptOutcome::paused
                                              : AttemptOutcome::stateless;
    schedule(Item::Kind::over, trial, run.saves ? time_.checkpoint : 0.0);
}

void Driver::end_attempt(std::uint32_t trial, AttemptOutcome outcome, study::Failure failure) {
    Running& run = trials_[trial];
    run.phase = Running::Phase::idle;
    step(study::AttemptOver{base::TrialId{trial}, run.attempt, incarnation_, outcome, std::move(failure)});
}

Figures Driver::finished() const {
    Figures figures = figures_;
    const auto hours_of_all = [&](double seconds) { return seconds / 3600.0 * static_cast<double>(figures.ranks); };
    figures.trials = tuner_.state().trials.size();
    figures.seconds = static_cast<double>(elapsed()) / 1e9;
    figures.in_jobs_s = static_cast<double>(in_jobs()) / 1e9;
    figures.core_hours = hours_of_all(figures.in_jobs_s) * setup_.spec.resources.cpus_per_rank;
    // With repeats, the best trial is known after its end only.
    const auto& best = tuner_.state().best;
    figures.best = curves_->metric(std::isnan(best_) && best ? trials_[best->value()].quality : best_);
    figures.best_reachable = curves_->metric(reachable_);
    if (!setup_.recordings) return figures;
    const auto reports = static_cast<double>(std::max<std::uint64_t>(1, figures.reports));
    figures.extrapolation = {static_cast<double>(beyond_) / reports, curves_->distances()};
    return figures;
}

} // namespace

double Figures::utilisation() const {
    return in_jobs_s > 0.0 ? training_s / (in_jobs_s * static_cast<double>(ranks)) : 0.0;
}

std::uint32_t ranks_of_group(const study::StudySpec& spec) {
    if (spec.resources.gpus != study::GpuUse::some) return spec.max_ranks_per_trial();
    return gpus_of_group(spec) + spec.max_ranks_per_trial(study::WorkerKind::without_gpu);
}

std::string description(const Setup& setup) {
    const std::uint32_t width = ranks_of_group(setup.spec);
    std::string text = std::to_string(setup.groups) + (setup.groups == 1 ? " group of " : " groups of ") +
                       std::to_string(width) + (width == 1 ? " rank" : " ranks");
    if (setup.recordings) text += ", with the curves of " + setup.recordings->origin;
    if (setup.faults.trial_rate > 0.0 || setup.faults.has_jobs()) text += ", with failures";
    return text;
}

Figures simulate(const Setup& setup, const std::string& uuid, const std::string& version, study::RecordSink* sink,
                 const Progressing& progress) {
    return Driver(setup, sink, progress).run(uuid, version);
}

} // namespace ranktune::simulate
