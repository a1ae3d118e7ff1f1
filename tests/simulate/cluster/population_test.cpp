// SPDX-License-Identifier: Apache-2.0
// Population-based training in simulated jobs whose processes are killed.

#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "lives.hpp"
#include "schedulers/built_in.hpp"
#include "searchers/built_in.hpp"
#include "simulate/cluster/weights.hpp"
#include "support/catch.hpp"

namespace population_test {

using namespace ranktune;
using namespace ranktune::simulate;
using namespace std::chrono_literals;

namespace {

study::StudySpec population(std::uint32_t members, const std::vector<study::OptionValue>& settings = {}) {
    study::StudySpec spec;
    spec.name = "population";
    spec.objective = {"score", study::Mode::max};
    spec.num_trials = members;
    spec.max_iterations = 30;
    spec.space = space::SearchSpace(
        {{"lr", space::FloatRange{0.01, 1.0, true, 0.0}, {}}, {"width", space::IntRange{1, 3, false, 1}, {}}});
    spec.searcher = searchers::chosen("random");
    spec.scheduler = schedulers::chosen("pbt", settings);
    spec.scheduler.explore = {{"lr", {0.8, 1.2}}};
    spec.failure.tolerate = 1.0;
    spec.failure.max_losses = 100;
    return spec;
}

base::Duration after(double seconds) {
    return base::from_ns(static_cast<std::int64_t>(seconds * 1e9)) - base::StudyTime{};
}

/// What a journal says of every attempt: it begins with the state and the configuration of one and the same generation.
struct Follower {
    struct Member {
        std::vector<space::Configuration> configurations; ///< of each generation
        std::vector<study::Donor> donors;                 ///< of each generation but the first
        std::vector<base::Iteration> exploited_at;        ///< of each generation but the first
    };
    std::string kept; ///< the hyper-parameter that stays each member's own
    std::map<base::TrialId, Member> members;
    std::map<std::string, std::pair<base::TrialId, std::uint32_t>> checkpoints; ///< whose, of which generation
    std::size_t exploits = 0;
    std::size_t undone = 0;
    std::size_t from_donors = 0;
    std::size_t between_sizes = 0; ///< exploits between members of different numbers of ranks
    std::size_t instead = 0;       ///< exploits of another donor, at once after one that was undone
    std::map<base::TrialId, std::pair<base::Iteration, base::TrialId>> lost; ///< newest that was undone: when, whom

