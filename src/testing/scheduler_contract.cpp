// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <limits>
#include <memory>
#include <vector>

#include "ranktune/base/error.hpp"
#include "ranktune/study/parse.hpp"
#include "ranktune/testing/contract.hpp"
#include "searchers/built_in.hpp"
#include "testing/rules.hpp"
#include "testing/scheduler_world.hpp"
#include "testing/settings.hpp"

namespace ranktune::testing {
namespace {

using base::Iteration;

/// A new scheduler that only applied the records must have the same snapshot.
void check_replay(const World& world) {
    const auto fresh = schedulers::make_scheduler(world.driver().spec());
    for (const auto& record : world.records()) fresh->apply(record);
    fresh->check_invariants();
    study::Bytes bytes;
    study::Encoder out(bytes);
    fresh->snapshot(out);
    require(bytes == world.driver().snapshot(), "a scheduler that only saw the records has the same snapshot");
}

void check_random_histories(const study::StudySpec& spec) {
    const bool may_be_deterministic = !schedulers::make_scheduler(spec)->exploits() &&
                                      !study::not_deterministic(*spec.scheduler.algorithm, spec.scheduler.options);
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        WorldOptions options;
        options.seed = seed;
        options.reopening = 0.5;
        options.by_turn = seed > 6 && may_be_deterministic;
        if (options.by_turn) options.drain = 0.0;
        options.slots = seed % 4 == 0 ? 1 : static_cast<std::uint32_t>(3 * seed % 13 + 1);
        World world(spec, options);
        world.run();
        check_replay(world);
    }
}

/// The study must end, whatever the trials report.
void check_values(const study::StudySpec& spec) {
    const auto calm = [&](auto value) {
        WorldOptions options;
        options.loss = options.failure = options.stopper = options.drain = options.restart = 0.0;
        options.value = value;
        World(spec, options).run();
    };
    for (const double value : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity(), 0.0, 1e308, -1e308, 5e-324})
        calm([value](TrialId, Iteration, base::RngStream&) { return value; });
    for (const double slope : {1.0, -1.0}) // every trial better, or worse, than all before it
        calm([slope](TrialId trial, Iteration, base::RngStream&) { return slope * trial.value(); });
}

void check_failures(const study::StudySpec& spec) {
    WorldOptions options;
    options.reopening = 0.5;
    options.failure = 0.5;
    World often(spec, options);
    often.run();
    options.failure = 1.0;
    World always(spec, options);
    always.run();
    require(always.iterations() == 0, "a trial that always fails never reports");
    options.failure = 0.0;
    options.loss = 0.4;
    World lossy(spec, options);
    lossy.run();
}

/// Whether the bytes are refused; an accepted state must be consistent.
bool refuses(const SchedulerDriver& driver, const study::Bytes& bytes) {
    try {
        driver.restored(bytes)->check_invariants();
        return false;
    } catch (const base::FormatError&) {
        return true;
    }
}

/// A damaged snapshot must be refused or give another consistent state; it must not crash.
void check_damage(const study::StudySpec& spec) {
    WorldOptions options;
    options.trials = 12;
    options.checked = false;
    World world(spec, options);
    world.run();
    const auto bytes = world.driver().snapshot();
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        require(refuses(world.driver(), {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}),
                "a snapshot that is cut off is refused with a base::FormatError");
    }
    std::size_t refused = 0;
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        auto damaged = bytes;
        damaged[at] ^= std::byte{0x41};
        if (refuses(world.driver(), damaged)) ++refused;
    }
    require(bytes.empty() || refused > 0, "a snapshot of another version is refused with a base::FormatError");
}

/// More trials, without checks after every record.
void check_many_trials(const study::StudySpec& spec) {
    WorldOptions options;
    options.trials = 300;
    options.slots = 8;
    options.checked = false;
    World world(spec, options);
    world.run();
    world.driver().scheduler().check_invariants();
}

// ---- the scheduler's description

