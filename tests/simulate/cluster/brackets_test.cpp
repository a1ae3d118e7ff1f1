// SPDX-License-Identifier: Apache-2.0
// HyperBand and the baseline "topk" in simulated jobs whose processes are killed.

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lives.hpp"
#include "schedulers/built_in.hpp"
#include "schedulers/halving/bracket_table.hpp"
#include "searchers/built_in.hpp"
#include "support/catch.hpp"

namespace brackets_test {

using namespace ranktune;
using namespace ranktune::simulate;
using namespace std::chrono_literals;

namespace {

study::StudySpec study_of(std::uint32_t trials, const std::string& scheduler,
                          const std::vector<study::OptionValue>& settings = {}) {
    study::StudySpec spec;
    spec.name = "brackets";
    spec.objective = {"score", study::Mode::max};
    spec.num_trials = trials;
    spec.max_iterations = 27;
    spec.space = space::SearchSpace({{"lr", space::FloatRange{0.01, 1.0, true, 0.0}, {}}});
    spec.searcher = searchers::chosen("random");
    spec.scheduler = schedulers::chosen(scheduler, settings);
    spec.failure.tolerate = 1.0;
    spec.failure.max_losses = 100;
    return spec;
}

base::Duration after(double seconds) {
    return base::from_ns(static_cast<std::int64_t>(seconds * 1e9)) - base::StudyTime{};
}

void check_end(const Lives& lives) {
    for (const std::string& problem : lives.problems) UNSCOPED_INFO(problem);
    CHECK(lives.problems.empty());
    CHECK(lives.outcome == study::StudyOutcome::ok);
    for (const auto& trial : lives.tuner->state().trials) CHECK(study::is_final(trial.phase));
    // What nobody needs any more is gone: the checkpoints of the best trial are left, and those of trials that may be
    // tried again.
    const auto& best = lives.tuner->state().trial(*lives.tuner->state().best);
    for (const auto& trial : lives.tuner->state().trials)
        if (&trial != &best && trial.phase != study::TrialPhase::failed) CHECK(trial.checkpoints.empty());
}

/// Trials that reported at the ceiling, by bracket.
std::map<std::uint32_t, std::uint64_t> at_the_ceiling(const Lives& lives) {
    std::map<std::uint32_t, std::uint64_t> trained;
    for (const auto& trial : lives.tuner->state().trials)
        if (trial.iteration == 27) ++trained[trial.bracket];
    return trained;
}

} // namespace

TEST_CASE("HyperBand trains as many to the end as its table says, whichever process dies", "[sim][hyperband]") {
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
        INFO("seed " << seed);
        const bool floor = seed % 3 == 0; // 27/9/6/4 or 27/12/6/4 trials, of which 1/1/2/4 are trained to the end
        study::StudySpec spec = study_of(floor ? 46 : 49, "hyperband", {{"table", floor ? "floor" : "formula"}});
        spec.seed = seed;
        ClusterOptions options;
        options.workers = static_cast<std::uint32_t>(seed % 7 + 1);
        options.seed = seed;
        options.curve.fate = seed;
        options.curve.unreadable_rate = 0.02;
        if (options.workers > 2) options.deaths.emplace_back(base::Rank{2}, 4s);
        Lives lives;
        lives.run([&] { return std::make_unique<tuner::Tuner>(spec); }, options,
                  {after(0.9 + 0.1 * static_cast<double>(seed)), 5s});
        check_end(lives);
        CHECK(at_the_ceiling(lives) == std::map<std::uint32_t, std::uint64_t>{{0, 1}, {1, 1}, {2, 2}, {3, 4}});
    }
}

TEST_CASE("HyperBand comes to its end with trials that throw, become NaN, and end on their own", "[sim][hyperband]") {
    std::size_t failed = 0;
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
        INFO("seed " << seed);
        const char* const name = seed % 2 == 0 ? "hyperband" : "topk";
        study::StudySpec spec = study_of(60, name);
        spec.seed = seed;
        spec.failure.in_a_row = 1000;
        ClusterOptions options;
        options.workers = 5;
        options.seed = seed;
        options.curve.fate = seed;
        options.curve.throw_rate = 0.3;
        options.curve.nan_rate = 0.1;
        options.curve.done_rate = 0.1;
        Lives lives;
        lives.run([&] { return std::make_unique<tuner::Tuner>(spec); }, options, {3s});
        check_end(lives);
        // The one that topk chose may end on its own before the ceiling: nobody takes its place then.
        CHECK(std::ranges::any_of(lives.tuner->state().trials, [&](const auto& trial) {
            return trial.phase == study::TrialPhase::finished && trial.iteration > 1 &&
                   (trial.iteration == 27 || seed % 2 == 1);
        }));
        failed += static_cast<std::size_t>(std::ranges::count_if(
            lives.tuner->state().trials, [](const auto& trial) { return trial.phase == study::TrialPhase::failed; }));
    }
    CHECK(failed > 50);
}

TEST_CASE("Deterministic brackets decide the same on any number of ranks, and after kills", "[sim][hyperband]") {
    for (const char* name : {"hyperband", "topk"}) {
        std::vector<std::string> expected;
        study::StudySpec spec = study_of(60, name);
        spec.deterministic = true;
        spec.max_concurrent = 4;
        for (const std::uint32_t workers : {1U, 2U, 4U, 7U}) {
            for (const bool killed : {false, true}) {
                INFO(name << " with " << workers << " workers" << (killed ? ", with kills" : ""));
                ClusterOptions options;
                options.workers = workers;
                options.seed = 100 + workers;
                options.curve.fate = 1;
                options.curve.throw_rate = 0.1;
                Lives lives;
                lives.run([&] { return std::make_unique<tuner::Tuner>(spec); }, options,
                          killed ? std::vector<base::Duration>{700ms, 2500ms} : std::vector<base::Duration>{});
                check_end(lives);
                std::vector<std::string> decided;
                for (const auto& trial : lives.tuner->state().trials)
                    decided.push_back(std::to_string(trial.bracket) + ":" + std::to_string(trial.iteration) + " " +
                                      std::string(study::name(trial.phase)));
                if (expected.empty()) expected = decided;
                CHECK(decided == expected);
            }
        }
    }
}

} // namespace brackets_test
