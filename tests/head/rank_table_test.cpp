// SPDX-License-Identifier: Apache-2.0
#include "head/rank_table.hpp"
#include "comm/wire/recorder.hpp"

namespace rank_table_test {

using namespace ranktune;
using namespace ranktune::head;
using namespace ranktune::comm;
using namespace ranktune::testing;

namespace {

const AttemptKey first{TrialId(0), AttemptId(1), Incarnation(1)};
const AttemptKey second{TrialId(1), AttemptId(1), Incarnation(1)};

void check_seconds(const RankTable& table, StudyTime now, double training, double starting, double idle) {
    const RankSeconds seconds = table.seconds(now);
    CHECK(seconds.training == Approx(training).margin(1e-9));
    CHECK(seconds.starting == Approx(starting).margin(1e-9));
    CHECK(seconds.idle == Approx(idle).margin(1e-9));
}

} // namespace

TEST_CASE("Ranks are idle, then starting, then training, then idle again", "[head]") {
    RankTable table(3, at(0s));
    check_seconds(table, at(1s), 0, 0, 3);
    table.start(first, {Rank(1), Rank(2)}, at(1s));
    CHECK(table.held_by(Rank(2)) == first);
    CHECK(table.leader_of(Rank(2)) == Rank(1));
    check_seconds(table, at(2s), 0, 2, 4);
    table.training(Rank(1), first, at(2s));
    table.training(Rank(1), first, at(4s)); // only the first sign counts
    check_seconds(table, at(5s), 6, 2, 7);
    // The leader's times are exact: 1.5 s starting, 2 s training; half a second went to messages.
    CHECK(table.finish(Rank(1), first, 1.5, 2.0, at(5s)));
    check_seconds(table, at(5s), 4, 3, 8);
    check_seconds(table, at(6s), 4, 3, 11);
    CHECK(table.held_by(Rank(1)) == AttemptKey{});
}

TEST_CASE("Signs of other attempts do not count", "[head]") {
    RankTable table(2, at(0s));
    table.start(first, {Rank(1)}, at(0s));
    table.training(Rank(1), second, at(1s));
    table.training(Rank(2), first, at(1s));
    CHECK_FALSE(table.finish(Rank(1), second, 0, 1, at(1s)));
    CHECK_FALSE(table.finish(Rank(2), first, 0, 1, at(1s)));
    check_seconds(table, at(2s), 0, 2, 2);
    CHECK(table.finish(Rank(1), first, 2, 0, at(2s)));
    CHECK_FALSE(table.finish(Rank(1), first, 2, 0, at(3s)));
}

TEST_CASE("A lost rank stops counting, and a lost leader frees its group", "[head]") {
    RankTable table(3, at(0s));
    table.start(first, {Rank(1), Rank(2), Rank(3)}, at(0s));
    table.training(Rank(1), first, at(1s));
    table.lose(Rank(3), at(2s));
    check_seconds(table, at(3s), 3 + 2, 3, 0);
    CHECK(table.held_by(Rank(3)) == AttemptKey{});
    CHECK(table.held_by(Rank(2)) == first);
    table.lose(Rank(1), at(3s));
    table.lose(Rank(1), at(3s)); // a repeated loss is harmless
    CHECK(table.held_by(Rank(2)) == AttemptKey{});
    check_seconds(table, at(4s), 5, 3, 1);
}

TEST_CASE("Impossible times from a leader are bounded by the time its ranks were held", "[head]") {
    RankTable table(1, at(0s));
    table.start(first, {Rank(1)}, at(0s));
    CHECK(table.finish(Rank(1), first, 100.0, 3.0, at(4s)));
    check_seconds(table, at(4s), 3, 1, 0);
    table.start(second, {Rank(1)}, at(4s));
    CHECK(table.finish(Rank(1), second, -1.0, 1e9, at(5s)));
    check_seconds(table, at(5s), 4, 1, 0);
}

} // namespace rank_table_test
