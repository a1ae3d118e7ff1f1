// SPDX-License-Identifier: Apache-2.0
// Synchronous population-based training: the cases of Ray Tune's own tests (named in brackets), what users of Ray have
// reported, and ours.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ranktune/base/error.hpp"
#include "schedulers/driver.hpp"
#include "support/catch.hpp"

namespace population_barrier_test {

using namespace ranktune;
using namespace ranktune::schedulers;
using base::Iteration;

namespace {

using Options = std::vector<study::OptionValue>;

study::StudySpec synchronous_study(std::uint32_t members, Iteration ceiling, Options settings,
                                   study::Mode mode = study::Mode::max) {
    settings.push_back({"synchronous", true});
    study::StudySpec spec = spec_of(chosen("pbt", settings), ceiling, mode);
    spec.num_trials = members;
    spec.space = space::SearchSpace(
        {{"lr", space::FloatRange{0.5, 10.0, false, 0.0}, {}}, {"a", space::IntRange{0, 100, false, 1}, {}}});
    spec.scheduler.explore = {{"lr", {0.8, 1.2}}};
    return spec;
}

/// Members that have all been made and started. What they report at a barrier is held until `judge`.
struct AtBarriers : testing::SchedulerDriver {
    explicit AtBarriers(const study::StudySpec& spec, const std::vector<std::int64_t>& a = {}) : SchedulerDriver(spec) {
        for (std::uint32_t i = 0; i < spec.num_trials; ++i) {
            const auto own = static_cast<std::int64_t>(i);
            configurations.push_back(space::Configuration({{"lr", 2.0}, {"a", a.empty() ? own : a[i]}}));
            apply(study::TrialCreated{TrialId(i), {}, 1, 0, 0, {}, configurations.back()});
            apply(study::TrialStarted{TrialId(i), base::AttemptId(1), {}, {base::Rank(i + 1)}, {}});
        }
    }
    void arrive(std::uint32_t trial, Iteration iteration, double value) {
        REQUIRE(scheduler().is_barrier(TrialId(trial), iteration));
        apply(study::ReportHeld{TrialId(trial), base::AttemptId(1), {}, iteration, 0.0, {{study::MetricId(1), value}}});
        values[trial] = value;
    }
    void save(std::uint32_t trial, Iteration iteration) {
        study::CheckpointRef checkpoint{.iteration = iteration, .path = std::to_string(++saves)};
        checkpoint.generation = generations[trial];
        apply(study::CheckpointCommitted{TrialId(trial), base::AttemptId(1), {}, checkpoint});
    }
    /// The verdicts that can be given now; who is told to save its state does, if `saves_states`.
    std::vector<std::uint32_t> judge(Iteration barrier, bool saves_states = true) {
        std::vector<std::uint32_t> judged;
        while (const auto next = scheduler().next_verdict(barrier)) {
            const std::uint32_t trial = next->value();
            judged.push_back(trial);
            const schedulers::Report report{*next, barrier, study::score(values[trial], spec().objective.mode)};
            Verdict verdict = scheduler().decide(report, true);
            std::optional<Exploit> exploit;
            if (verdict.verb == Verb::exploit) exploit = scheduler().exploit(report);
            tell(*next, barrier, values[trial], verdict);
            verdicts[trial] = verdict;
            if (exploit) take(trial, barrier, *exploit);
            if (saves_states && verdict.reason == Reason::published) save(trial, barrier);
        }
        return judged;
    }
    void take(std::uint32_t trial, Iteration iteration, const Exploit& exploit) {
        donors[trial] = exploit.donor.value();
        states[trial] = exploit.iteration;
        configurations[trial] = exploit.configuration;
        study::CheckpointRef checkpoint{.iteration = exploit.iteration, .path = "donor"};
        apply(study::Exploited{
            TrialId(trial), {}, iteration, {exploit.donor, checkpoint}, ++generations[trial], exploit.configuration});
        ended(TrialId(trial), study::AttemptOutcome::stopped);
        started(TrialId(trial));
    }
    std::map<std::uint32_t, double> values;
    std::map<std::uint32_t, Verdict> verdicts;
    std::map<std::uint32_t, std::uint32_t> donors; ///< newest of each
    std::map<std::uint32_t, Iteration> states;     ///< of the donor, that it took over
    std::map<std::uint32_t, std::uint32_t> generations;
    std::vector<space::Configuration> configurations;
    int saves = 0;
};

using Judged = std::vector<std::uint32_t>;

} // namespace

TEST_CASE("P9: at a barrier nothing is decided before all are there [CheckpointMostPromisingSynch]",
          "[schedulers][pbt]") {
    AtBarriers members(synchronous_study(5, 1000, {{"interval", 20}}));
    CHECK(members.report(TrialId(0), 15, 200).verb == Verb::go_on); // no ready point: judged at once
    CHECK_FALSE(members.scheduler().is_barrier(TrialId(0), 15));
    for (std::uint32_t i = 0; i < 5; ++i) members.arrive(i, 20, 200.0 + i);
    // Those that go on first, in the order of the trials: the upper group saves its state, the lower one waits for it.
    CHECK(members.judge(20, false) == Judged{2, 3, 4});
    CHECK(members.verdicts[2].reason == Reason::kept);
    CHECK(members.verdicts[3].reason == Reason::published);
    CHECK(members.verdicts[4].reason == Reason::published);
}

TEST_CASE("P10: the lower group takes over what the upper group is at the barrier [PerturbsLowSynch]",
          "[schedulers][pbt]") {
    AtBarriers members(synchronous_study(5, 1000, {{"interval", 20}}));
    for (std::uint32_t i = 0; i < 5; ++i) members.save(i, 12); // states of before: nobody takes these
    const double scores[] = {0, -10, -20, -30, -100};
    for (const std::uint32_t i : {4U, 0U, 1U, 2U, 3U}) members.arrive(i, 20, scores[i]);
    CHECK(members.judge(20) == Judged{0, 1, 2, 3, 4});
    CHECK(members.donors.size() == 2);
    for (const std::uint32_t loser : {3U, 4U}) {
        CHECK(members.verdicts[loser].verb == Verb::exploit);
        CHECK(members.donors[loser] <= 1);
        CHECK(members.states[loser] == 20);
    }
}

TEST_CASE("P11: there is no barrier before the burn-in is over, and then there is one [BurnInPeriod]",
          "[schedulers][pbt]") {
    // (In Ray all members of such a population stay paused, ray-project/ray#23424.)
    AtBarriers members(synchronous_study(4, 100, {{"interval", 5}, {"burn_in", 50}}, study::Mode::min));
    for (const Iteration iteration : {Iteration{5}, Iteration{30}})
        for (std::uint32_t i = 0; i < 4; ++i) CHECK(members.report(TrialId(i), iteration, 1.0).verb == Verb::go_on);
    CHECK(members.scheduler().next_decision_point(TrialId(0), 30) == 50);
    const double errors[] = {50, 50, 10, 100};
    for (std::uint32_t i = 0; i < 4; ++i) members.arrive(i, 50, errors[i]);
    CHECK(members.judge(50) == Judged{0, 1, 2, 3});
    CHECK(members.donors == std::map<std::uint32_t, std::uint32_t>{{3, 2}});
    CHECK(members.configurations[3].at("a").as_int() == 2);
}

// (One iteration more than in Ray, which judges after the last one, too: here nobody takes over anything at the
// ceiling.)
TEST_CASE("P12: the best configuration reaches everybody, one barrier after the other [SynchPass]",
          "[schedulers][pbt]") {
    for (const std::vector<std::int64_t>& a : {std::vector<std::int64_t>{10, 20, 40}, {30, 20, 10}}) {
        AtBarriers members(synchronous_study(3, 4, {{"interval", 1}}), a);
        std::int64_t best = 0;
        for (const std::int64_t each : a) best = std::max(best, each);
        for (Iteration iteration = 1; iteration <= 3; ++iteration) {
            for (std::uint32_t i = 0; i < 3; ++i)
                members.arrive(i, iteration, static_cast<double>(members.configurations[i].at("a").as_int()));
            CHECK(members.judge(iteration).size() == 3);
        }
        for (const auto& configuration : members.configurations) CHECK(configuration.at("a").as_int() == best);
    }
}

TEST_CASE("A member that has failed, or that has ended, holds up no barrier", "[schedulers][pbt]") {
    // (ray-project/ray#12122)
    AtBarriers members(synchronous_study(4, 100, {{"interval", 10}}));
    for (std::uint32_t i = 0; i < 4; ++i) members.arrive(i, 10, 10.0 * i);
    members.fail(TrialId(3)); // while it waits there, the best
    members.complete(TrialId(2), 11, 1.0);
    CHECK(members.judge(10) == Judged{0, 1});
    members.arrive(0, 20, 1.0);
    members.arrive(1, 20, 2.0);
    CHECK(members.judge(20) == Judged{1, 0}); // #1 saves its state first
    CHECK(members.donors[0] == 1);
    CHECK(members.scheduler().next_verdict(20) == std::nullopt);
}

TEST_CASE("P13: a verdict waits for a state no longer than it can come [ExploitWhileSaving]", "[schedulers][pbt]") {
    const auto until = [](auto event, bool older) {
        AtBarriers members(synchronous_study(2, 100, {{"interval", 10}}));
        if (older) members.save(1, 7);
        members.arrive(0, 10, 1.0);
        members.arrive(1, 10, 2.0);
        CHECK(members.judge(10, false) == Judged{1});
        members.replace_by_restored();
        CHECK(members.judge(10, false).empty());
        event(members);
        CHECK(members.judge(10, false) == Judged{0});
        if (older || members.saves > 0) return members.states[0];
        CHECK(members.verdicts[0].reason == Reason::unpublished);
        return Iteration{0};
    };
    CHECK(until([](AtBarriers& members) { members.save(1, 10); }, true) == 10);
    CHECK(until([](AtBarriers& members) { members.save(1, 13); }, true) == 13); // the one of 10 was not taken
    for (const bool older : {true, false}) {
        const Iteration state = older ? 7 : 0;
        CHECK(until([](AtBarriers& m) { m.ended(TrialId(1), study::AttemptOutcome::lost, true); }, older) == state);
        CHECK(until([](AtBarriers& m) { m.fail(TrialId(1)); }, older) == 0); // it is no donor any more
        CHECK(until([](AtBarriers& m) { m.arrive(1, 20, 3.0); }, older) == state);
        CHECK(until(
                  [](AtBarriers& m) {
                      m.apply(study::IncarnationBegan{base::Incarnation(2), {}, "", {}});
                  },
                  older) == state);
    }
}

TEST_CASE("Who comes late is judged at once, against those that were there", "[schedulers][pbt]") {
    AtBarriers members(synchronous_study(4, 100, {{"interval", 10}}));
    for (const std::uint32_t i : {1U, 2U, 3U}) members.arrive(i, 10, 10.0 * i);
    members.ended(TrialId(0), study::AttemptOutcome::lost, true); // the tuner does not wait for it
    CHECK(members.judge(10) == Judged{2, 3, 1});
    CHECK(members.donors[1] == 3);
    members.started(TrialId(0));
    const schedulers::Report late{TrialId(0), 10, 0.0};
    CHECK(members.scheduler().decide(late, false).verb == Verb::exploit);
    CHECK(members.scheduler().exploit(late).donor == TrialId(3));
}

TEST_CASE("In a synchronous tournament a chain of losers takes over the one at its end", "[schedulers][pbt]") {
    int chains = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        study::StudySpec spec = synchronous_study(6, 100, {{"interval", 10}, {"selection", "tournament"}});
        spec.seed = seed;
        AtBarriers members(spec);
        for (std::uint32_t i = 0; i < 6; ++i) members.arrive(i, 10, 1.0 * i);
        CHECK(members.judge(10).size() == 6);
        for (const auto& [loser, donor] : members.donors) {
            CHECK(donor > loser);
            CHECK_FALSE(members.donors.contains(donor)); // a donor goes on with the state that is taken over
            CHECK(members.verdicts[donor].reason == Reason::published);
        }
        // With one choice each, one of five would meet the best; the chains lead there more often.
        for (const auto& [loser, donor] : members.donors) chains += donor == 5 ? 1 : 0;
    }
    CHECK(chains > 60);
}

