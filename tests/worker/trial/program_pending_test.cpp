// SPDX-License-Identifier: Apache-2.0
// Checkpoints that a program names before they are complete.

#include "worker/trial/program_fixture.hpp"

namespace ranktune::testing::program_pending_test {

using study::Verb;
using worker::RunnerReported;

namespace {

/// Both ranks write one folder, as torch.distributed.checkpoint does. The last file comes when `finish` is called.
constexpr const char* in_parts = R"(
def begin(iteration):
    path = os.path.join(folder, str(iteration))
    os.makedirs(path, exist_ok=True)
    open(path + f"/__{rank}_0.distcp", "w").write("part")
    send(report={"score": iteration} if rank == 0 else {}, pending=iteration + 10, **({"checkpoint": path} if rank == 0 else {}))
    return path
def finish(iteration, path, **more):
    if rank == 0:
        open(path + "/.metadata", "w").write("__0_0.distcp __1_0.distcp")
    send(checkpoint_done=iteration + 10, **more)
def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.002)
)";

struct InParts : Programs {
    explicit InParts(const std::string& text) : Programs(2, std::string(in_parts) + text) {
        cluster.spec().checkpoint.interval = study::CheckpointSpec::Interval::iterations;
        cluster.spec().checkpoint.iterations = 100;
        cluster.prepare(2, 1);
    }
    void touch(const std::string& name) const { std::ofstream(home.path() + "/" + name) << ""; }
    [[nodiscard]] fs::path place(const study::CheckpointRef& checkpoint) const {
        return fs::path(home.path()) / checkpoint.path / std::to_string(checkpoint.iteration);
    }
    /// Pauses at the first report, and then lets the program finish what it saves.
    std::vector<RankLog> pause() {
        return cluster.run([this](const RunnerReported&) {
            cluster.answer(1, Verb::pause);
            touch("go");
        });
    }
};

} // namespace

TEST_CASE("a pause waits until every rank has completed its part of the checkpoint", "[trial]") {
    InParts programs(R"(
path = begin(1)
wait_for("go")
if rank == 1:
    wait_for(os.path.join(path, ".metadata"))
finish(1, path)
sys.exit(0 if answer()["decision"] == "pause" else 1)
)");
    const auto logs = programs.pause();
    check_outcomes(logs, AttemptOutcome::paused);
    REQUIRE(logs[0].saved.size() == 1);
    CHECK(read_file((programs.place(logs[0].saved[0]) / ".metadata").string()) == "__0_0.distcp __1_0.distcp");
    CHECK(fs::exists(programs.place(logs[0].saved[0]) / "__1_0.distcp"));
}

TEST_CASE("a due checkpoint is taken over when it is complete, while the program goes on", "[trial]") {
    InParts programs(R"(
path = begin(1)
assert answer()["decision"] == "continue"
assert report(2.0)["decision"] == "continue"
finish(1, path)
while report(3.0)["decision"] == "continue":
    time.sleep(0.002)
)");
    programs.cluster.spec().checkpoint.iterations = 1;
    programs.cluster.prepare(2, 99);
    const auto logs = programs.cluster.run([&](const RunnerReported&) {
        if (!programs.cluster.logs[0].saved.empty())
            programs.cluster.thread(0).interrupt({Verb::discard, study::Reason::none, 0, 0});
    });
    check_outcomes(logs, AttemptOutcome::stopped);
    CHECK(logs[0].unsaved.empty());
    REQUIRE_FALSE(logs[0].saved.empty());
    CHECK(logs[0].saved[0].iteration == 1);
    CHECK(fs::exists(programs.place(logs[0].saved[0]) / ".metadata"));
}

TEST_CASE("a part that cannot be completed costs the checkpoint, and the trial only if it has to pause", "[trial]") {
    InParts pausing(R"x(
path = begin(1)
wait_for("go")
finish(1, path, **({"error": "OSError: no room (train.py:7)"
}
if rank == 1 else {}))
answer()
)x");
    const auto paused = pausing.pause();
    check_outcomes(paused, AttemptOutcome::failed);
    CHECK(blame(paused) == "rank 1: while saving at iteration 1: OSError: no room (train.py:7)");
    CHECK(paused[0].saved.empty());

    InParts full(
        "path = begin(1)\nwait_for('go')\n"
        "finish(1, path, **({'error': 'ValueError: no, after OSError: No space left on device'} if rank == 1 else "
        "{}))\n"
        "answer()\n");
    const auto unsaved = full.pause();
    CHECK(unsaved[1].ended->outcome == AttemptOutcome::unsaved);

    const auto [end, why] = GENERATE(table<std::string, std::string>({
        {"finish(1, path, **({'error': 'OSError: no room'} if rank == 1 else {}))",
         "rank 1 of the program could not complete"},
        {"begin(1)\nanswer()\nfinish(1, path)",
         "the program named the same path again before its checkpoint was complete"},
        {"sys.exit(0)", "of the program ended before its checkpoint was complete"},
    }));
    InParts going_on("path = begin(1)\nanswer()\n" + end + R"(
while report(3.0)["decision"] == "continue":
    time.sleep(0.002)
)");
    going_on.cluster.spec().checkpoint.iterations = 1;
    going_on.cluster.prepare(2, 99);
    const auto logs = going_on.cluster.run([&](const RunnerReported&) {
        if (!going_on.cluster.logs[0].unsaved.empty())
            going_on.cluster.thread(0).interrupt({Verb::discard, study::Reason::none, 0, 0});
    });
    for (const auto& log : logs)
        CHECK((log.ended->outcome == AttemptOutcome::stopped || log.ended->outcome == AttemptOutcome::finished));
    CHECK(logs[0].saved.empty());
    REQUIRE_FALSE(logs[0].unsaved.empty());
    CHECK(logs[0].unsaved[0].find(why) != std::string::npos);
}

TEST_CASE("a checkpoint that is named as complete and is not is refused", "[trial]") {
    Programs programs(1, R"(
path = os.path.join(folder, "1")
os.makedirs(path)
open(path + "/__0_0.distcp", "w").write("half")
report(1.0, checkpoint=path)
)");
    programs.cluster.prepare(1, 1);
    const auto logs = programs.cluster.run_until(1);
    check_outcomes(logs, AttemptOutcome::failed);
    CHECK(logs[0].saved.empty());
    CHECK(blame(logs) ==
          "rank 0: cannot take over the checkpoint that the program named: the checkpoint is incomplete: "
          ".metadata is missing; give report() the future of async_save");
}

} // namespace ranktune::testing::program_pending_test