    void see(const study::Record& record) {
        std::visit([this](const auto& r) { see_one(r); }, record);
    }
    void see_one(const study::TrialCreated& r) { members[r.trial].configurations = {r.configuration}; }
    void see_one(const study::CheckpointCommitted& r) {
        checkpoints[r.checkpoint.path] = {r.trial, r.checkpoint.generation};
        CHECK(r.checkpoint.generation <= members[r.trial].donors.size());
    }
    void see_one(const study::Exploited& r) {
        ++exploits;
        if (const auto before = lost.find(r.trial); before != lost.end() && before->second.first == r.iteration) {
            CHECK(before->second.second != r.donor.trial);
            ++instead;
        }
        Member& member = members[r.trial];
        const auto& saved = checkpoints.at(r.donor.checkpoint.path);
        CHECK(saved.first == r.donor.trial);
        CHECK(r.donor.trial != r.trial);
        // The newest of what the donor is, not of what it was before an exploit of its own.
        CHECK(saved.second == members[r.donor.trial].donors.size());
        const auto& donors = members[r.donor.trial].configurations.back();
        const auto& whose = kept.empty() ? donors : member.configurations.back();
        CHECK(r.configuration.at("width").as_int() == whose.at("width").as_int());
        if (donors.at("width").as_int() != r.configuration.at("width").as_int()) ++between_sizes;
        member.configurations.push_back(r.configuration);
        member.donors.push_back(r.donor);
        CHECK(member.donors.size() == r.generation);
        CHECK((member.exploited_at.empty() || r.iteration > member.exploited_at.back()));
        member.exploited_at.push_back(r.iteration);
    }
    void see_one(const study::ExploitUndone& r) {
        ++undone;
        Member& member = members[r.trial];
        REQUIRE(member.donors.size() == r.generation + 1);
        lost[r.trial] = {member.exploited_at.back(), member.donors.back().trial};
        member.donors.pop_back();
        member.configurations.pop_back();
        member.exploited_at.pop_back();
    }
    void see_one(const study::TrialStarted& r) {
        const Member& member = members[r.trial];
        if (const auto* own = std::get_if<study::CheckpointRef>(&r.from)) {
            CHECK(checkpoints.at(own->path) == std::pair{r.trial, static_cast<std::uint32_t>(member.donors.size())});
        } else if (const auto* donor = std::get_if<study::Donor>(&r.from)) {
            ++from_donors;
            REQUIRE(!member.donors.empty());
            CHECK(donor->checkpoint.path == member.donors.back().checkpoint.path);
        } else {
            CHECK(member.donors.empty());
        }
    }
    template <class Other>
    void see_one(const Other&) {}
};

Follower follow(const Lives& lives, const std::string& kept) {
    Follower follower;
    follower.kept = kept;
    lives.journal.for_each([&](const study::Record& record) { follower.see(record); });
    return follower;
}

/// The study with this seed among failures of all kinds: unreadable checkpoints, a dead worker, two dead heads.
Lives harsh_lives(study::StudySpec& spec, std::uint64_t seed) {
    spec.seed = seed;
    if (seed % 4 < 2) spec.resources.ranks_parameter = "width"; // groups of 1 to 3 ranks
    ClusterOptions options;
    options.workers = seed % 5 == 0 ? 36 : 6; // all members at once, or in turns
    options.seed = seed;
    options.curve.unreadable_rate = 0.05;
    options.curve.fate = seed;
    if (seed % 2 == 0) options.deaths.emplace_back(base::Rank{2}, 4s);
    Lives lives;
    lives.run([&] { return std::make_unique<tuner::Tuner>(spec); }, options,
              {after(0.9 + 0.1 * static_cast<double>(seed)), 5s});
    return lives;
}

struct Totals {
    std::size_t exploits = 0;
    std::size_t from_donors = 0;
    std::size_t undone = 0;
    std::size_t between_sizes = 0;
    std::size_t instead = 0;
    std::size_t turns = 0;
};

void check(const Lives& lives, const std::string& kept, Totals& totals) {
    for (const std::string& problem : lives.problems) UNSCOPED_INFO(problem);
    CHECK(lives.problems.empty());
    CHECK(lives.outcome == study::StudyOutcome::ok);
    for (const std::string& wrong : wrong_schedules(lives.journal, lives.tuner->spec())) FAIL_CHECK(wrong);
    const Follower follower = follow(lives, kept);
    totals.exploits += follower.exploits;
    totals.from_donors += follower.from_donors;
    totals.undone += follower.undone;
    totals.between_sizes += follower.between_sizes;
    totals.instead += follower.instead;
    for (const auto& report : lives.all<study::Reported>())
        if (report.verdict.reason == study::Reason::turn) ++totals.turns;
    for (const auto& trial : lives.tuner->state().trials) {
        CHECK(trial.phase == study::TrialPhase::finished);
        CHECK(trial.iteration == 30);
    }
    // What nobody needs any more is gone: the checkpoints of the best trial are left.
    for (const auto& trial : lives.tuner->state().trials)
        if (&trial != &lives.tuner->state().trial(*lives.tuner->state().best)) CHECK(trial.checkpoints.empty());
}

} // namespace

TEST_CASE("A population gets to its end, whoever dies, and nobody trains a mixture of two members", "[sim][pbt]") {
    Totals totals;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        INFO("seed " << seed);
        const char* selections[] = {"truncation", "tournament", "t_test"};
        study::StudySpec spec = population(12, {{"interval", 3},
                                                {"selection", selections[seed % 3]},
                                                {"compare", seed % 2 == 0 ? "equal_iteration" : "latest"}});
        const Lives lives = harsh_lives(spec, seed);
        check(lives, spec.resources.ranks_parameter, totals);
    }
    // Otherwise the cases are too tame to mean anything.
    CHECK(totals.exploits > 200);
    CHECK(totals.from_donors > 200);
    CHECK(totals.undone > 5);
    CHECK(totals.instead > 0);
    CHECK(totals.between_sizes > 20);
    CHECK(totals.turns > 100);
}

