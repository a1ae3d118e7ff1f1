// SPDX-License-Identifier: Apache-2.0
// A state that cannot be saved: who is charged for it, and when a trial trains on without.

#include <algorithm>
#include <stdexcept>
#include <system_error>

#include "worker/trial/program_fixture.hpp"

namespace ranktune::testing::last_save_test {

using namespace ranktune::worker;
using study::Verb;

namespace {

/// A program of two ranks, asked to save after its first report.
constexpr const char* asked = R"(
decision = report(1.0, can_save=True)
to = decision.get("save_to")
)";

/// Ends the attempt after its first report; the outcomes of the ranks are in `logs`.
std::vector<RankLog> end_of(Programs& programs, int ranks, Verb verb) {
    programs.cluster.prepare(ranks, 1);
    return programs.cluster.run_until(1, verb);
}

/// The outcome that counts for the trial: Part::summary takes the worst.
AttemptOutcome outcome_of(const std::vector<RankLog>& logs) {
    const bool is_unsaved =
        std::ranges::any_of(logs, [](const RankLog& log) { return log.ended->outcome == AttemptOutcome::unsaved; });
    return is_unsaved ? AttemptOutcome::unsaved : logs[0].ended->outcome;
}

bool contains(const std::string& text, const std::string& part) {
    INFO(text);
    return text.find(part) != std::string::npos;
}

/// A class whose state cannot be saved on one rank.
struct Unsavable final : trainables::Trainable {
    enum class Why { mistake, full };
    Unsavable(Why why_not, int on_rank) : why(why_not), bad(on_rank) {}
    void setup(trainables::TrialContext& context) override { rank = context.rank(); }
    trainables::Metrics step(trainables::TrialContext&) override { return {{"value", value += 1.0}}; }
    void save(study::StateSink& sink) const override {
        if (rank == bad && why == Why::mistake) throw std::runtime_error("cannot save this");
        if (rank == bad) throw std::system_error(std::make_error_code(std::errc::no_space_on_device), "own file");
        sink.put<double>("value", std::span(&value, 1));
    }
    void load(study::StateSource& source) override { source.get<double>("value", std::span(&value, 1)); }
    Why why;
    int bad;
    int rank = 0;
    double value = 0.0;
};

trainables::Registration unsavable(Unsavable::Why why, int on_rank = 0) {
    return {any_trainable("unsavable"), [=] { return std::make_unique<Unsavable>(why, on_rank); }, {}};
}

} // namespace

TEST_CASE("whatever keeps a program from saving its last state, a trial that stops has no failure, but no state",
          "[trial]") {
    const auto [what, ending, why] = GENERATE(table<std::string, std::string, std::string>(
        {{"it ends", "", "was told to save its state and to stop at iteration 1, and ended without having saved it"},
         {"it throws", "if rank == 0:\n    raise RuntimeError('cannot pickle')\n",
          "without having saved it: exit code 1: RuntimeError: cannot pickle"},
         {"it exits", "sys.exit(9)\n", "without having saved it: exit code 9"},
         {"it is killed", "if rank == 0:\n    os.kill(os.getpid(), signal.SIGKILL)\n",
          "without having saved it: killed by signal 9"},
         {"it says why", "if rank == 0:\n    send(failed='saving', log='while saving at iteration 1: ValueError')\n",
          "rank 0: while saving at iteration 1: ValueError"},
         {"it says why on another rank",
          "if rank == 0:\n    open(to + '/0', 'w').close()\n    send(checkpoint=to)\n"
          "else:\n    send(failed='saving', log='while saving at iteration 1: ValueError')\n",
          "rank 1: while saving at iteration 1: ValueError"},
         {"it is killed on another rank",
          "if rank == 0:\n    open(to + '/0', 'w').close()\n    send(checkpoint=to)\n"
          "else:\n    os.kill(os.getpid(), signal.SIGKILL)\n",
          "rank 1: the program was told to save its state and to stop at iteration 1, and ended without having saved "
          "it: "
          "killed by signal 9"},
         {"there is nothing", "if rank == 0:\n    send(checkpoint='/no/such/file')\n",
          "while saving at iteration 1: cannot take over the checkpoint that the program named: there is no "
          "'/no/such/file'"},
         {"there is nothing in the folder", "if rank == 0:\n    send(checkpoint=to)\n", "is an empty folder"}}));
    Programs programs(2, asked + ending);
    DYNAMIC_SECTION(what) {
        const auto logs = end_of(programs, 2, Verb::stop);
        CHECK(outcome_of(logs) == AttemptOutcome::unsaved);
        CHECK(contains(blame(logs), why));
        CHECK(logs[0].saved.empty());
        CHECK(programs.scratch_is_empty());
    }
}

TEST_CASE("a rank that has said that its part is saved may end as it likes", "[trial]") {
    Programs programs(2, asked + std::string("open(to + f'/{rank}', 'w').close()\nsend(checkpoint=to)\n"
                                             "if rank == 1:\n    os.kill(os.getpid(), signal.SIGKILL)\n"));
    check_outcomes(end_of(programs, 2, Verb::stop), AttemptOutcome::stopped);
}

