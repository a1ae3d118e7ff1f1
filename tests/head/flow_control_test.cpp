// SPDX-License-Identifier: Apache-2.0
// A trial that reports faster than the head takes its reports waits, which does not count as hanging.

#include <chrono>

#include "head/head_fixture.hpp"
#include "support/catch.hpp"
#include "worker/worker_fixture.hpp"

namespace flow_control_test {

using namespace ranktune;
using namespace ranktune::worker;
using namespace ranktune::comm;
using namespace ranktune::testing;

namespace {

constexpr Rank leader{1};
const AttemptKey a = key_for(5);

/// Rank 1 trains alone in attempt `a`, and has reported `count` times.
class Reporting : public WorkerFixture {
  public:
    explicit Reporting(std::uint64_t count) : WorkerFixture(leader, 10s) {
        from(head, start_of(a, {leader}), at(0s));
        for (std::uint64_t i = 1; i <= count; ++i) runner->events.emplace_back(RunnerReported{i, 0.1, {}});
        tick(at(1s));
    }
    std::uint64_t sent() {
        std::uint64_t reports = 0;
        for (; out.count(head) > 0; ++reports) static_cast<void>(out.take<study::ReportArrived>(head));
        return reports;
    }
};

} // namespace

TEST_CASE("A leader is at most a window of reports ahead of the head", "[head]") {
    Reporting w(2 * report_window);
    CHECK(w.sent() == report_window);
    w.tick(at(2s));
    CHECK(w.sent() == 0);
    w.from(w.head, ReportsTaken{a, 64}, at(2s));
    w.from(w.head, ReportsTaken{a, 64}, at(2s)); // a repeated message frees no room
    w.from(w.head, ReportsTaken{a, 32}, at(2s)); // nor does an older one
    w.tick(at(2s));
    CHECK(w.sent() == 64);
    w.from(w.head, ReportsTaken{a, report_window + 65}, at(2s)); // more than were sent
    w.from(w.head, ReportsTaken{key_for(5, 2), 128}, at(2s));    // of another attempt
    w.tick(at(2s));
    CHECK(w.sent() == 0);
    CHECK(w.machine->stale_messages() == 2);
    w.from(w.head, ReportsTaken{a, report_window + 64}, at(3s));
    w.tick(at(3s));
    CHECK(w.sent() == report_window - 64);
}

TEST_CASE("A trial that the head holds up has not hung, and can still be given up", "[head]") {
    Reporting w(report_window + 1);
    CHECK(w.sent() == report_window);
    for (int s = 2; s < 50; s += 5) w.tick(at(std::chrono::seconds(s)));
    CHECK_FALSE(w.machine->end().has_value());
    w.from(w.head, abandon_of(a, {leader}), at(50s));
    w.happened(RunnerEnded{}, at(50s));
    CHECK(w.out.take<GroupOver>(w.head).over.outcome == study::AttemptOutcome::lost);
    w.out.check_empty(); // its last report is dropped
}

TEST_CASE("User code that waits for the head or for other ranks has not hung", "[head]") {
    Reporting w(1);
    w.sent();
    w.runner->waiting = true;
    for (int s = 2; s < 50; s += 5) w.tick(at(std::chrono::seconds(s)));
    CHECK_FALSE(w.machine->end().has_value());
    w.runner->waiting = false;
    w.tick(at(52s));
    CHECK_FALSE(w.machine->end().has_value());
    w.tick(at(58s)); // ten seconds after it last waited
    REQUIRE(w.machine->end().has_value());
    CHECK(w.machine->end()->guilty);
}

TEST_CASE("The head says from time to time how many reports it has taken", "[head]") {
    HeadFixture h(1);
    h.join(1);
    const auto start = h.out.take<study::StartTrial>(leader);
    const AttemptKey key = key_of(start);
    for (std::uint64_t i = 1; i < report_window_step; ++i) h.report(leader, start, 1s);
    CHECK(h.out.count(leader) == 0);
    h.report(leader, start, 1s); // repeated reports count too: the leader counts what it sends
    CHECK(h.out.take<ReportsTaken>(leader) == ReportsTaken{key, report_window_step});
    auto again = HeadFixture::report_of(start);
    again.attempt = base::AttemptId{2};
    for (std::uint64_t i = 0; i < report_window_step; ++i) h.from(leader, again, 1s);
    CHECK(h.out.take<ReportsTaken>(leader) == ReportsTaken{key_of(again), report_window_step});
}

} // namespace flow_control_test
