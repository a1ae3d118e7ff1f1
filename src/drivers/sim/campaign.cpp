// SPDX-License-Identifier: Apache-2.0
#include "drivers/sim/campaign.hpp"

#include <algorithm>
#include <exception>

#include "ranktune/base/rng.hpp"
#include "ranktune/study/codec.hpp"

namespace ranktune::drivers::sim {

using base::Duration;
using base::Rank;
using base::RngStream;
using study::SchedulerKind;
using study::StudyOutcome;
using namespace std::chrono_literals;

namespace {

bool chance(RngStream& rng, double probability) { return rng.uniform() < probability; }

template <class T>
T pick(RngStream& rng, std::initializer_list<T> values) {
    return values.begin()[rng.below(values.size())];
}

Duration between(RngStream& rng, Duration low, Duration high) {
    return low + Duration(static_cast<Duration::rep>(rng.uniform() * static_cast<double>((high - low).count())));
}

// --- drawing a case ---

void draw_scheduler(RngStream& rng, study::SchedulerSpec& scheduler) {
    scheduler.kind = pick(rng, {SchedulerKind::fifo, SchedulerKind::asha, SchedulerKind::asha, SchedulerKind::asha,
                                SchedulerKind::median});
    scheduler.variant = pick(rng, {study::AshaVariant::promote, study::AshaVariant::stop});
    scheduler.eta = pick(rng, {2.0, 3.0, 4.0});
    scheduler.first_rung = pick(rng, {1.0, 1.0, 2.0});
    scheduler.finish_top = pick(rng, {0U, 1U, 2U});
    if (scheduler.variant == study::AshaVariant::stop) {
        scheduler.rule = pick(rng, {study::AshaRule::floor, study::AshaRule::ray});
        scheduler.brackets = pick(rng, {1U, 1U, 2U});
    }
    scheduler.restart_paused = chance(rng, 0.1);
    scheduler.hard_stop = chance(rng, 0.5);
    scheduler.grace = pick(rng, {1.0, 2.0});
    scheduler.min_samples = pick(rng, {1U, 3U});
}

std::string_view scheduler_text(const study::SchedulerSpec& scheduler) {
    if (scheduler.kind == SchedulerKind::fifo) return "fifo";
    if (scheduler.kind == SchedulerKind::median) return scheduler.hard_stop ? "median" : "median pause";
    if (scheduler.variant == study::AshaVariant::promote) return "asha promote";
    return scheduler.rule == study::AshaRule::floor ? "asha stop" : "asha stop ray";
}

study::StudySpec draw_spec(RngStream& rng, std::uint32_t workers) {
    study::StudySpec spec;
    spec.name = "campaign";
    spec.objective = {"score", pick(rng, {study::Mode::max, study::Mode::min})};
    spec.num_trials = 1 + static_cast<std::uint32_t>(rng.below(30));
    spec.max_iterations = pick<base::Iteration>(rng, {1, 3, 9, 9, 27});
    spec.seed = rng();
    if (chance(rng, 0.2)) spec.max_concurrent = 1 + static_cast<std::uint32_t>(rng.below(8));
    spec.trainable.name = "curve";
    std::vector<space::Parameter> parameters(1);
    parameters.front() = {"lr", space::FloatRange{1e-4, 1.0, true, 0.0}, {}};
    const auto largest = std::min(3U, workers);
    if (chance(rng, 0.4)) {
        parameters.resize(2);
        parameters.back() = {"ranks", space::IntRange{1, largest, false, 1}, {}};
        spec.resources.ranks_parameter = "ranks";
    } else {
        spec.resources.ranks = 1 + static_cast<std::uint32_t>(rng.below(largest));
    }
    spec.space = space::SearchSpace(std::move(parameters));
    spec.searcher.kind = pick(rng, {study::SearcherKind::random, study::SearcherKind::sobol});
    draw_scheduler(rng, spec.scheduler);
    spec.scheduler.first_rung = std::min(spec.scheduler.first_rung, static_cast<double>(spec.max_iterations));
    if (chance(rng, 0.1)) spec.stop.metrics.push_back({"score", 0.6, study::Mode::max});
    if (chance(rng, 0.1)) spec.stop.plateau = study::PlateauStop{"score", 0.02, 3, 3, {}};
    if (chance(rng, 0.1)) spec.stop.trial_time = between(rng, 1s, 5s);
    if (chance(rng, 0.1)) spec.time_budget = between(rng, 5s, 60s);
    return spec;
}

ClusterOptions draw_life(RngStream& rng, std::uint32_t workers) {
    ClusterOptions life;
    life.workers = workers;
    life.seed = rng();
    life.wires.max_delay = pick<Duration>(rng, {0us, 100us, 10ms, 300ms});
    life.wires.reorder = pick(rng, {0.0, 0.1, 0.5});
    life.wires.duplicate = pick(rng, {0.0, 0.1, 0.5});
    if (chance(rng, 0.1)) {
        // Each message may come twice in a row: the machines have to cope without a session.
        life.sessions = false;
        life.wires.min_delay = life.wires.max_delay;
        life.wires.reorder = 0.0;
    }
    life.curve.max_iteration = pick<Duration>(rng, {20ms, 500ms, 2s});
    life.curve.throw_rate = pick(rng, {0.0, 0.1, 0.5});
    life.curve.nan_rate = pick(rng, {0.0, 0.1});
    life.curve.done_rate = pick(rng, {0.0, 0.1});
    life.curve.save_every = pick<base::Iteration>(rng, {0, 0, 1, 4});
    life.curve.notice_rate = pick(rng, {0.0, 0.5, 1.0});
    life.curve.stuck_rate = pick(rng, {0.0, 0.2});
    life.head_nap = pick<Duration>(rng, {0us, 200us, 20ms});
    return life;
}

void draw_deaths(RngStream& rng, ClusterOptions& life) {
    if (chance(rng, 0.4)) {
        const std::uint64_t deaths = 1 + rng.below(1 + life.workers / 2);
        for (std::uint64_t i = 0; i < deaths; ++i) {
            const Rank rank(1 + static_cast<std::uint32_t>(rng.below(life.workers)));
            life.deaths.emplace_back(rank, between(rng, 0s, 20s));
        }
    }
    if (chance(rng, 0.15)) life.deaths.emplace_back(base::head_rank, between(rng, 0s, 20s));
    if (chance(rng, 0.15)) life.stop_at = between(rng, 0s, 20s);
    if (chance(rng, 0.1)) life.stop_at_once_at = between(rng, 0s, 20s);
}

} // namespace

Case draw_case(std::uint64_t seed) {
    RngStream rng(seed, base::Purpose::fault);
    const std::uint32_t workers =
        chance(rng, 0.1) ? 64 : 1 + static_cast<std::uint32_t>(rng.below(chance(rng, 0.5) ? 4 : 16));
    Case drawn;
    drawn.spec = draw_spec(rng, workers);
    for (int i = 0; i < 4; ++i) {
        // The number of ranks may differ from life to life, as long as every trial fits.
        const auto least = drawn.spec.max_ranks_per_trial();
        drawn.lives.push_back(draw_life(rng, i == 0 ? workers : least + static_cast<std::uint32_t>(rng.below(6))));
        drawn.lives.back().incarnation = base::Incarnation(static_cast<std::uint32_t>(i) + 1);
        if (i < 3) draw_deaths(rng, drawn.lives.back());
    }
    drawn.lives.back().curve.stuck_rate = 0.0;
    drawn.description = std::string(scheduler_text(drawn.spec.scheduler)) + ", " +
                        std::to_string(drawn.spec.num_trials) + " trials, R " +
                        std::to_string(drawn.spec.max_iterations) + ", " + std::to_string(workers) +
                        " workers, <= " + std::to_string(drawn.spec.max_ranks_per_trial()) + " ranks per trial";
    return drawn;
}

namespace {

// --- running it ---

/// A journal in memory: what was appended, through the codec and back.
class MemoryJournal final : public study::RecordSink {
  public:
    void append(const std::vector<study::Record>& records) override {
        for (const study::Record& record : records) study::encode(record, bytes_);
        count_ += records.size();
    }
    [[nodiscard]] std::uint64_t count() const { return count_; }

