// SPDX-License-Identifier: Apache-2.0
// A program that saves its state when it is told to, and goes on.

#include <algorithm>

#include "trial/program_fixture.hpp"

namespace ranktune::testing::program_saves_test {

using study::Verb;
using trial::RunnerReported;

namespace {

/// Two ranks that train in step, and save at different speeds. The argument says what is wrong with the program.
constexpr const char* saving = R"(
mode = sys.argv[1].partition("=")[2]
if "RANKTUNE_CHECKPOINT" in os.environ:
    print("from", *sorted(os.listdir(os.environ["RANKTUNE_CHECKPOINT"])), first)
def in_step(iteration):
    open(os.path.join(folder, f"rank{rank}.{iteration}"), "w").close()
    while not os.path.exists(os.path.join(folder, f"rank{1 - rank}.{iteration}")):
        time.sleep(0.002)
for iteration in range(first, 28):
    in_step(iteration)
    decision = report(iteration, can_save=True, can_go_on=mode != "ends")
    if "save_to" in decision:
        time.sleep(0.05 * rank)
        open(os.path.join(decision["save_to"], str(rank)), "w").write(str(iteration))
        if mode != "silent" or rank == 0:
            send(checkpoint="/etc/hosts" if mode == "elsewhere" else decision["save_to"])
    if decision["decision"] != "continue":
        sys.exit(0)
)";

std::vector<RankLog> run(Programs& programs, const std::string& mode) {
    programs.cluster.spec().checkpoint.interval = study::CheckpointSpec::Interval::iterations;
    programs.cluster.spec().checkpoint.iterations = 4;
    programs.cluster.configuration.set("mode", mode);
    programs.cluster.prepare(2, 99);
    return programs.cluster.run([&](const RunnerReported& report) {
        if (report.iteration == 16) programs.cluster.thread(0).interrupt({Verb::discard, study::Reason::none, 0, 0});
    });
}

} // namespace

TEST_CASE("a program saves on the way, and its checkpoint counts when every rank has saved", "[trial]") {
    Programs programs(2, saving);
    const auto logs = run(programs, "well");
    check_outcomes(logs, AttemptOutcome::stopped);
    CHECK(logs[0].unsaved.empty());
    REQUIRE(logs[0].saved.size() >= 2);
    CHECK(logs[0].saved[0].iteration == 4);
    for (const auto& checkpoint : logs[0].saved) {
        const std::string at = std::to_string(checkpoint.iteration);
        for (const char* part : {"/0", "/1"})
            CHECK(read_file(programs.home.path() + "/" + checkpoint.path + "/" + at + part) == at);
    }
    programs.cluster.prepare(2, 99, logs[0].saved[0]);
    check_outcomes(programs.cluster.run_until(5, Verb::discard), AttemptOutcome::stopped);
    CHECK(programs.printed().find("from 0 1 5\n") != std::string::npos);
    CHECK(programs.scratch_is_empty());
}

TEST_CASE("a program that saves only when it ends is not asked on the way", "[trial]") {
    Programs programs(2, saving);
    const auto logs = run(programs, "ends");
    check_outcomes(logs, AttemptOutcome::stopped);
    CHECK(logs[0].saved.empty());
    CHECK(logs[0].unsaved.empty());
}

TEST_CASE("a checkpoint on the way that is not there costs nothing else", "[trial]") {
    Programs programs(2, saving);
    const auto [mode, why] = GENERATE(
        table<std::string, std::string>({{"silent", "rank 1 of the program was told to save its state, and did not"},
                                         {"elsewhere", "outside of the folder that it was given: /etc/hosts"}}));
    const auto logs = run(programs, mode);
    check_outcomes(logs, AttemptOutcome::stopped);
    CHECK(logs[0].saved.empty());
    CHECK(logs[0].reports.size() >= 16);
    REQUIRE(logs[0].unsaved.size() >= 2);
    CHECK(logs[0].unsaved[0].find(why) != std::string::npos);
}

} // namespace ranktune::testing::program_saves_test
