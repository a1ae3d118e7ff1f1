// SPDX-License-Identifier: Apache-2.0
// Trials that name the same place for their checkpoints.
#include "head/named_places.hpp"
#include "head/head_fixture.hpp"

namespace named_places_test {

using namespace ranktune;
using namespace ranktune::head;
using namespace ranktune::comm;
using namespace ranktune::testing;

namespace {

AttemptKey attempt(std::uint32_t trial, std::uint32_t number = 1) {
    return {TrialId(trial), AttemptId(number), Incarnation(1)};
}

using Keys = std::vector<AttemptKey>;

} // namespace

TEST_CASE("attempts that run side by side clash at the same place, and in folders of each other", "[head]") {
    const auto [first, second, clash] = GENERATE(table<std::string, std::string, bool>({
        {"/w/ckpt", "/w/ckpt", true},
        {"/w/ckpt", "/w/ckpt/model/a.pt", true},
        {"/w/ckpt/model/a.pt", "/w/ckpt", true},
        {"/w/ckpt", "/w/ckpt2", false},
        {"/w/ckpt2", "/w/ckpt", false},
        {"/w/a/ckpt", "/w/b/ckpt", false},
        {"/w/ckpt", "/", true},
    }));
    INFO(first << " " << second);
    NamedPlaces places;
    places.began(attempt(1));
    places.began(attempt(2));
    CHECK(places.named(attempt(1), "", first).others.empty());
    CHECK(places.named(attempt(1), "", first).others.empty()); // again, by the same one
    CHECK(places.named(attempt(2), "", second).others == (clash ? Keys{attempt(1)} : Keys{}));
}

TEST_CASE("the same path on disks of two nodes is two places; on a file system that others see, one", "[head]") {
    const auto clash = [](const std::string& one_host, const std::string& other_host) {
        NamedPlaces places;
        places.began(attempt(1));
        places.began(attempt(2));
        CHECK(places.named(attempt(1), one_host, "/tmp/ckpt").others.empty());
        return !places.named(attempt(2), other_host, "/tmp/ckpt").others.empty();
    };
    CHECK(clash("node1", "node1"));
    CHECK_FALSE(clash("node1", "node2"));
    CHECK(clash("node1", ""));
    CHECK(clash("", "node2"));
}

TEST_CASE("trials one after the other, and attempts of one trial, may name the same place", "[head]") {
    NamedPlaces places;
    for (std::uint32_t trial = 1; trial < 4; ++trial) {
        for (std::uint32_t number = 1; number < 3; ++number) {
            places.began(attempt(trial, number));
            CHECK(places.named(attempt(trial, number), "", "/w/ckpt").others.empty());
            CHECK(places.may_commit(attempt(trial, number), "it"));
            places.over(attempt(trial, number));
        }
    }
}

TEST_CASE("an attempt clashes with one that has ended since it began, and what that one saved meanwhile is in doubt",
          "[head]") {
    NamedPlaces places;
    places.began(attempt(1));
    CHECK(places.named(attempt(1), "", "/w/ckpt").others.empty());
    CHECK(places.may_commit(attempt(1), "before"));
    places.began(attempt(2)); // it may write from now on
    CHECK(places.may_commit(attempt(1), "meanwhile"));
    places.over(attempt(1));
    const auto clash = places.named(attempt(2), "", "/w/ckpt");
    CHECK(clash.others == Keys{attempt(1)});
    CHECK(clash.checkpoints == std::vector<std::string>{"meanwhile"});
    CHECK_FALSE(places.may_commit(attempt(2), "its own"));
    places.over(attempt(2));
    places.began(attempt(3)); // nothing of the two is left
    CHECK(places.named(attempt(3), "", "/w/ckpt").others.empty());
    CHECK(places.may_commit(attempt(3), "its own"));
}

TEST_CASE("only the newest names of an attempt count", "[head]") {
    NamedPlaces places;
    places.began(attempt(1));
    places.began(attempt(2));
    for (int i = 0; i < 65; ++i) CHECK(places.named(attempt(1), "", "/w/" + std::to_string(i)).others.empty());
    CHECK(places.named(attempt(2), "", "/w/0").others.empty());
    CHECK(places.named(attempt(2), "", "/w/1").others == Keys{attempt(1)});
}

TEST_CASE("The study ends when two running trials name the same checkpoint, and nothing of either is kept", "[head]") {
    HeadFixture h(2);
    h.join(2);
    const auto a = h.out.take<study::StartTrial>(one);
    const auto b = h.out.take<study::StartTrial>(two);
    const AttemptKey first = key_of(a);
    const AttemptKey second = key_of(b);
    h.from(one, PlaceNamed{first, "", "/w/ckpt.json"}, 1s);
    h.from(one, PlaceNamed{second, "", "/w/ckpt.json"}, 1s); // not its own attempt: ignored
    h.from(one, study::CheckpointSaved{a.trial, a.attempt, a.incarnation, {1, "checkpoints/0/1-1.1", 1, 1}}, 1s);
    h.tick(1s);
    h.out.check_empty();
    CHECK(h.sink.count<study::CheckpointCommitted>() == 1);

    h.from(two, PlaceNamed{second, "", "/w/ckpt.json"}, 2s);
    CHECK(h.out.take<PlaceContested>(two) == PlaceContested{second});
    CHECK(h.out.take<PlaceContested>(one) == PlaceContested{first});
    CHECK(h.duties.aside == std::vector<std::string>{
                                "checkpoints/0/1-1.1: trials #0 and #1 ran side by side and saved to the same place, "
                                "/w/ckpt.json"});
    h.from(one, study::CheckpointSaved{a.trial, a.attempt, a.incarnation, {2, "checkpoints/0/2-1.1", 1, 1}}, 2s);
    h.from(one, HeadFixture::over_of(a, AttemptOutcome::paused), 3s);
    h.from(two, HeadFixture::over_of(b, AttemptOutcome::paused), 3s);
    h.tick(3s);
    CHECK(h.sink.count<study::CheckpointCommitted>() == 1);
    REQUIRE(h.duties.results.size() == 1);
    CHECK(h.duties.results[0].outcome == StudyOutcome::usage);
    CHECK(h.duties.results[0].message.starts_with(
        "trials #0 and #1 run side by side and name the same checkpoint, '/w/ckpt.json': each may get the state of the "
        "other. Save below ranktune.context().checkpoint_dir"));
}

} // namespace named_places_test
