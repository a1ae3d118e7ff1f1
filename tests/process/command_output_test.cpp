// SPDX-License-Identifier: Apache-2.0
#include "process/command_output.hpp"

#include "support/catch.hpp"
#include "support/spawned.hpp"

namespace command_output_test {

using namespace ranktune::process;
using namespace std::chrono_literals;

TEST_CASE("A program's output, last error lines and exit code", "[process]") {
    const auto output = run_command({"/bin/sh", "-c", "echo out; echo err >&2; cat; exit 3"}, 60s);
    CHECK(output.text == "out\n"); // standard input is empty: cat ends
    CHECK(output.error == "err");
    CHECK(output.exit == 3);
    CHECK(output.no_exit == NoExit::none);
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
    CHECK(missing.no_exit == NoExit::no_such_program);
    CHECK_FALSE(missing.started());

    if (ranktune::testing::children_tell_errors) {
        const auto refused = run_command({"/dev/null"}, 60s); // no file that can be executed
        CHECK(refused.no_exit == NoExit::not_started);
        CHECK_FALSE(refused.started());
    }

    const auto killed = run_command({"/bin/sh", "-c", "kill -9 $$"}, 60s);
    CHECK_FALSE(killed.exit);
    CHECK(killed.no_exit == NoExit::killed);
    CHECK(killed.started());

    const auto lying = run_command({"/bin/sh", "-c", "echo 'cannot start it: no such program' >&2; kill -9 $$"}, 60s);
    CHECK(lying.started());

    const auto silent = run_command({"/bin/sh", "-c", "sleep 1000 & echo begun; wait"}, 300ms);
    CHECK_FALSE(silent.ok());
    CHECK(silent.error == "no answer within 0 s");
    CHECK(silent.text == "begun\n");
    CHECK(silent.no_exit == NoExit::timed_out);

    const auto closed = run_command({"/bin/sh", "-c", "exec >&- 2>&-; sleep 1000"}, 300ms);
    CHECK(closed.no_exit == NoExit::timed_out);
}

} // namespace command_output_test
