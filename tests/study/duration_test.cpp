// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "ranktune/study/parse.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace duration_test {

using namespace ranktune;
using namespace ranktune::study;
using namespace std::chrono_literals;

namespace {
std::string refusal(const std::string& text) {
    return ranktune::testing::error_of<base::UsageError>([&] { return parse_duration(text); });
}
} // namespace

TEST_CASE("durations are read in all written forms", "[study]") {
    CHECK(parse_duration("90m") == 90min);
    CHECK(parse_duration("2h30m") == 150min);
    CHECK(parse_duration("45s") == 45s);
    CHECK(parse_duration("1.5h") == 90min);
    CHECK(parse_duration("1h0.5m") == 60min + 30s);
    CHECK(parse_duration("250ms") == 250ms);
    CHECK(parse_duration("2d") == 48h);
    CHECK(parse_duration("1d2h3m4s5ms") == 26h + 3min + 4s + 5ms);
    CHECK(parse_duration("1m30s") == 90s);
    CHECK(parse_duration("0.1s") == 100ms);
    CHECK(parse_duration("0s") == 0s);
    CHECK(parse_duration("04:00:00") == 4h);
    CHECK(parse_duration("4:00:00") == 4h);
    CHECK(parse_duration("100:59:59") == 100h + 59min + 59s);
    CHECK(parse_duration("2-03:04:05") == 51h + 4min + 5s);
    CHECK(parse_duration("0-23:00:00") == 23h);
}

TEST_CASE("a duration with one colon is refused: Slurm and people read it differently", "[study]") {
    CHECK(refusal("4:00") ==
          "\"4:00\" is not a duration: Slurm reads minutes, people mean hours; write \"4:00:00\" or "
          "\"0:4:00\"");
    CHECK(parse_duration("0:4:00") == 4min);
}

TEST_CASE("text that is no duration is refused with a reason", "[study]") {
    CHECK(refusal("") == "\"\" is not a duration: it is empty");
    CHECK(refusal("90").find("it needs a unit: \"90s\", \"90m\" or \"90h\"") != std::string::npos);
    CHECK(refusal("30m2h").find("from the largest to the smallest") != std::string::npos);
    CHECK(refusal("1h1h").find("from the largest to the smallest") != std::string::npos);
    CHECK(refusal("1.5h30m").find("only the last number") != std::string::npos);
    CHECK(refusal("2-03").find("needs a number") == std::string::npos);
    CHECK(refusal("1-24:00:00").find("hours go up to 23") != std::string::npos);
    CHECK(refusal("1:60:00").find("go up to 59") != std::string::npos);
    CHECK(refusal("1:00:60").find("go up to 59") != std::string::npos);
    CHECK(refusal("101y").find("the units are d, h, m, s and ms") != std::string::npos);
    CHECK(refusal("36601d").find("a hundred years") != std::string::npos);
    CHECK(refusal("99999999999999999999999d").find("a hundred years") != std::string::npos);
    CHECK(refusal("99999999999999999999-00:00:00").find("a hundred years") != std::string::npos);
    for (const std::string text : {"h", "-1h", "1 h", "1h ", "1,5h", "1.h", ".5h", "1e3s", "nan", "inf", ":",
                                   "::", "1:2:3:4", "a:00:00", "1:00:", "1-2-03:00:00", "1h:00:00", "\xC3\xA9", "5µs"})
        CHECK(!refusal(text).empty());
}

TEST_CASE("duration_text reads back as the same duration", "[study]") {
    CHECK(duration_text(150min) == "2h30m");
    CHECK(duration_text(45s) == "45s");
    CHECK(duration_text(0s) == "0s");
    CHECK(duration_text(36h) == "36h");
    CHECK(duration_text(1500ms) == "1s500ms");
    CHECK(duration_text(1h + 1ms) == "1h1ms");
    CHECK(duration_text(-90s) == "-1m30s");
    CHECK(duration_text(1600us) == "2ms");
    for (const base::Duration duration :
         std::vector<base::Duration>{1ms, 999ms, 1s, 59s, 60s, 61s, 59min + 59s, 24h, 25h + 61s, 876000h, 12345678ms})
        CHECK(parse_duration(duration_text(duration)) == duration);
}

} // namespace duration_test