TEST_CASE("a checkpoint that a program reported and that is gone when it stops is a missing state", "[trial]") {
    Programs programs(1, "report(1.0, checkpoint='/no/such/file')\n");
    CHECK(outcome_of(end_of(programs, 1, Verb::stop)) == AttemptOutcome::unsaved);
}

TEST_CASE("a program that stops and takes too long to save leaves no state", "[trial]") {
    Programs programs(1, "report(1.0, can_save=True)\ntime.sleep(1000)\n");
    programs.cluster.spec().output.abort_grace = 50ms;
    const auto logs = end_of(programs, 1, Verb::stop);
    CHECK(outcome_of(logs) == AttemptOutcome::unsaved);
    CHECK(contains(blame(logs), " in vain for rank 0 (to save its state)"));
}

TEST_CASE("a program whose file cannot be written is not charged, whatever it was told", "[trial]") {
    const std::string full = "send(failed='storage', log='OSError: [Errno 28] No space left')";
    const Verb verb = GENERATE(Verb::pause, Verb::stop);
    const std::string rank = GENERATE("0", "1");
    Programs programs(2, asked + ("if rank == " + rank + ":\n    " + full + "\n    sys.exit(1)\n") +
                             "if rank == 0:\n    open(to + '/0', 'w').close()\n    send(checkpoint=to)\n");
    const auto logs = end_of(programs, 2, verb);
    CHECK(outcome_of(logs) == AttemptOutcome::unsaved);
    CHECK(contains(blame(logs), "rank " + rank + ": OSError: [Errno 28] No space left"));
    Programs training(1, "report(1.0)\n" + full + "\nsys.exit(1)\n");
    training.cluster.prepare(1, 99);
    CHECK(outcome_of(training.cluster.run_until(99)) == AttemptOutcome::unsaved);
    for (const std::string says :
         {"print('cp: error writing: No space left on device', file=sys.stderr)\nos._exit(1)",
          "print('Error: ENOSPC: no space left on device, write')\nfor _ in range(20): print('at')\nsys.exit(1)",
          "sys.exit('sqlite3.OperationalError: database or disk is full')",
          "send(failed='error', log='OSError: 600000 requested and 131072 written')\nsys.exit(1)",
          "send(failed='device-memory', log='/ckpt; No space left on device [Op:SaveV2]')\nsys.exit(1)"}) {
        Programs hiding(1, "report(1.0)\n" + says + "\n");
        hiding.cluster.prepare(1, 99);
        CHECK(outcome_of(hiding.cluster.run_until(99)) == AttemptOutcome::unsaved);
    }
    Programs earlier(
        1, "print('No space left on device', flush=True)\nfor i in range(3): report(1.0)\nsys.exit('other')\n");
    earlier.cluster.prepare(1, 99);
    CHECK(outcome_of(earlier.cluster.run_until(99)) == AttemptOutcome::failed);
    Programs limited(1,
                     "report(1.0)\nsignal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"
                     "os.kill(os.getpid(), signal.SIGXFSZ)\n");
    limited.cluster.prepare(1, 99);
    CHECK(outcome_of(limited.cluster.run_until(99)) == AttemptOutcome::unsaved);
}

TEST_CASE("a folder for a state that cannot be made is not the program's fault", "[trial]") {
    Programs programs(1, "os.rmdir(folder)\nopen(folder, 'w').close()\nreport(1.0, can_save=True)\n");
    const auto logs = end_of(programs, 1, GENERATE(Verb::pause, Verb::stop));
    CHECK(outcome_of(logs) == AttemptOutcome::unsaved);
    CHECK(contains(blame(logs), "cannot create the directory '"));
}

TEST_CASE("a program that cannot save on the way says so, and trains on", "[trial]") {
    Programs programs(1, R"(
for iteration in range(first, 9):
    decision = report(iteration, can_save=True, can_go_on=True)
    if "save_to" in decision:
        send(failed="saving", log=f"while saving at iteration {iteration}: ValueError")
    if decision["decision"] != "continue":
        sys.exit(0)
)");
    programs.cluster.spec().checkpoint.interval = study::CheckpointSpec::Interval::iterations;
    programs.cluster.spec().checkpoint.iterations = 2;
    programs.cluster.prepare(1, 5);
    const auto logs = programs.cluster.run_until(5, Verb::discard);
    check_outcomes(logs, AttemptOutcome::stopped);
    REQUIRE_FALSE(logs[0].unsaved.empty());
    CHECK(logs[0].unsaved[0] == "while saving at iteration 2: ValueError");
    CHECK(logs[0].saved.empty());
}