TEST_CASE("A population whose states find no room goes on from those that are left, and says so", "[sim][pbt]") {
    Totals totals;
    std::size_t evicted = 0;
    std::size_t again = 0;
    std::size_t trained = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        INFO("seed " << seed);
        study::StudySpec spec = population(12, {{"interval", 3}, {"synchronous", seed % 3 == 2}});
        spec.checkpoint.max_bytes = 1000 * (1 + seed % 16); // a state has 1000
        spec.seed = seed;
        ClusterOptions options;
        options.workers = 4;
        options.seed = seed;
        options.curve.save_every = seed % 2 == 0 ? 0 : 1;
        Lives lives;
        lives.run([&] { return std::make_unique<tuner::Tuner>(spec); }, options, {after(4.0)});
        check(lives, "", totals);
        for (const auto& undone : lives.all<study::ExploitUndone>()) CHECK(undone.why == study::StateLoss::evicted);
        evicted += lives.all<study::ExploitUndone>().size();
        for (const auto& started : lives.all<study::TrialStarted>())
            if (started.attempt > base::AttemptId{1} && std::holds_alternative<study::Fresh>(started.from)) ++again;
        trained += lives.all<study::Reported>().size();
    }
    CHECK(evicted > 50);
    CHECK(totals.exploits > 200);
    // Members whose states are gone take over those of others, and do not train again what they had trained.
    CHECK(again < 40 * 12);
    CHECK(trained < 2 * 40 * 12 * 30);
}

namespace {

/// What a journal says of barriers: nobody goes on before all have arrived that can.
struct Barriers {
    static constexpr base::Iteration interval = 3;
    std::map<base::Iteration, std::size_t> held;     ///< how many reports, at each barrier
    std::map<base::Iteration, std::size_t> verdicts; ///< on these
    std::size_t exact = 0;                           ///< exploits of the donor's state at the same barrier
    std::size_t other = 0;                           ///< of one that it had before, or (who comes late) after
    std::size_t yields = 0;

    void see(const study::Record& record) {
        if (const auto* early = std::get_if<study::ReportHeld>(&record)) {
            CHECK(early->iteration % interval == 0);
            CHECK(verdicts[early->iteration] == 0); // who comes later is judged at once
            ++held[early->iteration];
        } else if (const auto* report = std::get_if<study::Reported>(&record)) {
            const bool at_barrier = report->iteration % interval == 0 && report->iteration < 30;
            if (at_barrier && report->verdict.reason != study::Reason::below_rung) ++verdicts[report->iteration];
        } else if (const auto* takeover = std::get_if<study::Exploited>(&record)) {
            ++(takeover->donor.checkpoint.iteration == takeover->iteration ? exact : other);
        } else if (std::holds_alternative<study::YieldAsked>(record)) {
            ++yields;
        }
    }
};

Barriers barriers_of(const Lives& lives) {
    Barriers barriers;
    lives.journal.for_each([&](const study::Record& record) { barriers.see(record); });
    return barriers;
}

} // namespace

