// SPDX-License-Identifier: Apache-2.0
#include "simulate/cluster/draw.hpp"

#include <algorithm>
#include <initializer_list>

#include "schedulers/built_in.hpp"
#include "searchers/built_in.hpp"

namespace ranktune::simulate {

using base::Duration;
using base::Rank;
using base::RngStream;
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

/// The order of the draws defines the meaning of a seed, so options of all schedulers are drawn each time.
study::SchedulerSpec draw_scheduler(RngStream& rng, base::Iteration ceiling) {
    const std::string_view name = pick<std::string_view>(rng, {"fifo", "asha", "asha", "asha", "median"});
    const bool stops = pick(rng, {false, true});
    const double eta = pick(rng, {2.0, 3.0, 4.0});
    const double first_rung = pick(rng, {1.0, 1.0, 2.0});
    const int finish_top = pick(rng, {0, 1, 2});
    const bool ray = stops && pick(rng, {false, true});
    const int brackets = stops ? pick(rng, {1, 1, 2}) : 1;
    const bool restart_paused = chance(rng, 0.1);
    const bool hard_stop = chance(rng, 0.5);
    const double grace = pick(rng, {1.0, 2.0});
    const int min_samples = pick(rng, {1, 3});
    if (name == "asha")
        return schedulers::chosen(name, {{"variant", stops ? "stop" : "promote"},
                                         {"rule", ray ? "ray" : "floor"},
                                         {"eta", eta},
                                         {"first_rung", std::min(first_rung, static_cast<double>(ceiling))},
                                         {"brackets", brackets},
                                         {"finish_top", finish_top},
                                         {"restart_paused", restart_paused}});
    if (name == "median")
        return schedulers::chosen(name, {{"grace", grace}, {"min_samples", min_samples}, {"hard_stop", hard_stop}});
    return schedulers::chosen(name);
}

} // namespace

std::string scheduler_text(const study::SchedulerSpec& scheduler) {
    const auto is = [&](const char* option, const char* word) {
        return scheduler.options.at(option).as_string() == word;
    };
    const std::string& name = scheduler.algorithm->name;
    if (name == "pbt") return name + (scheduler.options.at("synchronous").as_bool() ? " synchronous" : "");
    if (name == "median") return name + (scheduler.options.at("hard_stop").as_bool() ? "" : " pause");
    if (name != "asha") return name;
    if (scheduler.options.at("delayed").as_bool()) return "asha delayed";
    const std::string rule = is("allotment", "budget") ? " budget" : is("rule", "ray") ? " ray" : "";
    return (is("variant", "promote") ? "asha promote" : "asha stop") + rule;
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
    spec.searcher = searchers::chosen(pick<std::string_view>(rng, {"random", "sobol"}));
    spec.scheduler = draw_scheduler(rng, spec.max_iterations);
    if (chance(rng, 0.1)) spec.stop.metrics.push_back({"score", 0.6, study::Mode::max});
    if (chance(rng, 0.1)) spec.stop.plateau = study::PlateauStop{"score", 0.02, 3, 3, {}};
    if (chance(rng, 0.1)) spec.stop.trial_time = between(rng, 1s, 5s);
    if (chance(rng, 0.1)) spec.time_budget = between(rng, 5s, 60s);
    spec.checkpoint.keep = pick(rng, {0U, 1U, 1U, 3U});
    if (chance(rng, 0.2))
        spec.checkpoint.max_bytes = 1000 * (1 + rng.below(20)); // checkpoints of CurveWorld have 1000 bytes each
    return spec;
}

