// SPDX-License-Identifier: Apache-2.0
#include "simulate/cluster/deterministic.hpp"

#include <algorithm>
#include <exception>

#include "ranktune/base/digest.hpp"
#include "ranktune/study/schema.hpp"
#include "schedulers/built_in.hpp"
#include "simulate/cluster/draw.hpp"
#include "simulate/cluster/memory_journal.hpp"

namespace ranktune::simulate {
namespace {

using study::StudyOutcome;

constexpr std::uint32_t lives_with_faults = 4;

/// All logical records in journal order: stronger than a digest per trial.
class Sequence {
  public:
    void add(const study::Record& record) {
        study::Encoder out(bytes_);
        if (const auto* metric = std::get_if<study::MetricDefined>(&record)) {
            metrics_.push_back(metric->name);
        } else if (const auto* created = std::get_if<study::TrialCreated>(&record)) {
            head(out, 1, created->trial);
            study::put(out, created->configuration);
        } else if (const auto* report = std::get_if<study::Reported>(&record)) {
            head(out, 2, report->trial);
            out.varint(report->iteration);
            for (const auto& value : report->metrics) {
                out.string(metrics_.at(value.id.value()));
                out.f64(value.value);
            }
            study::put(out, report->verdict);
            ++reports_;
        } else if (const auto* promoted = std::get_if<study::TrialPromoted>(&record)) {
            head(out, 3, promoted->trial);
            out.varint(promoted->from);
            out.varint(promoted->target);
        } else if (const auto* closed = std::get_if<study::TrialClosed>(&record)) {
            head(out, 4, closed->trial);
            out.u8(static_cast<std::uint8_t>(closed->phase));
            out.u8(static_cast<std::uint8_t>(closed->reason));
        } else if (const auto* takeover = std::get_if<study::Exploited>(&record)) {
            head(out, 5, takeover->trial);
            out.varint(takeover->iteration);
            out.varint(takeover->donor.trial.value());
            out.varint(takeover->donor.checkpoint.iteration);
            study::put(out, takeover->configuration);
            ++takeovers_;
        } else if (std::holds_alternative<study::ReportHeld>(record)) {
            ++held_;
        } else if (const auto* ended = std::get_if<study::AttemptEnded>(&record)) {
            if (ended->outcome == study::AttemptOutcome::unreadable) ++unreadable_;
            if (ended->outcome == study::AttemptOutcome::unreachable) ++unreachable_;
        }
    }
    [[nodiscard]] std::uint64_t digest() const {
        base::Digest digest;
        digest.add(bytes_);
        return digest.value();
    }
    [[nodiscard]] std::uint64_t reports() const { return reports_; }
    [[nodiscard]] std::uint64_t held() const { return held_; }
    [[nodiscard]] std::uint64_t takeovers() const { return takeovers_; }
    [[nodiscard]] std::uint64_t unreadable() const { return unreadable_; }
    [[nodiscard]] std::uint64_t unreachable() const { return unreachable_; }

