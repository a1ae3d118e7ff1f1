// SPDX-License-Identifier: Apache-2.0
#include "ranktune/ddp/timeline.hpp"

#include <nlohmann/json.hpp>

#include "support/catch.hpp"

namespace timeline_test {

using namespace ranktune::ddp;

namespace {
Timeline example() {
    Timeline timeline([] { return 0.0; });
    timeline.computed("forward", 0.0, 2.0);
    timeline.computed("backward", 2.0, 6.0);
    timeline.reduced("bucket 0", 3.0, 5.0);
    timeline.reduced("bucket 1", 4.0, 7.0); // overlaps the first
    timeline.waited("wait", 6.0, 7.0);
    return timeline;
}
} // namespace

TEST_CASE("time in flight counts overlapping reductions once", "[ddp]") {
    const Timeline::Summary summary = example().summary();
    CHECK(summary.in_flight_s == Approx(4.0));
    CHECK(summary.waited_s == Approx(1.0));
    CHECK(summary.hidden() == Approx(0.75));
}

TEST_CASE("without communication the hidden share is one", "[ddp]") {
    CHECK(Timeline([] { return 0.0; }).summary().hidden() == 1.0);
}

TEST_CASE("a Chrome trace is valid JSON with microseconds and one process per rank", "[ddp]") {
    Timeline timeline = example();
    timeline.computed("quote \" and \\ back", 8.0, 9.0);
    const nlohmann::json trace = nlohmann::json::parse(timeline.chrome_trace(3));
    std::size_t spans = 0;
    for (const auto& event : trace.at("traceEvents")) {
        CHECK(event.at("pid") == 3);
        if (event.at("ph") != "X") continue;
        ++spans;
        if (event.at("name") == "bucket 1") {
            CHECK(event.at("ts").get<double>() == Approx(4e6));
            CHECK(event.at("dur").get<double>() == Approx(3e6));
        }
    }
    CHECK(spans == 6);
}

TEST_CASE("a full lane drops later spans", "[ddp]") {
    Timeline timeline([] { return 0.0; }, 2);
    for (int i = 0; i < 5; ++i) timeline.waited("wait", i, i + 1);
    CHECK(timeline.waits().size() == 2);
}

} // namespace timeline_test
