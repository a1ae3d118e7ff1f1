// SPDX-License-Identifier: Apache-2.0
// The orders of the leader of a program's trial, in virtual time.

#include "worker/bodies/program_leader.hpp"
#include "ranktune/base/error.hpp"
#include "support/catch.hpp"

namespace ranktune::testing::program_leader_test {

using namespace ranktune::worker;
namespace {

using End = ProgramOrder::End;
using study::Verb;
using namespace std::chrono_literals;

struct Scene {
    explicit Scene(std::size_t ranks_in, ProgramLeader::Limits limits = {}) : leader(limits, now), ranks(ranks_in) {}

    /// Lets time pass, then steps the leader.
    End after(std::chrono::nanoseconds duration = 0s) {
        now += duration;
        leader.step(now, ranks);
        return leader.order().end;
    }
    void all_report(std::uint64_t count) {
        for (auto& rank : ranks) rank.reports = count;
    }

    ProgramLeader::Time now{};
    ProgramLeader leader;
    std::vector<RankFacts> ranks;
};

} // namespace

TEST_CASE("reports are decided one by one", "[trial]") {
    Scene scene(3);
    scene.all_report(2);
    scene.leader.reported(scene.now);
    CHECK(scene.after() == End::go_on);
    CHECK(scene.leader.order().decided == 0);
    scene.leader.go_on(scene.now);
    CHECK(scene.leader.order().decided == 1);
    CHECK(scene.after(24h) == End::go_on);
}

TEST_CASE("a verdict is delivered when every rank has made the report", "[trial]") {
    Scene scene(3);
    scene.all_report(1);
    scene.leader.go_on(scene.now);
    scene.ranks[0].reports = 2;
    scene.leader.stop(Verb::pause, false, scene.now);
    CHECK(scene.after() == End::go_on);
    scene.ranks[1].reports = 2;
    CHECK(scene.after(29s) == End::go_on); // rank 2 has reported before: it is only slow
    scene.ranks[2].reports = 2;
    CHECK(scene.after() == End::deliver);
    CHECK(scene.leader.order() == ProgramOrder{1, End::deliver, Verb::pause, false});
    CHECK(scene.after(29s) == End::deliver);
    CHECK(scene.after(2s) == End::signal); // it does not end
    scene.leader.close();
    CHECK(scene.leader.order().end == End::over);
}

TEST_CASE("processes are kept for an exploit if every rank waits and can exploit", "[trial]") {
    Scene scene(2);
    scene.all_report(3);
    scene.leader.go_on(scene.now);
    scene.leader.go_on(scene.now);
    for (auto& rank : scene.ranks) rank.exploits = true;
    bool exploits = true;
    SECTION("one rank is late") { scene.ranks[1].reports = 2; }
    SECTION("one rank cannot") { scene.ranks[1].exploits = false; }
    SECTION("one rank has ended") { scene.ranks[1].ended = true; }
    SECTION("one rank has gone on without its answer") { scene.ranks[1].reports = 4; }
    SECTION("the trial stops") { exploits = false; }
    SECTION("so they are kept") {
        scene.leader.stop(Verb::stop, false, scene.now, true);
        CHECK(scene.after() == End::keep);
        CHECK(scene.leader.order() == ProgramOrder{2, End::keep, Verb::stop, false});
        CHECK(scene.after(24h) == End::keep);
        return;
    }
    scene.leader.stop(Verb::stop, false, scene.now, exploits);
    if (scene.ranks[1].reports == 2) {
        CHECK(scene.after() == End::go_on);
        scene.ranks[1].reports = 3;
        CHECK(scene.after() == End::keep);
    } else {
        CHECK(scene.after() == (scene.ranks[1].reports == 4 ? End::signal : End::deliver));
    }
}

TEST_CASE("a rank whose program has ended is not waited for", "[trial]") {
    Scene scene(2);
    scene.ranks[0].reports = 1;
    scene.ranks[1].ended = true;
    scene.leader.stop(Verb::stop, false, scene.now);
    CHECK(scene.after() == End::deliver);
}

TEST_CASE("a program whose rank 0 alone reports is stopped by signal after a grace", "[trial]") {
    Scene scene(3);
    scene.ranks[0].reports = 1;
    scene.leader.stop(Verb::stop, false, scene.now);
    CHECK(scene.after(4s) == End::go_on);
    CHECK_FALSE(scene.leader.rank_zero_alone());
    CHECK(scene.after(1s) == End::signal);
    CHECK(scene.leader.rank_zero_alone());
}

TEST_CASE("the leader waits a tenth of an iteration for ranks known to be silent", "[trial]") {
    Scene scene(2);
    scene.leader.rank_zero_is_alone();
    CHECK(scene.leader.alone_grace() == 100ms);
    scene.now += 20s;
    scene.ranks[0].reports = 1;
    scene.leader.reported(scene.now);
    CHECK(scene.leader.alone_grace() == 2s);
    scene.leader.stop(Verb::stop, false, scene.now);
    SECTION("in vain") {
        CHECK(scene.after(1999ms) == End::go_on);
        CHECK(scene.after(1ms) == End::signal);
        CHECK(scene.leader.rank_zero_alone());
    }
    SECTION("and a slow rank is not stopped for it") {
        CHECK(scene.after(1999ms) == End::go_on);
        scene.ranks[1].reports = 1;
        CHECK(scene.after(24h) == End::deliver);
    }
    SECTION("never longer than the usual grace, however long an iteration takes") {
        scene.now += 1h;
        scene.leader.go_on(scene.now - 1h);
        scene.leader.reported(scene.now);
        CHECK(scene.leader.alone_grace() == 5s);
    }
}

TEST_CASE("the leader waits for a rank that has reported, whatever is known about others", "[trial]") {
    Scene scene(2);
    scene.leader.rank_zero_is_alone();
    scene.all_report(1);
    scene.leader.go_on(scene.now);
    scene.ranks[0].reports = 2;
    scene.leader.stop(Verb::stop, false, scene.now);
    CHECK(scene.after(29s) == End::go_on);
    CHECK_FALSE(scene.leader.rank_zero_alone());
}

TEST_CASE("rank 0 alone is asked to save before its program is stopped", "[trial]") {
    Scene scene(2);
    scene.ranks[0].reports = 1;
    scene.leader.stop(Verb::pause, true, scene.now);
    CHECK(scene.after(5s) == End::deliver_to_first);
    CHECK(scene.after(299s) == End::deliver_to_first); // a large state
    SECTION("it answers") { scene.leader.saved(scene.now); }
    SECTION("it ends") { scene.ranks[0].ended = true; }
    CHECK(scene.after() == End::signal);
}

TEST_CASE("a program that goes on reporting after its verdict is stopped by signal", "[trial]") {
    Scene scene(2);
    scene.all_report(1);
    scene.leader.stop(Verb::stop, false, scene.now);
    CHECK(scene.after() == End::deliver);
    scene.ranks[1].reports = 2;
    CHECK(scene.after() == End::signal);
}

TEST_CASE("saving has a time limit, and ending after it a grace", "[trial]") {
    Scene scene(2);
    scene.all_report(1);
    scene.leader.stop(Verb::pause, true, scene.now);
    CHECK(scene.after() == End::deliver);
    CHECK(scene.leader.order().save);
    CHECK(scene.after(299s) == End::deliver);
    scene.leader.saved(scene.now);
    CHECK(scene.after(29s) == End::deliver);
    CHECK(scene.after(1s) == End::signal);
}

TEST_CASE("the leader waits for a hung rank for three iterations and a grace", "[trial]") {
    Scene scene(2);
    for (int iteration = 1; iteration <= 3; ++iteration) {
        scene.now += 20s * iteration; // the longest: one minute
        scene.ranks[0].reports = static_cast<std::uint64_t>(iteration);
        scene.leader.reported(scene.now);
        if (iteration < 3) scene.leader.go_on(scene.now);
    }
    scene.ranks[1].reports = 1;
    CHECK_FALSE(scene.leader.waits_since());
    scene.leader.stop(Verb::stop, false, scene.now);
    CHECK(scene.leader.waits_since() == scene.now);
    CHECK(scene.leader.waits_for(scene.ranks) == "rank 1 (report 2)");
    CHECK(scene.leader.patience() == 210s);
    CHECK(scene.after(209s) == End::go_on);
    CHECK_FALSE(scene.leader.in_vain());
    CHECK(scene.after(1s) == End::signal);
    CHECK(scene.leader.in_vain());
}

TEST_CASE("waiting for a trial that was asked to stop has a limit", "[trial]") {
    Scene scene(2, {.iteration = 40s});    // average of earlier attempts
    CHECK(scene.after(24h) == End::go_on); // no request to stop
    scene.leader.will_stop(scene.now);
    CHECK(scene.leader.waits_for(scene.ranks) == "rank 0 (report 1), rank 1 (report 1)");
    scene.now += 60s;
    scene.leader.will_stop(scene.now); // repeated: ignored
    CHECK(scene.after(89s) == End::go_on);
    CHECK(scene.after(1s) == End::signal);
    CHECK(scene.leader.in_vain());
}

TEST_CASE("saving has a limit, too", "[trial]") {
    Scene scene(1);
    scene.all_report(1);
    scene.leader.stop(Verb::pause, true, scene.now);
    CHECK(scene.after() == End::deliver);
    CHECK(scene.leader.waits_for(scene.ranks) == "rank 0 (to save its state)");
    CHECK(scene.after(5min) == End::signal);
    CHECK(scene.leader.in_vain());
}

TEST_CASE("when rank 0 has ended on its own the others get a grace to do the same", "[trial]") {
    Scene scene(2);
    scene.all_report(3);
    scene.ranks[0].ended = true;
    scene.leader.done(scene.now);
    CHECK(scene.after(29s) == End::go_on);
    CHECK(scene.after(1s) == End::signal);
}

TEST_CASE("a trial without a report for too long fails and says who reported how often", "[trial]") {
    Scene scene(2, {.report_timeout = 10min});
    scene.ranks[1].reports = 2;
    CHECK(scene.after(9min) == End::go_on);
    scene.leader.reported(scene.now);
    CHECK(scene.after(9min) == End::go_on);
    scene.ranks[0].reports = 1;
    try {
        scene.after(1min);
        FAIL("no exception");
    } catch (const base::Error& error) {
        CHECK(std::string(error.what()) ==
              "no sign of progress for 10m (failure.report_timeout); reports made: 1 by rank 0, 2 by rank 1");
    }
}

TEST_CASE("a program that waits for the verdict on its report does not hang", "[trial]") {
    Scene scene(1, {.report_timeout = 10min});
    scene.leader.reported(scene.now);
    scene.ranks[0].reports = 1;
    for (int i = 0; i < 4; ++i) {
        CHECK(scene.after(9min) == End::go_on);
        scene.leader.undecided(scene.now);
    }
    scene.leader.go_on(scene.now);
    CHECK(scene.after(9min) == End::go_on);
    CHECK_THROWS_AS(scene.after(1min), base::Error);
}

TEST_CASE("an iteration that takes too long fails the attempt, the time for its verdict apart", "[trial]") {
    Scene scene(1, {.iteration_timeout = 10min});
    CHECK(scene.after(9min) == End::go_on);
    scene.leader.reported(scene.now);
    scene.ranks[0].reports = 1;
    CHECK(scene.after(9min) == End::go_on); // the head decides
    scene.leader.undecided(scene.now);
    CHECK(scene.after(9min) == End::go_on);
    scene.leader.go_on(scene.now);
    CHECK(scene.after(9min) == End::go_on);
    CHECK_THROWS_WITH(scene.after(1min),
                      "iteration 2 of this attempt took longer than 10m (failure.iteration_timeout)");
}

TEST_CASE("a program that hears no answers is ended by a signal, with all its ranks", "[trial]") {
    Scene scene(2, {.hears = false});
    scene.leader.reported(scene.now);
    scene.ranks[0].reports = 1;
    CHECK(scene.after(1s) == End::go_on);
    scene.leader.stop(study::Verb::stop, false, scene.now);
    CHECK(scene.after(0s) == End::signal);
}

} // namespace ranktune::testing::program_leader_test