  private:
    static void head(study::Encoder& out, std::uint8_t kind, base::TrialId trial) {
        out.u8(kind);
        out.varint(trial.value());
    }
    study::Bytes bytes_;
    std::vector<std::string> metrics_;
    std::uint64_t reports_ = 0;
    std::uint64_t held_ = 0;
    std::uint64_t takeovers_ = 0;
    std::uint64_t unreadable_ = 0;
    std::uint64_t unreachable_ = 0;
};

/// Runs the study over its lives; the last one is undisturbed.
Sequence run(const study::StudySpec& spec, const std::vector<ClusterOptions>& lives, DeterministicResult& result) {
    const std::string name = "run " + std::to_string(++result.runs) + ", ";
    MemoryJournal journal;
    std::set<std::string> files;
    auto tuner = std::make_unique<tuner::Tuner>(spec);
    tuner::Output created;
    tuner->create("00000000-0000-4000-8000-000000000000", "", "sim", created);
    journal.append(created.records);
    bool killed = false;
    for (ClusterOptions life : lives) {
        if (killed) life.death.emplace(); // suspects run one at a time, which must not change the sequence
        const std::string place =
            name + "life " + std::to_string(life.incarnation.value()) + " on " + std::to_string(life.workers) + ": ";
        const ClusterResult lived = run_cluster(life, *tuner, journal, files);
        ++result.lives;
        result.attempts += lived.attempts;
        killed = !lived.head;
        if (killed) ++result.heads_killed;
        result.ranks_lost +=
            static_cast<std::uint64_t>(std::count(lived.workers.begin(), lived.workers.end(), std::nullopt));
        for (const std::string& problem : lived.problems) result.problems.push_back(place + problem);
        auto replayed = journal.replay(spec);
        if (replayed->digest() != tuner->digest()) result.problems.push_back(place + "replay gives another state");
        replayed->check_invariants();
        tuner = std::move(replayed);
        const tuner::State& state = tuner->state();
        const bool ended = state.ended && state.incarnation == life.incarnation;
        if ((ended && state.outcome != StudyOutcome::resumable) || !result.problems.empty()) break;
    }
    const tuner::State& state = tuner->state();
    if (!state.ended || state.outcome == StudyOutcome::resumable)
        result.problems.push_back(name + "the study did not end: " + state.end_message);
    if (state.deterministic_until) result.problems.push_back(name + "the study is marked as disturbed");
    for (const auto& trial : state.trials)
        for (const auto& checkpoint : trial.checkpoints)
            if (!files.contains(checkpoint.path))
                result.problems.push_back(name + "the kept " + checkpoint.path + " is missing");
    Sequence sequence;
    journal.for_each([&sequence](const study::Record& record) { sequence.add(record); });
    result.held += sequence.held();
    result.unreadable += sequence.unreadable();
    result.unreachable += sequence.unreachable();
    return sequence;
}

std::vector<ClusterOptions> draw_lives(base::RngStream& rng, const study::StudySpec& spec, std::uint64_t fate,
                                       const CurveOptions& behaviour, bool fewest) {
    std::vector<ClusterOptions> lives;
    const std::uint32_t least = spec.max_ranks_per_trial();
    for (std::uint32_t i = 0; i <= lives_with_faults; ++i) {
        const std::uint32_t more = fewest ? 0 : static_cast<std::uint32_t>(rng.below(10));
        lives.push_back(draw_life(rng, least + more));
        ClusterOptions& life = lives.back();
        life.incarnation = base::Incarnation(i + 1);
        life.curve.fate = fate;
        life.curve.throw_rate = behaviour.throw_rate;
        life.curve.nan_rate = behaviour.nan_rate;
        life.curve.done_rate = behaviour.done_rate;
        if (i < lives_with_faults)
            draw_deaths(rng, life);
        else
            life.curve.stuck_rate = 0.0;
        // What others take over must be there; a study in which it is not says so.
        if (spec.scheduler.algorithm->explores) life.curve.unreadable_rate = 0.0;
    }
    return lives;
}

void run_all(const study::StudySpec& spec, std::uint64_t seed, std::uint32_t variants, DeterministicResult& result) {
    result.description = scheduler_text(spec.scheduler) + ", " + std::to_string(spec.num_trials) + " trials, R " +
                         std::to_string(spec.max_iterations) + ", " + std::to_string(spec.max_concurrent) +
                         " slots, <= " + std::to_string(spec.max_ranks_per_trial()) + " ranks per trial";
    base::RngStream rng(seed, base::Purpose::fault, 2);
    const CurveOptions behaviour = draw_life(rng, 1).curve;
    ClusterOptions calm;
    calm.workers = spec.max_concurrent * spec.max_ranks_per_trial();
    calm.seed = seed;
    calm.curve.fate = seed;
    calm.curve.throw_rate = behaviour.throw_rate;
    calm.curve.nan_rate = behaviour.nan_rate;
    calm.curve.done_rate = behaviour.done_rate;
    const Sequence reference = run(spec, {calm}, result);
    result.digest = reference.digest();
    result.admitted = reference.reports();
    result.takeovers = reference.takeovers();
    for (std::uint32_t v = 0; v < variants && result.problems.empty(); ++v) {
        const Sequence other = run(spec, draw_lives(rng, spec, seed, behaviour, v == 0), result);
        if (other.digest() != reference.digest())
            result.problems.push_back("run " + std::to_string(result.runs) + " admitted another sequence (" +
                                      std::to_string(other.reports()) + " reports, the first run " +
                                      std::to_string(reference.reports()) + ")");
    }
}

} // namespace

study::StudySpec draw_deterministic_spec(std::uint64_t seed) {
    base::RngStream rng(seed, base::Purpose::fault, 1);
    study::StudySpec spec = draw_spec(rng, 3);
    spec.deterministic = true;
    spec.max_concurrent = 1 + static_cast<std::uint32_t>(rng.below(8));
    spec.time_budget.reset();
    spec.stop.trial_time.reset();
    spec.failure.max_failures = static_cast<std::uint32_t>(rng.below(3));
    spec.failure.max_losses = 1'000'000; // so that only a trial's own faults end it
    return spec;
}

study::StudySpec draw_deterministic_population(std::uint64_t seed) {
    study::StudySpec spec = draw_deterministic_spec(seed);
    base::RngStream rng(seed, base::Purpose::fault, 3);
    spec.num_trials = std::max(spec.num_trials, 3U);
    spec.max_iterations = std::max<base::Iteration>(spec.max_iterations, 9);
    const auto interval = static_cast<std::int64_t>(1 + rng.below(4));
    const char* selections[] = {"truncation", "tournament", "t_test"};
    spec.scheduler = schedulers::chosen("pbt", {{"interval", interval},
                                                {"selection", selections[rng.below(3)]},
                                                {"compare", rng.below(2) == 0 ? "latest" : "equal_iteration"}});
    spec.scheduler.explore = {{"lr", {0.8, 1.2}}};
    return spec;
}

DeterministicResult run_deterministic_case(const study::StudySpec& spec, std::uint64_t seed, std::uint32_t variants) {
    DeterministicResult result;
    try {
        run_all(spec, seed, variants, result);
    } catch (const std::exception& error) {
        result.problems.push_back(error.what());
    }
    return result;
}

} // namespace ranktune::simulate
