// SPDX-License-Identifier: Apache-2.0
#include "contract/schedulers/scheduler_contract.hpp"

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "contract/schedulers/world.hpp"
#include "support/catch.hpp"

namespace ranktune::contract {
namespace {

using base::Iteration;
using base::TrialId;

/// Equal snapshots from the same records, in a scheduler that never decided anything.
void check_replay(const study::StudySpec& spec, const World& world) {
    const auto fresh = schedulers::make_scheduler(spec);
    for (const auto& record : world.records()) fresh->apply(record);
    fresh->check_invariants();
    study::Bytes bytes;
    study::Encoder out(bytes);
    fresh->snapshot(out);
    CHECK(bytes == world.driver().snapshot());
}

void check_random_histories(const study::StudySpec& spec) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        WorldOptions options;
        options.seed = seed;
        options.slots = seed % 4 == 0 ? 1 : static_cast<std::uint32_t>(3 * seed % 13 + 1);
        World world(spec, options);
        REQUIRE_NOTHROW(world.run());
        check_replay(spec, world);
    }
}

void check_values(const study::StudySpec& spec) {
    const auto calm = [](auto value) {
        WorldOptions options;
        options.loss = options.failure = options.stopper = options.drain = options.restart = 0.0;
        options.value = value;
        return options;
    };
    // Whatever all trials report, the study ends, and at least one trial is trained to the ceiling when nothing fails
    // (the equal ones because ties go to somebody).
    for (const double value : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity(), 0.0, 1e308, -1e308, 5e-324}) {
        World world(spec, calm([value](TrialId, Iteration, base::RngStream&) { return value; }));
        REQUIRE_NOTHROW(world.run());
        CHECK(world.reached_ceiling() > 0);
    }
    for (const double slope : {1.0, -1.0}) { // every trial better, or worse, than those before it
        World world(spec, calm([slope](TrialId trial, Iteration, base::RngStream&) { return slope * trial.value(); }));
        REQUIRE_NOTHROW(world.run());
        CHECK(world.reached_ceiling() > 0);
    }
}

void check_failures(const study::StudySpec& spec) {
    WorldOptions options;
    options.failure = 0.5;
    World often(spec, options);
    REQUIRE_NOTHROW(often.run());
    options.failure = 1.0;
    World always(spec, options);
    REQUIRE_NOTHROW(always.run());
    CHECK(always.iterations() == 0);
    options.failure = 0.0;
    options.loss = 0.4;
    World lossy(spec, options);
    REQUIRE_NOTHROW(lossy.run());
}

/// Damage is refused, or makes another sound state; it never crashes.
void check_damage(const study::StudySpec& spec) {
    WorldOptions options;
    options.trials = 12;
    options.checked = false;
    World world(spec, options);
    world.run();
    const auto bytes = world.driver().snapshot();
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        CHECK_THROWS_AS(world.driver().restored({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}),
                        base::FormatError);
    }
    std::size_t refused = 0;
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        auto damaged = bytes;
        damaged[at] ^= std::byte{0x41};
        try {
            world.driver().restored(damaged)->check_invariants();
        } catch (const base::FormatError&) {
            ++refused;
        }
    }
    CHECK(refused > 0);
}

/// More trials, without the checks in between.
void check_many_trials(const study::StudySpec& spec) {
    WorldOptions options;
    options.trials = 300;
    options.slots = 8;
    options.checked = false;
    World world(spec, options);
    REQUIRE_NOTHROW(world.run());
    CHECK_NOTHROW(world.driver().scheduler().check_invariants());
}

} // namespace

void check_scheduler(study::StudySpec spec) {
    for (const auto mode : {study::Mode::max, study::Mode::min}) {
        spec.objective.mode = mode;
        check_random_histories(spec);
        check_values(spec);
        check_failures(spec);
    }
    check_damage(spec);
    check_many_trials(spec);
}

} // namespace ranktune::contract
