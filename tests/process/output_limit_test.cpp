// SPDX-License-Identifier: Apache-2.0
// How much of a program's output goes into the log.
#include "process/output_limit.hpp"

#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"

using ranktune::process::OutputLimit;

TEST_CASE("of output the beginning and the end are written, each time that it is over", "[process]") {
    std::vector<std::string> written;
    OutputLimit limit({.first = 8, .last = 8}, [&](std::string_view line) { written.emplace_back(line); });
    const auto taken = [&] { return std::exchange(written, {}); };
    const auto lines = [&](std::initializer_list<const char*> all) {
        for (const char* line : all) limit.line(line);
    };
    lines({"one", "two", "3"});
    REQUIRE(written.size() == 3);
    CHECK(written[2].starts_with("... the program has printed 8 bytes"));
    lines({"four", "five", "six", "end"});
    CHECK(taken().size() == 3);
    limit.finish();
    CHECK(taken() == std::vector<std::string>{"... 3 lines of 12 bytes were left out here", "six", "end"});
    lines({"seven", "8", "9"}); // it goes on, and so does the limit
    CHECK(taken().empty());
    limit.finish();
    CHECK(taken() == std::vector<std::string>{"... 1 lines of 6 bytes were left out here", "8", "9"});
    limit.finish();
    CHECK(taken().empty());
    limit.begin_again();
    lines({"one", "two", "3"});
    REQUIRE(written.size() == 3);
    CHECK(taken().front() == "one");
    limit.finish();
    CHECK(taken() == std::vector<std::string>{"3"});
}
