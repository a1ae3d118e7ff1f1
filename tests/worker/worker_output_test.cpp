// SPDX-License-Identifier: Apache-2.0
// What user code prints, in the log of its node.
#include "worker/worker_output.hpp"

#include <unistd.h>

#include "support/catch.hpp"
#include "support/files.hpp"

using namespace ranktune;

TEST_CASE("of what a trial prints the log has the beginning and the end, and all of the next one", "[group]") {
    const testing::TemporaryDirectory folder;
    const std::string file = folder.path() + "/workers.log";
    {
        worker::WorkerLog log(base::Rank(3));
        log.open(file);
        worker::WorkerOutput output(log);
        const auto print = [&](const std::string& text, std::uint32_t trial) { // less than the pipe holds
            REQUIRE(write(STDOUT_FILENO, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
            output.drain(base::TrialId(trial));
        };
        output.drain(base::TrialId(1));
        const std::string line = std::string(1023, 'x') + "\n";
        for (int i = 0; i < 12 << 10; ++i) print("line " + std::to_string(i) + " " + line, 1);
        for (int i = 0; i < 100; ++i) print(std::string(1024, 'y'), 1); // no line end
        print("\nlast words\n", 1);
        print("of the next one\n", 2);
        print("another\n", 2);
    }
    const std::string text = testing::read_file(file);
    CHECK(text.size() > (9U << 20U));
    CHECK(text.size() < (11U << 20U));
    CHECK(text.find("trial=1 | line 0 ") != std::string::npos);
    CHECK(text.find("lines of ") != std::string::npos);
    CHECK(text.find("trial=1 | last words\n") != std::string::npos);
    CHECK(text.find("trial=2 | another\n") > text.find("trial=1 | last words\n"));
    CHECK(text.find(std::string(70'000, 'y')) == std::string::npos);
}