ClusterOptions draw_life(RngStream& rng, std::uint32_t workers) {
    ClusterOptions life;
    life.workers = workers;
    life.seed = rng();
    life.wires.max_delay = pick<Duration>(rng, {0us, 100us, 10ms, 300ms});
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

void draw_gpus(RngStream& rng, study::StudySpec& spec, std::vector<ClusterOptions>& lives) {
    if (spec.resources.ranks_parameter.empty()) return;
    const std::uint32_t most = spec.max_ranks_per_trial();
    spec.resources.gpus = study::GpuUse::some;
    spec.resources.ranks = pick(rng, {1U, 1U, 2U});
    std::vector<space::Parameter> parameters = spec.space.parameters();
    parameters.back().domain = space::IntRange{0, most, false, 1};
    spec.space = space::SearchSpace(std::move(parameters));
    for (ClusterOptions& life : lives) {
        life.workers = std::max(life.workers, most + spec.resources.ranks);
        life.with_gpu = most + static_cast<std::uint32_t>(rng.below(life.workers - most - spec.resources.ranks + 1));
    }
}

namespace {

study::SchedulerSpec draw_population(RngStream& rng) {
    const bool synchronous = chance(rng, 0.4);
    const bool latest = !synchronous && chance(rng, 0.5);
    auto scheduler = schedulers::chosen("pbt", {{"interval", static_cast<std::int64_t>(1 + rng.below(4))},
                                                {"selection", pick(rng, {"truncation", "tournament", "t_test"})},
                                                {"synchronous", synchronous},
                                                {"compare", latest ? "latest" : "equal_iteration"}});
    scheduler.explore = {{"lr", {0.8, 1.2}}};
    return scheduler;
}

study::SchedulerSpec draw_brackets(RngStream& rng) {
    using schedulers::chosen;
    const auto eta = pick<std::int64_t>(rng, {2, 3, 4});
    const bool restart_paused = chance(rng, 0.1);
    switch (rng.below(4)) {
        case 0:
            return chosen("hyperband", {{"eta", eta}, {"table", pick(rng, {"floor", "formula"})}});
        case 1:
            return chosen("topk", {{"first", pick<std::int64_t>(rng, {1, 2})},
                                   {"k", pick<std::int64_t>(rng, {1, 3})},
                                   {"restart_paused", restart_paused}});
        case 2:
            return chosen("asha", {{"eta", eta}, {"delayed", true}, {"restart_paused", restart_paused}});
        default:
            return chosen(
                "asha",
                {{"variant", pick(rng, {"stop", "promote"})}, {"brackets", std::int64_t{2}}, {"allotment", "budget"}});
    }
}

} // namespace

void draw_breadth(RngStream& rng, study::StudySpec& spec) {
    spec.num_trials = std::max(spec.num_trials, 3U);
    spec.max_iterations = std::max<base::Iteration>(spec.max_iterations, 9);
    spec.scheduler = chance(rng, 0.4) ? draw_population(rng) : draw_brackets(rng);
}

void draw_limit(RngStream& rng, study::StudySpec& spec) {
    if (!spec.checkpoint.max_bytes && chance(rng, 0.5))
        spec.checkpoint.max_bytes = 1000 * (1 + rng.below(2 * std::uint64_t{spec.num_trials}));
}

void draw_side_tasks(RngStream& rng, study::StudySpec& spec, std::vector<ClusterOptions>& lives) {
    if (chance(rng, 0.5)) spec.before.command = "prepare";
    if (chance(rng, 0.7)) spec.after_trial.command = chance(rng, 0.7) ? "evaluate {checkpoint}" : "evaluate";
    if (chance(rng, 0.5)) spec.after.command = "plot";
    if (chance(rng, 0.5)) spec.failure.max_failures = 1;
    if (!chance(rng, 0.4)) return;
    spec.resources.helpers = 1;
    for (ClusterOptions& life : lives) ++life.workers;
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
    life.curve.unreadable_rate = pick(rng, {0.0, 0.0, 0.3});
    life.curve.unreachable_rate = pick(rng, {0.0, 0.0, 0.3});
    life.curve.resize_rate = pick(rng, {0.0, 0.0, 0.2});
}

} // namespace ranktune::simulate