TEST_CASE("a program that does not come back from saving the best state so far has not failed", "[trial]") {
    const auto [ending, why] = GENERATE(table<std::string, std::string>(
        {{"os.kill(os.getpid(), signal.SIGKILL)", "while saving at iteration 1: killed by signal 9"},
         {"os._exit(0)", "while saving at iteration 1: exit code 0"},
         {"send(failed='saving', log='while saving at iteration 1: ValueError')\nif rank == 1: "
          "wait_for('/on')\nsys.exit(1)",
          "while saving at iteration 1: ValueError"},
         {"time.sleep(1000)", "while saving at iteration 1: waited "}}));
    const bool hangs = why.ends_with("waited ");
    const int ranks = GENERATE(1, 2); // the last one is it
    for (const bool is_best : {true, false}) {
        // Rank 0 does not run ahead: a rank without a report for `abort_grace` counts as one that never reports.
        Programs programs(2,
                          "def wait_for(name):\n    while not os.path.exists(folder + name): time.sleep(0.002)\n"
                          "if rank + 1 < size: wait_for('/begun')\nelse: open(folder + '/begun', 'w').close()\n"
                          "to = report(1.0, can_save=True, can_go_on=True)['save_to']\n"
                          "if rank + 1 < size:\n    wait_for('/told')\n    open(to + '/0', 'w').close()\n"
                          "    send(checkpoint=to)\n    send(report={'score': 2.0}, can_save=True, can_go_on=True)\n"
                          "    answer()\n    open(folder + '/on', 'w').close()\n    time.sleep(1000)\n"
                          "open(folder + '/told', 'w').close()\n" +
                              ending + "\n");
        if (hangs) programs.cluster.spec().output.abort_grace = 200ms;
        if (hangs && !is_best) continue;                                 // failure.report_timeout
        if (why.ends_with("code 0") && ranks == 2 && !is_best) continue; // the same
        programs.cluster.spec().checkpoint.interval = study::CheckpointSpec::Interval::iterations;
        programs.cluster.spec().checkpoint.iterations = 1;
        auto& start = programs.cluster.prepare(ranks, 99);
        if (is_best) start.to_beat.reset();
        const auto logs = programs.cluster.run_until(99);
        CHECK((outcome_of(logs) == AttemptOutcome::unsaved) == is_best);
        CHECK(logs[0].saved.empty());
        if (is_best) CHECK(contains(blame(logs), "rank " + std::to_string(ranks - 1) + ": "));
        if (is_best) CHECK(contains(blame(logs), why));
    }
}

TEST_CASE("a class that cannot save its last state has failed where it pauses, and keeps its results where it stops",
          "[trial]") {
    using Why = Unsavable::Why;
    const auto end = [](Why why, int rank, Verb verb) {
        TrialCluster cluster(2, unsavable(why, rank));
        cluster.spec().checkpoint.interval = study::CheckpointSpec::Interval::none;
        cluster.prepare(2, 1);
        const auto logs = cluster.run_until(1, verb);
        CHECK(contains(blame(logs), why == Why::full ? "while saving at iteration 1: own file: No space left on device"
                                                     : "cannot save this"));
        return outcome_of(logs);
    };
    for (const int rank : {0, 1}) {
        CHECK(end(Why::mistake, rank, Verb::stop) == AttemptOutcome::unsaved);
        CHECK(end(Why::mistake, rank, Verb::pause) == AttemptOutcome::failed);
        CHECK(end(Why::full, rank, Verb::stop) == AttemptOutcome::unsaved);
        CHECK(end(Why::full, rank, Verb::pause) == AttemptOutcome::unsaved);
    }
}

TEST_CASE("a trial that pauses for the end of the job, and cannot save, has not failed", "[trial]") {
    const auto end = [](TrialCluster& cluster) {
        cluster.prepare(2, 1);
        return outcome_of(cluster.run([&](const RunnerReported& report) {
            if (report.iteration == 1) cluster.answer(1, Verb::pause, 0, study::Reason::draining);
        }));
    };
    for (const std::string rank : {"0", "1"}) {
        Programs programs(2, asked + ("if rank == " + rank + ":\n    send(failed='saving', log='ValueError')\n") +
                                 "elif rank == 0:\n    open(to + '/0', 'w').close()\n    send(checkpoint=to)\n");
        CHECK(end(programs.cluster) == AttemptOutcome::unsaved);
        TrialCluster cluster(2, unsavable(Unsavable::Why::mistake, rank == "0" ? 0 : 1));
        CHECK(end(cluster) == AttemptOutcome::unsaved);
    }
}

TEST_CASE("a class that cannot save on the way trains on alone, and fails with others, which may be out of step",
          "[trial]") {
    for (const int ranks : {1, 2}) {
        TrialCluster cluster(2, unsavable(Unsavable::Why::mistake));
        cluster.spec().checkpoint.interval = study::CheckpointSpec::Interval::iterations;
        cluster.spec().checkpoint.iterations = 1;
        cluster.prepare(ranks, 3);
        const auto logs = cluster.run_until(3, Verb::discard);
        CHECK(logs[0].ended->outcome == (ranks == 1 ? AttemptOutcome::stopped : AttemptOutcome::failed));
        if (ranks == 1)
            CHECK(logs[0].unsaved == std::vector<std::string>{"while saving at iteration 1: cannot save this",
                                                              "while saving at iteration 2: cannot save this"});
    }
}

} // namespace ranktune::testing::last_save_test
