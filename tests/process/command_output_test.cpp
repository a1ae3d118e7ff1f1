// SPDX-License-Identifier: Apache-2.0
#include "process/command_output.hpp"

#include "support/catch.hpp"

namespace command_output_test {

using namespace ranktune::process;
using namespace std::chrono_literals;

TEST_CASE("A program's output, last error lines and exit code", "[process]") {
    const auto output = run_command({"/bin/sh", "-c", "echo out; echo err >&2; cat; exit 3"}, 60s);
    CHECK(output.text == "out\n"); // standard input is empty: cat ends
    CHECK(output.error == "err");
    CHECK(output.exit == 3);
    CHECK_FALSE(output.ok());
}

TEST_CASE("Output larger than a pipe is read to its end and kept up to a limit", "[process]") {
    const auto output = run_command({"/bin/sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x"}, 60s);
    CHECK(output.ok());
    CHECK(output.text.size() == 1 << 20);
}

TEST_CASE("A program that is missing, killed or silent throws nothing", "[process]") {
    const auto missing = run_command({"ranktune-no-such-program"}, 60s);
    CHECK_FALSE(missing.exit);
    CHECK(missing.error.find("no such program in PATH") != std::string::npos);

    CHECK_FALSE(run_command({"/bin/sh", "-c", "kill -9 $$"}, 60s).exit);

    const auto silent = run_command({"/bin/sh", "-c", "sleep 1000 & echo begun; wait"}, 300ms);
    CHECK_FALSE(silent.ok());
    CHECK(silent.error == "no answer within 0 s");
    CHECK(silent.text == "begun\n");
}

} // namespace command_output_test