TEST_CASE("In a synchronous population nobody goes on before all are there, on any number of ranks", "[sim][pbt]") {
    const char* selections[] = {"truncation", "tournament", "t_test"};
    const std::pair<std::uint32_t, bool> cases[] = {{1, false}, {5, false}, {5, true}, {12, false}, {12, true}};
    for (const auto& [workers, program] : cases) { // a program saves its state only when it pauses
        for (const char* selection : selections) {
            INFO(workers << " workers, " << selection << (program ? ", a program" : ""));
            study::StudySpec spec = population(12, {{"interval", 3}, {"selection", selection}, {"synchronous", true}});
            if (program) spec.trainable.program.emplace();
            ClusterOptions options;
            options.workers = workers;
            Lives lives;
            lives.run([&] { return std::make_unique<tuner::Tuner>(spec); }, options, {});
            Totals totals;
            check(lives, "", totals);
            const Barriers barriers = barriers_of(lives);
            CHECK(barriers.held.size() == 9); // 3, 6, ... 27
            for (const auto& [iteration, reports] : barriers.held) {
                CHECK(reports == 12);
                CHECK(barriers.verdicts.at(iteration) == 12);
            }
            // Whoever takes over a member takes the state that it has at this barrier.
            CHECK(barriers.other == 0);
            if (std::string(selection) == "t_test") continue;
            CHECK(barriers.exact > 10);
            CHECK((barriers.yields > 0) == (workers < 12 || program));
        }
    }
}

TEST_CASE("A synchronous population gets to its end, whoever dies at a barrier or on the way", "[sim][pbt]") {
    Totals totals;
    std::size_t held = 0;
    std::size_t late = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        INFO("seed " << seed);
        const char* selections[] = {"truncation", "tournament", "t_test"};
        study::StudySpec spec =
            population(12, {{"interval", 3}, {"selection", selections[seed % 3]}, {"synchronous", true}});
        if (seed % 7 == 0) spec.max_concurrent = 4;
        const Lives lives = harsh_lives(spec, seed);
        check(lives, spec.resources.ranks_parameter, totals);
        for (const auto& [iteration, reports] : barriers_of(lives).held) {
            held += reports;
            late += 12 - reports;
        }
    }
    CHECK(totals.exploits > 200);
    CHECK(totals.from_donors > 200);
    CHECK(totals.between_sizes > 20);
    CHECK(held > 5000);
    CHECK(late > 0);
}

// ---- What users of Ray Tune have met, and what must not happen here

namespace {

/// Nothing fails, and all members train at once.
Lives quiet_lives(const study::StudySpec& spec) {
    ClusterOptions options;
    options.workers = spec.num_trials;
    options.curve.save_every = 1;
    Lives lives;
    lives.run([&] { return std::make_unique<tuner::Tuner>(spec); }, options, {});
    for (const std::string& problem : lives.problems) UNSCOPED_INFO(problem);
    CHECK(lives.problems.empty());
    CHECK(lives.outcome == study::StudyOutcome::ok);
    return lives;
}

/// By member: the checkpoint that it is to take over, as long as it has no state of its own with the new configuration.
struct Needed {
    std::map<base::TrialId, study::Donor> donors;
    std::map<base::TrialId, std::uint32_t> generations;
    std::size_t released = 0; ///< other checkpoints of donors

    void see(const study::Record& record) {
        if (const auto* taken = std::get_if<study::Exploited>(&record)) {
            donors[taken->trial] = taken->donor;
            generations[taken->trial] = taken->generation;
        } else if (const auto* undone = std::get_if<study::ExploitUndone>(&record)) {
            donors.erase(undone->trial);
        } else if (const auto* closed = std::get_if<study::TrialClosed>(&record)) {
            donors.erase(closed->trial);
        } else if (const auto* saved = std::get_if<study::CheckpointCommitted>(&record)) {
            if (saved->checkpoint.generation == generations[saved->trial]) donors.erase(saved->trial);
        } else if (const auto* gone = std::get_if<study::CheckpointReleased>(&record)) {
            for (const auto& [trial, donor] : donors) {
                CHECK(donor.checkpoint.path != gone->path);
                if (donor.trial == gone->trial) ++released;
            }
        }
    }
};

} // namespace

