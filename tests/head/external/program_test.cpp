// SPDX-License-Identifier: Apache-2.0
// Conversations with real programs: good ones, and ones that end, say nothing or answer wrongly.

#include "head/external/program.hpp"

#include <chrono>
#include <string>
#include <vector>

#include "head/external/question.hpp"
#include "ranktune/base/error.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/files.hpp"
#include "support/spawned.hpp"

namespace ranktune::head::testing {
namespace {

using namespace std::chrono_literals;

space::SearchSpace one_number() {
    return space::SearchSpace({{"x", space::parse_domain("randint(0, 1000)"), std::nullopt}});
}

/// Answers each ask with the number of lines that it has read so far, its own start included.
const char* counting() {
    return R"(n=0; while read -r line; do n=$((n + 1)); case $line in '{"ask":'*)
    a=${line#'{"ask":'}; echo "{\"ask\": ${a%'}'}, \"config\": {\"x\": $n}}";; esac; done)";
}

std::string failure(SearchProgram& program, const searchers::ExternalQuestion& question) {
    return ranktune::testing::error_of([&] { return program.answer(question); });
}

} // namespace

TEST_CASE("a program is told every line once, and answers", "[external]") {
    Study study(one_number(), counting());
    SearchProgram program(program_environment("/d"), [](std::string_view) {});
    CHECK(program.answer(study.question(0)).text() == "x=2"); // the study and the ask
    CHECK(program.answer(study.question(1)).text() == "x=3");
    const TrialId trial = study.create(study.setting->space.decode(std::vector<double>{0.5}), 0);
    study.report(trial, 1, 0.5);
    CHECK(program.answer(study.question(2)).text() == "x=6");
}

TEST_CASE("a program that was started anew is told everything again", "[external]") {
    Study study(one_number(), counting());
    for (int i = 0; i < 3; ++i) study.create(study.setting->space.decode(std::vector<double>{0.5}));
    SearchProgram first(program_environment("/d"), [](std::string_view) {});
    CHECK(first.answer(study.question(0)).text() == "x=5");
    study.setting->command = std::string("exit 3");
    SearchProgram second(program_environment("/d"), [](std::string_view) {});
    CHECK(failure(second, study.question(1)) == "the program 'exit 3' ended (exit code 3) instead of answering");
    study.setting->command = counting();
    CHECK(second.answer(study.question(2)).text() == "x=5");
}

TEST_CASE("ten thousand lines are told to a program that reads slowly", "[external]") {
    Study study(one_number(), std::string("sleep 0.2; ") + counting(), 120s);
    for (int i = 0; i < 10'000; ++i) study.create(study.setting->space.decode(std::vector<double>{0.5}));
    study.setting->command = R"(sleep 0.2; python3 -c '
import json, sys
for n, line in enumerate(sys.stdin):
    if "ask" in json.loads(line): print(json.dumps({"ask": 0, "config": {"x": n // 100}}), flush=True)
')";
    SearchProgram program(program_environment("/d"), [](std::string_view) {});
    CHECK(program.answer(study.question(0)).text() == "x=100");
}

TEST_CASE("a program that ends, says nothing or answers wrongly is named", "[external]") {
    SearchProgram program(program_environment("/d"), [](std::string_view) {});
    Study study(one_number(), "echo no module >&2; exit 1");
    CHECK(failure(program, study.question(0)) ==
          "the program 'echo no module >&2; exit 1' ended (exit code 1) instead of answering; it said: no module");
    study.setting->command = R"(printf 'a warning\n  at line 3\nValueError: no\n \n' >&2; exit 1)";
    CHECK(failure(program, study.question(1)).ends_with(" instead of answering; it said: ValueError: no"));
    study.setting->command = "echo Hello; cat > /dev/null";
    CHECK(failure(program, study.question(1)) ==
          R"(the program 'echo Hello; cat > /dev/null' wrote 'Hello', where {"ask": N, "config": {...}} is expected)");
    study.setting->command = R"(head -c 2000000 /dev/zero | tr '\0' x; cat > /dev/null)";
    CHECK(failure(program, study.question(1)).find(" wrote a line of more than 1048576 bytes: 'xxx") !=
          std::string::npos);
    study.setting->command = R"(head -c 65 /dev/zero | tr '\0' '['; echo; cat > /dev/null)";
    CHECK(failure(program, study.question(1))
              .ends_with(" wrote a line in which more than 64 lists and objects lie inside each other"));
    study.setting->command = "cat > /dev/null";
    study.setting->timeout = 200ms;
    CHECK(failure(program, study.question(2)) ==
          "the program 'cat > /dev/null' gave no answer within 200ms (searcher.timeout)");
    study.setting->directory = "/nowhere";
    const std::string unstarted = failure(program, study.question(3));
    CHECK(unstarted.starts_with("the program 'cat > /dev/null' cannot be started: ") ==
          ranktune::testing::children_tell_errors);
    study.setting->directory = "/";
    study.setting->timeout = 30s;
    study.setting->command = counting();
    CHECK(program.answer(study.question(4)).text() == "x=2");
}

TEST_CASE("a program that ended between two questions is named by the second one", "[external]") {
    Study study(one_number(), R"(read -r a; read -r b; echo '{"ask": 0, "config": {"x": 1}}'; kill -9 $$)");
    SearchProgram program(program_environment("/d"), [](std::string_view) {});
    CHECK(program.answer(study.question(0)).text() == "x=1");
    CHECK(failure(program, study.question(1)).find("ended (killed by signal 9") != std::string::npos);
}

TEST_CASE("what a program writes to its standard error is passed on; launchers leave no trace", "[external]") {
    setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    Study study(one_number(), std::string("echo $RANKTUNE_STUDY_DIR:$OMPI_COMM_WORLD_RANK: >&2;") + counting());
    std::vector<std::string> said;
    SearchProgram program(program_environment("/d"), [&](std::string_view line) { said.emplace_back(line); });
    static_cast<void>(program.answer(study.question(0)));
    for (int i = 0; i < 100 && said.empty(); ++i) static_cast<void>(program.answer(study.question(0)));
    CHECK(said == std::vector<std::string>{"/d::"});
}

} // namespace ranktune::head::testing