TEST_CASE("A synchronous population compares at equal iterations only", "[schedulers][pbt]") {
    study::StudySpec spec = synchronous_study(4, 100, {{"interval", 10}});
    study::set_option(spec.scheduler, {"compare", "latest"}); // which has no synchronous mode
    CHECK_FALSE(AtBarriers(spec).scheduler().synchronous());
    CHECK(AtBarriers(synchronous_study(4, 100, {})).scheduler().synchronous());
}

TEST_CASE("Programs whose state is taken over save it before the verdicts, by pausing", "[schedulers][pbt]") {
    // A program gives a checkpoint with its report, and cannot be asked for one afterwards.
    study::StudySpec spec = synchronous_study(5, 1000, {{"interval", 20}});
    spec.trainable.program.emplace();
    AtBarriers members(spec);
    for (std::uint32_t i = 0; i < 5; ++i) members.arrive(i, 20, 10.0 * i);
    CHECK(members.judge(20).empty());
    const auto donors = members.scheduler().to_save(20);
    CHECK(donors.size() == 2); // one for each loser
    std::set<base::TrialId> paused(donors.begin(), donors.end());
    for (const base::TrialId donor : paused) {
        CHECK(donor.value() >= 3);
        members.save(donor.value(), 20);
        members.ended(donor, study::AttemptOutcome::paused);
    }
    CHECK(members.scheduler().to_save(20).empty());
    CHECK(members.judge(20) == Judged{0, 1, 2, 3, 4});
    CHECK(members.states == std::map<std::uint32_t, Iteration>{{0, 20}, {1, 20}});
}

} // namespace population_barrier_test