// (ray-project/ray#9036, #8441)
TEST_CASE("Ray: no checkpoint is deleted that a member has still to take over, and nobody waits for ever",
          "[sim][pbt][ray]") {
    for (const bool synchronous : {false, true}) {
        std::size_t released = 0;
        for (std::uint64_t seed = 0; seed < 14; ++seed) {
            INFO("seed " << seed << (synchronous ? ", synchronous" : ""));
            study::StudySpec spec = population(12, {{"interval", 3}, {"synchronous", synchronous}});
            spec.seed = seed;
            spec.checkpoint.keep = 1;
            ClusterOptions options;
            options.workers = 4;
            options.seed = seed;
            options.curve.save_every = 1; // each save makes the one before superfluous
            options.deaths.emplace_back(base::Rank{2}, 4s);
            Lives lives;
            lives.run([&] { return std::make_unique<tuner::Tuner>(spec); }, options, {after(2.0)});
            Totals totals;
            check(lives, "", totals); // every member finishes
            Needed needed;
            lives.journal.for_each([&](const study::Record& record) { needed.see(record); });
            released += needed.released;
        }
        CHECK(released > 5);
    }
}

// (ray-project/ray#27170)
TEST_CASE("Ray: nobody takes over a member that has saved nothing, or loses progress by waiting for it",
          "[sim][pbt][ray]") {
    const Lives lives = quiet_lives(population(12, {{"interval", 3}}));
    std::set<std::string> saved;
    std::map<base::TrialId, base::Iteration> trained;
    std::size_t exploits = 0;
    lives.journal.for_each([&](const study::Record& record) {
        if (const auto* checkpoint = std::get_if<study::CheckpointCommitted>(&record))
            saved.insert(checkpoint->checkpoint.path);
        if (const auto* taken = std::get_if<study::Exploited>(&record)) {
            ++exploits;
            CHECK(saved.contains(taken->donor.checkpoint.path));
        }
        if (const auto* report = std::get_if<study::Reported>(&record))
            CHECK(report->iteration == ++trained[report->trial]); // each once, none left out
    });
    CHECK(exploits > 10);
    for (const auto& [trial, iterations] : trained) CHECK(iterations == 30);
}

// (ray-project/ray#53831)
TEST_CASE("Ray: a member that does well is never restarted, and gives away its newest state", "[sim][pbt][ray]") {
    for (const bool synchronous : {false, true}) {
        const Lives lives = quiet_lives(population(12, {{"interval", 3}, {"synchronous", synchronous}}));
        std::map<base::TrialId, study::CheckpointRef> newest; ///< of its present generation
        std::map<base::TrialId, std::uint32_t> exploits;
        std::map<base::TrialId, std::uint32_t> starts;
        lives.journal.for_each([&](const study::Record& record) {
            if (const auto* checkpoint = std::get_if<study::CheckpointCommitted>(&record))
                if (checkpoint->checkpoint.generation == exploits[checkpoint->trial])
                    newest[checkpoint->trial] = checkpoint->checkpoint;
            if (const auto* taken = std::get_if<study::Exploited>(&record)) {
                ++exploits[taken->trial];
                // At a barrier that of the barrier, although the donor may have trained on.
                if (synchronous)
                    CHECK(taken->donor.checkpoint.iteration == taken->iteration);
                else
                    CHECK(taken->donor.checkpoint.path == newest.at(taken->donor.trial).path);
            }
            const auto* start = std::get_if<study::TrialStarted>(&record);
            if (start == nullptr) return;
            ++starts[start->trial];
            // Nobody goes back to a state of its own.
            CHECK_FALSE(std::holds_alternative<study::CheckpointRef>(start->from));
        });
        std::size_t untouched = 0;
        for (const auto& [trial, count] : starts) {
            CHECK(count == 1 + exploits[trial]);
            if (count == 1) ++untouched;
        }
        CHECK(untouched > 0);
        CHECK(untouched < 12);
    }
}

