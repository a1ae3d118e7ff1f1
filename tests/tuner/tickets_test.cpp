// SPDX-License-Identifier: Apache-2.0
#include "tuner/values/tickets.hpp"

#include "tuner/values.hpp"

namespace ranktune::tuner::tickets_test {
namespace {

using testing::broken;
using testing::contradiction;

space::Configuration point(double x) {
    space::Configuration configuration;
    configuration.set("x", x);
    return configuration;
}

study::Bytes bytes_of(const Tickets& tickets) { return testing::written(tickets); }

/// Reads a snapshot with these values, whether or not they fit together.
Tickets stored(std::uint64_t next, const std::vector<Ticket>& open) {
    const auto bytes = testing::written(next, open, std::uint32_t{0}, std::string());
    Tickets tickets;
    testing::read_back(bytes, tickets);
    return tickets;
}

} // namespace

TEST_CASE("A ticket is opened, answered and taken", "[tuner]") {
    Tickets tickets;
    CHECK(tickets.oldest() == nullptr);
    CHECK(tickets.oldest_ready() == nullptr);
    tickets.add(0, 3);
    tickets.add(1, 5);
    CHECK(tickets.next() == 2);
    REQUIRE(tickets.unanswered(1) != nullptr);
    CHECK(tickets.unanswered(1)->seen == 5);
    CHECK(tickets.unanswered(2) == nullptr);
    tickets.answer(1, point(0.5), false);
    CHECK(tickets.unanswered(1) == nullptr);
    CHECK(tickets.oldest()->number == 0);
    CHECK(tickets.oldest_ready()->number == 1); // the second was faster
    tickets.take(1);
    CHECK(tickets.oldest_ready() == nullptr);
    CHECK(tickets.open().size() == 1);
    CHECK(tickets.next() == 2); // numbers are not used again
    CHECK(broken(tickets).empty());
}

TEST_CASE("A ticket that failed is dropped, unless a trial waits for it", "[tuner]") {
    Tickets tickets;
    tickets.add(0, 0);
    tickets.add(1, 0);
    tickets.answer(1, {}, false);
    CHECK(tickets.open().size() == 1);
    tickets.answer(0, {}, true);
    REQUIRE(tickets.open().size() == 1);
    CHECK(tickets.oldest()->answered);
    CHECK(tickets.oldest_ready() == nullptr);
    CHECK(broken(tickets).empty());
    tickets.drop_oldest();
    CHECK(tickets.open().empty());
    tickets.drop_oldest(); // there is none
    CHECK(tickets.open().empty());
}

TEST_CASE("Failures in a row are counted until a suggestion comes, or the next start", "[tuner]") {
    Tickets tickets;
    for (const std::uint64_t number : {0U, 1U, 2U, 3U}) tickets.add(number, 0);
    tickets.answer(0, {}, false, "first");
    tickets.answer(1, {}, false, "second");
    CHECK(tickets.failures() == 2);
    CHECK(tickets.why() == "second");
    Tickets restored;
    testing::read_back(bytes_of(tickets), restored);
    CHECK(restored.failures() == 2);
    CHECK(restored.why() == "second");
    tickets.answer(2, point(0.5), false);
    CHECK(tickets.failures() == 0);
    CHECK(tickets.why() == "second");
    tickets.answer(3, {}, false, "third");
    CHECK(tickets.failures() == 1);
    tickets.begin();
    CHECK(tickets.failures() == 0);
}

TEST_CASE("Records that no ticket fits contradict the journal", "[tuner]") {
    Tickets tickets;
    CHECK(contradiction([&] { tickets.add(1, 0); }) == "tickets are not 0, 1, 2, ...");
    tickets.add(0, 0);
    CHECK(contradiction([&] { tickets.add(0, 0); }) == "tickets are not 0, 1, 2, ...");
    CHECK(contradiction([&] { tickets.take(7); }) == "a trial takes a ticket that is not there");
    tickets.answer(0, point(0.5), false);
    const std::string unasked = "a ticket is prepared that nobody waits for";
    CHECK(contradiction([&] { tickets.answer(0, point(0.5), false); }) == unasked);
    CHECK(contradiction([&] { tickets.answer(7, point(0.5), false); }) == unasked);
}

TEST_CASE("Restored tickets give the same answers", "[tuner]") {
    Tickets tickets;
    for (const std::uint64_t number : {0U, 1U, 2U}) tickets.add(number, 4 + number);
    tickets.answer(1, point(0.25), false);
    tickets.take(1);
    tickets.answer(2, point(0.75), false);
    Tickets again;
    testing::read_back(bytes_of(tickets), again);
    CHECK(bytes_of(again) == bytes_of(tickets));
    CHECK(again.next() == 3);
    CHECK(again.unanswered(0)->seen == 4);
    CHECK(again.oldest_ready()->configuration == point(0.75));
}

TEST_CASE("The invariants of tickets notice a snapshot that does not fit together", "[tuner]") {
    CHECK(broken(stored(2, {{0, 1, false, {}}, {1, 1, true, point(0.5)}})).empty());
    CHECK(broken(stored(1, {{1, 0, false, {}}})) == "ticket 1 has not been opened");
    CHECK(broken(stored(1, {{0, 0, false, point(0.5)}})) == "ticket 0 has a configuration but no answer");
    CHECK(broken(stored(3, {{2, 0, false, {}}, {1, 0, false, {}}})) == "ticket 1 is not in order");
    CHECK(broken(stored(3, {{1, 5, false, {}}, {2, 4, false, {}}})) == "ticket 2 sees less than the one before");
}

} // namespace ranktune::tuner::tickets_test