    /// A new core with every record applied.
    [[nodiscard]] tuner::Tuner replay(const study::StudySpec& spec) const {
        tuner::Tuner tuner(spec);
        study::Decoder in(bytes_);
        while (!in.empty()) tuner.apply(study::decode_record(in));
        return tuner;
    }

  private:
    study::Bytes bytes_;
    std::uint64_t count_ = 0;
};

void check_end(const tuner::State& state, const std::set<std::string>& files, std::vector<std::string>& problems) {
    if (!state.ended) problems.push_back("the study never ended");
    for (std::size_t i = 0; i < state.trials.size(); ++i) {
        const auto& trial = state.trials[i];
        if (!study::is_final(trial.phase))
            problems.push_back("trial " + std::to_string(i) + " is left " + std::string(study::name(trial.phase)));
        for (const auto& checkpoint : trial.checkpoints)
            if (!files.contains(checkpoint.path)) problems.push_back("the kept " + checkpoint.path + " is missing");
    }
}

/// After a life that left the study resumable: nothing may pretend to run.
void check_between(const tuner::State& state, bool head_lived, std::vector<std::string>& problems) {
    if (!head_lived || !state.ended) return; // cut off in the middle: the next life takes care of it
    for (std::size_t i = 0; i < state.trials.size(); ++i)
        if (const auto phase = state.trials[i].phase;
            phase == study::TrialPhase::running || phase == study::TrialPhase::ending)
            problems.push_back("trial " + std::to_string(i) + " is left " + std::string(study::name(phase)));
}

void add(const ClusterResult& life, const ClusterOptions& options, CaseResult& result) {
    ++result.lives;
    result.steps += life.steps;
    result.messages += life.messages;
    result.faults += life.faults;
    result.attempts += life.attempts;
    result.virtual_seconds += base::to_seconds(life.elapsed);
    if (!life.head) ++result.heads_killed;
    result.ranks_lost += static_cast<std::uint64_t>(std::count(life.workers.begin(), life.workers.end(), std::nullopt));
    for (const std::string& problem : life.problems)
        result.problems.push_back("life " + std::to_string(options.incarnation.value()) + ": " + problem);
}

void run_lives(const Case& drawn, CaseResult& result) {
    MemoryJournal journal;
    std::set<std::string> files;
    tuner::Tuner tuner(drawn.spec);
    tuner::Output created;
    tuner.create("00000000-0000-4000-8000-000000000000", "", "sim", created);
    journal.append(created.records);
    for (const ClusterOptions& options : drawn.lives) {
        const ClusterResult life = run_cluster(options, tuner, journal, files);
        add(life, options, result);
        if (tuner.state().in(study::TrialPhase::running) + tuner.state().in(study::TrialPhase::ending) > 0 &&
            life.head && life.head->outcome == StudyOutcome::ok)
            result.problems.push_back("the head ended well with trials running");
        tuner::Tuner replayed = journal.replay(drawn.spec);
        if (replayed.digest() != tuner.digest())
            result.problems.push_back("life " + std::to_string(options.incarnation.value()) +
                                      ": replay gives another state");
        replayed.check_invariants();
        check_between(tuner.state(), life.head.has_value(), result.problems);
        tuner = std::move(replayed);
        // What is written counts: a head may be killed after the end was.
        const tuner::State& state = tuner.state();
        const bool ended = state.ended && state.incarnation == options.incarnation;
        result.outcome = ended ? state.outcome : life.head ? life.head->outcome : StudyOutcome::resumable;
        if ((ended && state.outcome != StudyOutcome::resumable) || !result.problems.empty()) break;
    }
    const tuner::State& state = tuner.state();
    if (result.outcome == StudyOutcome::resumable) result.problems.push_back("an undisturbed life ended as resumable");
    check_end(state, files, result.problems);
    result.trials = state.trials.size();
    result.failed_trials = state.in(study::TrialPhase::failed);
    result.records = journal.count();
    result.digest = tuner.digest();
}

} // namespace

CaseResult run_case(std::uint64_t seed) {
    CaseResult result;
    try {
        const Case drawn = draw_case(seed);
        result.description = drawn.description;
        run_lives(drawn, result);
    } catch (const std::exception& error) {
        result.problems.push_back(error.what());
    }
    return result;
}

} // namespace ranktune::drivers::sim