// (ray-project/ray#12558)
TEST_CASE("Ray: the whole study can be saved at any point, also while members take over states", "[sim][pbt][ray]") {
    for (const bool synchronous : {false, true}) {
        study::StudySpec spec = population(6, {{"interval", 3}, {"synchronous", synchronous}});
        spec.max_iterations = 10;
        const Lives lives = quiet_lives(spec);
        std::vector<study::Record> records;
        lives.journal.for_each([&](const study::Record& record) { records.push_back(record); });
        REQUIRE(!lives.all<study::Exploited>().empty());
        tuner::Tuner grown(spec);
        for (std::size_t i = 0; i < records.size(); ++i) {
            grown.apply(records[i]);
            study::Bytes bytes;
            study::Encoder out(bytes);
            grown.snapshot(out);
            tuner::Tuner restored(spec);
            study::Decoder in(bytes);
            restored.restore(in);
            for (std::size_t k = i + 1; k < records.size(); ++k) restored.apply(records[k]);
            REQUIRE(restored.digest() == lives.tuner->digest());
        }
    }
}

// (ray-project/ray#2201, #11936)
TEST_CASE("Ray: explored values stay in their ranges, and a member counts its own iterations on", "[sim][pbt][ray]") {
    for (const double resample : {0.0, 0.5}) {
        study::StudySpec spec = population(12, {{"interval", 1}, {"resample_probability", resample}});
        spec.space = space::SearchSpace(
            {{"lr", space::FloatRange{0.1, 0.15, true, 0.0}, {}}, {"width", space::IntRange{2, 5, false, 1}, {}}});
        spec.scheduler.explore = {{"lr", {0.5, 2.0}}, {"width", {0.5, 2.0}}};
        const Lives lives = quiet_lives(spec);
        bool lowest = false; // each factor leads out of the range
        bool highest = false;
        for (const auto& taken : lives.all<study::Exploited>()) {
            const double lr = taken.configuration.at("lr").as_double();
            const std::int64_t width = taken.configuration.at("width").as_int();
            CHECK((lr >= 0.1 && lr <= 0.15));
            CHECK((width >= 2 && width <= 5));
            lowest = lowest || lr < 0.1001;
            highest = highest || lr > 0.1499;
        }
        CHECK((lowest && highest));
        std::map<base::TrialId, base::Iteration> trained;
        for (const auto& report : lives.all<study::Reported>()) CHECK(report.iteration == ++trained[report.trial]);
    }
}

// (ray-project/ray#11906, #11499, #13953)
TEST_CASE("Ray: every member stops at the end and not before, whoever else has stopped or failed", "[sim][pbt][ray]") {
    for (const bool synchronous : {false, true}) {
        for (std::uint64_t seed = 0; seed < 10; ++seed) {
            INFO("seed " << seed << (synchronous ? ", synchronous" : ""));
            study::StudySpec spec = population(12, {{"interval", 3}, {"synchronous", synchronous}});
            spec.seed = seed;
            ClusterOptions options;
            options.workers = seed % 2 == 0 ? 12 : 5;
            options.seed = seed;
            options.curve.throw_rate = 0.15;
            options.curve.done_rate = 0.2;
            options.curve.fate = seed;
            Lives lives;
            lives.run([&] { return std::make_unique<tuner::Tuner>(spec); }, options, {});
            for (const std::string& problem : lives.problems) UNSCOPED_INFO(problem);
            CHECK(lives.problems.empty());
            CHECK(lives.tuner->state().ended);
            std::set<base::TrialId> over;
            lives.journal.for_each([&](const study::Record& record) {
                if (const auto* report = std::get_if<study::Reported>(&record)) CHECK(!over.contains(report->trial));
                if (const auto* closed = std::get_if<study::TrialClosed>(&record)) over.insert(closed->trial);
                if (const auto* again = std::get_if<study::TrialReopened>(&record)) over.erase(again->trial);
            });
            CHECK(over.size() == 12);
            for (const auto& trial : lives.tuner->state().trials) {
                const bool own_end =
                    trial.closed_by == study::Reason::trainable_done || trial.phase == study::TrialPhase::failed;
                CHECK((own_end || trial.iteration == 30));
            }
        }
    }
}

} // namespace population_test