void check_words(const study::StudySpec& spec) {
    const auto scheduler = schedulers::make_scheduler(spec);
    require(scheduler->name() == spec.scheduler.algorithm->name, "the scheduler has the name of its description");
    const bool uses_them = scheduler->pauses() || scheduler->exploits();
    require(uses_them || !study::needs_checkpoints(spec.scheduler),
            "a scheduler that needs checkpoints pauses trials, or exploits them");
    require(!uses_them || spec.scheduler.algorithm->needs_checkpoints,
            "the description of a scheduler that pauses or exploits trials says when it needs checkpoints");
    require(!scheduler->synchronous() || study::not_deterministic(*spec.scheduler.algorithm, spec.scheduler.options),
            "the description of a scheduler that is synchronous says that it is not deterministic");
}

void check_plan(const study::StudySpec& spec) {
    if (!spec.scheduler.algorithm->plan) return;
    const study::SchedulerPlan plan = spec.scheduler.algorithm->plan(spec);
    Iteration before = 0;
    for (const auto& rung : plan.rungs) {
        require(rung.iteration > before, "the rungs of the plan ascend");
        before = rung.iteration;
    }
    require(plan.rungs.empty() || before == spec.max_iterations, "the last rung of the plan is the ceiling");
    require(plan.iterations <= std::uint64_t{spec.num_trials} * spec.max_iterations,
            "the plan has no more iterations than all trials together");
    require(plan.paused_checkpoints == 0 || study::needs_checkpoints(spec.scheduler),
            "only a scheduler that needs checkpoints plans with them");
}

study::StudySpec study_with(const study::SchedulerInfo& info, const Settings& settings, Iteration ceiling) {
    study::StudySpec spec;
    spec.name = "contract";
    spec.objective.metric = "score";
    spec.num_trials = WorldOptions{}.trials;
    spec.max_iterations = ceiling;
    spec.seed = 3;
    spec.trainable.name = "contract";
    spec.space = space::SearchSpace(
        {{"lr", space::FloatRange{0.01, 1.0, true, 0.0}, {}}, {"width", space::IntRange{1, 64, false, 1}, {}}});
    spec.searcher = searchers::chosen("random");
    spec.scheduler = study::chosen(std::make_shared<const study::SchedulerInfo>(info), settings);
    if (info.explores) spec.scheduler.explore = {{"lr", {0.8, 1.2}}, {"width", {}}};
    if (info.schedules) spec.scheduler.schedule = {{"lr", {{2, 0.5}, {7, 0.05}}}, {"width", {{2, 3}}}};
    return spec;
}

void check_rules(BrokenRules& broken, const std::string& where, study::StudySpec spec, bool must_parse) {
    for (const auto mode : {study::Mode::max, study::Mode::min}) {
        spec.objective.mode = mode;
        broken.look(where, [&] { check_random_histories(spec); });
        broken.look(where, [&] { check_values(spec); });
        broken.look(where, [&] { check_failures(spec); });
    }
    broken.look(where, [&] { check_damage(spec); });
    broken.look(where, [&] { check_many_trials(spec); });
    broken.look(where, [&] { check_words(spec); });
    broken.look(where, [&] { check_resolved(spec, must_parse && spec.max_iterations == 20); });
    broken.look(where, [&] { check_plan(spec); });
}

/// A default may be too large for a study with few iterations.
bool works(const study::StudySpec& spec) {
    try {
        study::check_options(spec.scheduler, spec);
        return true;
    } catch (const base::UsageError&) {
        return false;
    }
}

} // namespace

std::vector<std::string> check_scheduler(const study::SchedulerInfo& info, const std::vector<Settings>& more) {
    const auto check = [&](BrokenRules& broken, const Settings& settings) {
        for (const Iteration ceiling :
             settings.empty() ? std::vector<Iteration>{20, 5, 1} : std::vector<Iteration>{20}) {
            const std::string where = info.name + settings_text(settings) + " with " + std::to_string(ceiling) +
                                      (ceiling == 1 ? " iteration" : " iterations");
            study::StudySpec spec = study_with(info, settings, ceiling);
            if (ceiling == 20 || works(spec)) check_rules(broken, where, std::move(spec), settings.empty());
        }
    };
    return broken_rules(info, more, "the defaults work in a study of 20 iterations", check);
}

} // namespace ranktune::testing
