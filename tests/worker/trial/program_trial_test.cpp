// SPDX-License-Identifier: Apache-2.0
// Programs as trials, on one to three ranks that are threads: real processes, real checkpoint folders, scripted
// verdicts.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "process/output_limit.hpp"
#include "studydir/lone_reports.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "worker/checkpoints/store_io.hpp"
#include "worker/trial/program_fixture.hpp"
#include "worker/trial/rendezvous.hpp"

namespace ranktune::testing::program_trial_test {

using namespace ranktune::process;
using namespace ranktune::studydir;
using namespace ranktune::worker;
namespace {

using ranktune::testing::read_file;
using study::AttemptOutcome;
using study::Verb;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

/// Counts in a file, and saves it before each report.
constexpr const char* counting = R"(
total = int(open(os.environ["RANKTUNE_CHECKPOINT"]).read()) if "RANKTUNE_CHECKPOINT" in os.environ else 0
for iteration in range(first, 28):
    total += iteration
    path = os.path.join(folder, "state.txt")
    if rank == 0:
        open(path, "w").write(str(total))
    decision = report(total, checkpoint=path)
    assert decision["iteration"] == iteration
    if decision["decision"] != "continue":
        print(rank, decision["decision"], iteration)
        sys.exit(0)
)";

} // namespace

TEST_CASE("a program is paused, and resumes from its checkpoint on another number of ranks", "[trial]") {
    Programs programs(3, counting);
    for (const int ranks : {1, 3}) {
        programs.cluster.prepare(ranks, 3);
        const auto logs = programs.cluster.run_until(3);
        check_outcomes(logs, AttemptOutcome::paused);
        REQUIRE(logs[0].reports.size() == 3);
        CHECK(logs[0].reports[2].iteration == 3);
        CHECK(logs[0].reports[2].metrics == std::vector<study::NamedMetric>{{"score", 6.0}});
        REQUIRE(logs[0].saved.size() == 1);
        const auto checkpoint = logs[0].saved[0];
        CHECK(checkpoint.iteration == 3);
        CHECK(checkpoint.bytes == 1);
        CHECK(read_file(programs.home.path() + "/" + checkpoint.path + "/state.txt") == "6");

        programs.cluster.prepare(4 - ranks, 5, checkpoint).seconds = 100.0;
        const auto further = programs.cluster.run_until(5, Verb::stop);
        check_outcomes(further, AttemptOutcome::stopped);
        REQUIRE(further[0].reports.size() == 2);
        CHECK(further[0].reports[1].iteration == 5);
        CHECK(further[0].reports[1].metrics[0].value == 15.0);
        CHECK(further[0].reports[0].seconds > 100.0);
        CHECK(further[0].saved.at(0).iteration == 5);
    }
    CHECK(programs.scratch_is_empty());
}

TEST_CASE("a program that is told to discard its state saves nothing", "[trial]") {
    Programs programs(2, counting);
    programs.cluster.prepare(2, 2);
    const auto logs = programs.cluster.run_until(2, Verb::discard);
    check_outcomes(logs, AttemptOutcome::stopped);
    CHECK(logs[0].saved.empty());
    CHECK(programs.printed().find("0 stop 2\n") != std::string::npos);
    CHECK(programs.printed().find("1 stop 2\n") != std::string::npos);
}

TEST_CASE("a program saves when it is asked to, on all ranks", "[trial]") {
    Programs programs(2, R"(
if "RANKTUNE_CHECKPOINT" in os.environ:
    print("shards", *sorted(os.listdir(os.environ["RANKTUNE_CHECKPOINT"])))
while True:
    decision = report(1.0, can_save=True)
    if decision["decision"] == "continue":
        continue
    to = os.path.join(decision["save_to"], "model")
    os.makedirs(to, exist_ok=True)
    open(os.path.join(to, f"shard{rank}"), "w").write("x" * 10)
    if rank == 0:
        send(checkpoint=to)
    time.sleep(0.05 * rank)
    sys.exit(0)
)");
    programs.cluster.prepare(2, 2);
    const auto logs = programs.cluster.run_until(2);
    check_outcomes(logs, AttemptOutcome::paused);
    REQUIRE(logs[0].saved.size() == 1);
    CHECK(logs[0].saved[0].bytes == 20);
    const auto checkpoint = logs[0].saved[0];
    programs.cluster.prepare(1, 3, checkpoint);
    check_outcomes(programs.cluster.run_until(3, Verb::discard), AttemptOutcome::stopped);
    CHECK(programs.printed().find("shards shard0 shard1") != std::string::npos);
}

TEST_CASE("the ranks of a program find each other and know their trial", "[trial]") {
    Programs programs(3, R"(
e = os.environ
config = json.load(open(e["RANKTUNE_CONFIG"]))
print(rank, size, e["LOCAL_RANK"], e["LOCAL_WORLD_SIZE"], e["GROUP_RANK"], e["MASTER_ADDR"], e["RANKTUNE_TRIAL"],
      e["RANKTUNE_ATTEMPT"], e["RANKTUNE_METRIC"], e["RANKTUNE_MODE"], e["RANKTUNE_ITERATIONS"], sys.argv[1:], config,
      "OMPI_COMM_WORLD_RANK" in e, "CUDA_VISIBLE_DEVICES" in e, "RANKTUNE_CHECKPOINT" in e, os.getcwd())
print("port", e["MASTER_PORT"])
report(1.0)
)");
    programs.cluster.configuration.set("lr", 0.5);
    programs.cluster.configuration.set("sgd.momentum", 0.9);
    programs.cluster.prepare(3, 5);
    check_outcomes(programs.cluster.run_until(99), AttemptOutcome::finished);
    const std::string printed = programs.printed();
    for (int r = 0; r < 3; ++r) {
        const std::string rank = std::to_string(r);
        CHECK(printed.find(rank + " 3 " + rank +
                           " 3 0 127.0.0.1 0 1 score max 27 ['--lr=0.5', '--sgd.momentum=0.9'] {'lr': 0.5, 'sgd': "
                           "{'momentum': 0.9}} False False False " +
                           programs.home.path() + "\n") != std::string::npos);
    }
    const auto at = printed.find("port ");
    const std::string port = printed.substr(at, printed.find('\n', at) - at + 1);
    std::size_t count = 0;
    for (auto found = printed.find(port); found != std::string::npos; found = printed.find(port, found + 1)) ++count;
    CHECK(count == 3);
}

TEST_CASE("a program that crashes on one rank fails the trial with its last words, on all ranks", "[trial]") {
    for (const int ranks : {1, 2, 3}) {
        for (int rank = 0; rank < ranks; ++rank) {
            Programs programs(3, "bad = " + std::to_string(rank) + R"(
report(1.0)
if rank == bad:
    print("first\nValueError: no data", file=sys.stderr)
    sys.exit(3)
time.sleep(1000)
)");
            programs.cluster.prepare(ranks, 9);
            const auto logs = programs.cluster.run_until(99);
            check_outcomes(logs, AttemptOutcome::failed);
            CHECK(blame(logs) == "rank " + std::to_string(rank) +
                                     ": exit code 3: ValueError: no data\nlast lines of its standard error:\nfirst\n"
                                     "ValueError: no data");
            CHECK(programs.scratch_is_empty());
        }
    }
}

TEST_CASE("an error message on standard output is quoted", "[trial]") {
    const auto told = [](const std::string& text) {
        Programs programs(1, text);
        programs.cluster.prepare(1, 9);
        const auto logs = programs.cluster.run_until(99);
        check_outcomes(logs, AttemptOutcome::failed);
        return blame(logs);
    };
    CHECK(told("print('epoch 1')\nprint('no licence left')\nsys.exit(1)\n") ==
          "rank 0: exit code 1: no licence left\nlast lines of its standard output:\nepoch 1\nno licence left");
    CHECK(told("print('no licence left')\nsys.exit(1)\n") == "rank 0: exit code 1: no licence left");
    CHECK(told("print('epoch 1')\nprint('why', file=sys.stderr)\nsys.exit(1)\n") == "rank 0: exit code 1: why");
    CHECK(told("print('epoch 1', flush=True)\nos.kill(os.getpid(), signal.SIGSEGV)\n") ==
          "rank 0: killed by signal 11 (Segmentation fault)");
}

TEST_CASE("a segmentation fault fails the trial and keeps the rank", "[trial]") {
    Programs programs(2, "os.kill(os.getpid(), signal.SIGSEGV) if rank == 1 else report(1.0)\n");
    programs.cluster.prepare(2, 9);
    const auto logs = programs.cluster.run_until(99);
    check_outcomes(logs, AttemptOutcome::failed);
    CHECK(blame(logs) == "rank 1: killed by signal 11 (Segmentation fault)");
    programs.cluster.prepare(2, 9); // the same ranks run another trial
    check_outcomes(programs.cluster.run_until(99), AttemptOutcome::failed);
}

TEST_CASE("a program that is killed from outside was disturbed", "[trial]") {
    Programs programs(1, "report(1.0)\nos.kill(os.getpid(), signal.SIGKILL)\n");
    programs.cluster.prepare(1, 9);
    const auto logs = programs.cluster.run_until(99);
    check_outcomes(logs, AttemptOutcome::disturbed);
    CHECK(blame(logs) == "rank 0: killed by signal 9 (Killed)");
}

TEST_CASE("a program that says that its GPU is full is too large, if it then ends with an error", "[trial]") {
    Programs programs(1, "report(1.0)\nsend(failed='device-memory', log='no room for 3 GiB')\nsys.exit(1)\n");
    programs.cluster.prepare(1, 9);
    const auto logs = programs.cluster.run_until(99);
    check_outcomes(logs, AttemptOutcome::oversized);
    CHECK(blame(logs).starts_with("rank 0: the trial needs more memory than the device has: no room for 3 GiB. Make"));
    CHECK(logs[0].ended->failure.exit_code == 1U);
    Programs caught(1, "report(1.0)\nsend(failed='device-memory', log='no room')\nreport(2.0)\n");
    caught.cluster.prepare(1, 9);
    check_outcomes(caught.cluster.run_until(99), AttemptOutcome::finished);
}

TEST_CASE("a program that cannot be started says so", "[trial]") {
    Programs programs(2, "");
    programs.cluster.spec().trainable.program->command = "no-such-program {args}";
    programs.cluster.prepare(2, 9);
    const auto logs = programs.cluster.run_until(99);
    check_outcomes(logs, AttemptOutcome::failed);
    CHECK(describe(logs[0].ended->failure)
              .starts_with("rank 0: cannot start 'no-such-program': no such program in PATH"));
}

TEST_CASE("a program that ends on its own has finished; without a report it has failed", "[trial]") {
    Programs programs(2, "report(1.0)\nreport(2.0)\ntime.sleep(0.1 * rank)\n");
    programs.cluster.prepare(2, 99);
    const auto logs = programs.cluster.run_until(99);
    check_outcomes(logs, AttemptOutcome::finished);
    CHECK(logs[0].reports.size() == 2);

    Programs silent(2, "time.sleep(0.05)\n");
    silent.cluster.prepare(2, 99);
    const auto none = silent.cluster.run_until(99);
    check_outcomes(none, AttemptOutcome::failed);
    CHECK(blame(none).starts_with("rank 0: the program ended without a single report"));
}

TEST_CASE("all reports that a program made without waiting are decided before it counts as ended", "[trial]") {
    Programs programs(2, "for i in range(5):\n    send(report={'score': i})\n");
    programs.cluster.prepare(2, 2);
    const auto logs = programs.cluster.run([&](const RunnerReported& report) {
        programs.cluster.answer(report.iteration, Verb::go_on, report.iteration + 1);
    });
    check_outcomes(logs, AttemptOutcome::finished);
    CHECK(logs[0].reports.size() == 5);
}

TEST_CASE("a program that ignores decisions is stopped by signal at the rung", "[trial]") {
    Programs programs(2, R"(
i = 0
while True:
    i += 1
    open(os.path.join(folder, f"{i}.txt"), "w").write(str(i))
    send(report={"score": i}, checkpoint=os.path.join(folder, f"{i}.txt"))
    time.sleep(0.02)
)");
    programs.cluster.prepare(2, 3);
    const auto logs = programs.cluster.run_until(3);
    check_outcomes(logs, AttemptOutcome::paused);
    CHECK(logs[0].reports.size() == 3);
    CHECK(logs[0].saved.at(0).iteration == 3);
    CHECK(read_file(programs.home.path() + "/" + logs[0].saved[0].path + "/3.txt") == "3");
}

TEST_CASE("a program whose rank 0 alone reports is recognised and stopped by signal", "[trial]") {
    const std::string text = R"(
path = os.path.join(folder, "state")
if rank != 0:
    time.sleep(1000)
while True:
    open(path, "w").write("state")
    decision = report(1.0, **SAVE)
    if decision["decision"] != "continue":
        if "save_to" in decision:
            send(checkpoint=path)
        time.sleep(1000)
)";
    for (const std::string save : {"{'checkpoint': path}", "{'can_save': True}"}) {
        std::string with = text;
        with.replace(with.find("SAVE"), 4, save);
        Programs programs(3, with);
        programs.setting.alone_grace = 100ms;
        programs.cluster.spec().output.abort_grace = 5s;
        programs.cluster.prepare(3, 2);
        const auto logs = programs.cluster.run_until(2);
        check_outcomes(logs, AttemptOutcome::paused);
        CHECK(logs[0].reports.size() == 2);
        CHECK(logs[0].saved.size() == 1);
        const auto notes = programs.cluster.notes();
        // On a slow machine the log also says whom the leader waits for.
        CHECK(std::ranges::any_of(
            notes, [](const std::string& note) { return note.starts_with("only rank 0 of the program reports"); }));
    }
}

TEST_CASE("that rank 0 alone reports is learned once for all attempts of a study, and unlearned", "[trial]") {
    Programs programs(2, R"(
everybody, mark = os.path.exists("all"), os.path.join(folder, "mark")
if rank != 0:
    if not everybody:
        time.sleep(1000)
    send(report={})
    open(mark, "w").close()
    sys.exit(0 if answer()["decision"] != "continue" else 1)
while everybody and not os.path.exists(mark):
    time.sleep(0.01)
sys.exit(0 if report(1.0)["decision"] != "continue" else 1)
)");
    programs.setting.alone_grace = 100ms;
    programs.cluster.spec().output.abort_grace = 5s;
    fs::create_directories(programs.home.path() + "/logs");
    const auto run = [&] {
        programs.cluster.prepare(2, 1);
        check_outcomes(programs.cluster.run_until(1, Verb::stop), AttemptOutcome::stopped);
        return lone_reports(programs.home.path());
    };
    CHECK(lone_reports(programs.home.path()) == 0);
    CHECK(run() == 1);
    // From now on an attempt would hang for hours if it waited that long again.
    programs.setting.alone_grace = 24h;
    programs.cluster.spec().output.abort_grace = 24h;
    CHECK(run() == 2);
    CHECK(run() == 3);
    programs.setting.alone_grace = 60s;
    programs.cluster.spec().output.abort_grace = 60s;
    std::ofstream(programs.home.path() + "/all") << "";
    // If other ranks report, the note is removed.
    programs.cluster.prepare(2, 1);
    check_outcomes(programs.cluster.run_until(1, Verb::stop), AttemptOutcome::stopped);
    CHECK(lone_reports(programs.home.path()) == 0);
}

TEST_CASE("invalid messages fail the trial", "[trial]") {
    const std::pair<std::string, std::string> cases[] = {
        {"link.write('hello\\n'); link.flush(); time.sleep(1000)", "rank 1: a line that is no message: 'hello'"},
        {"link.write('x' * 1100000); link.flush(); time.sleep(1000)", "rank 1: a line of more than 1048576 bytes"},
        {"send(report={'score': [1]}); time.sleep(1000)", "rank 1: the metric 'score' of a report is neither"}};
    for (const auto& [code, message] : cases) {
        Programs programs(2, "if rank == 1:\n    " + code + "\nreport(1.0)\ntime.sleep(1000)\n");
        programs.cluster.prepare(2, 99);
        const auto logs = programs.cluster.run_until(99);
        check_outcomes(logs, AttemptOutcome::failed);
        CHECK(blame(logs).starts_with(message));
    }
}

TEST_CASE("half a line at the end of a program does not count as a report", "[trial]") {
    Programs programs(1, "report(1.0)\nlink.write('{\"report\": {\"sc'); link.flush()\n");
    programs.cluster.prepare(1, 99);
    const auto logs = programs.cluster.run_until(99);
    check_outcomes(logs, AttemptOutcome::finished);
    CHECK(logs[0].reports.size() == 1);
}

TEST_CASE("a pause without a checkpoint says what to write; at the end of a job none is needed", "[trial]") {
    const std::string text = "while report(1.0)['decision'] == 'continue':\n    pass\n";
    Programs programs(2, text);
    SECTION("a rung") {
        programs.cluster.prepare(2, 2);
        const auto logs = programs.cluster.run_until(2);
        CHECK(logs[0].ended->outcome == AttemptOutcome::stateless);
        CHECK(blame(logs).starts_with(
            "rank 0: it was to pause at iteration 2, but its program gave no checkpoint: pass one "
            "with each report"));
    }
    SECTION("the end of a job") {
        programs.cluster.prepare(2, 2);
        const auto logs = programs.cluster.run([&](const RunnerReported& report) {
            if (report.iteration == 2) programs.cluster.answer(2, Verb::pause, 0, study::Reason::draining);
        });
        check_outcomes(logs, AttemptOutcome::paused);
        CHECK(logs[0].saved.empty());
    }
    SECTION("a program that said that it cannot") {
        programs.cluster.spec().trainable.program->checkpoints = false;
        set_option(programs.cluster.spec().scheduler, {"restart_paused", true});
        programs.cluster.prepare(2, 2);
        const auto logs = programs.cluster.run_until(2);
        check_outcomes(logs, AttemptOutcome::paused);
        CHECK(logs[0].saved.empty());
    }
}

TEST_CASE("a checkpoint that is not there, or was not saved when asked for, fails the trial", "[trial]") {
    Programs gone(1, "report(1.0, checkpoint='/no/such/file')\n");
    gone.cluster.prepare(1, 1);
    const auto logs = gone.cluster.run_until(1);
    check_outcomes(logs, AttemptOutcome::failed);
    CHECK(blame(logs) == "rank 0: cannot take over the checkpoint that the program named: there is no '/no/such/file'");

    Programs unsaved(2, "report(1.0, can_save=True)\n");
    unsaved.cluster.prepare(2, 1);
    const auto none = unsaved.cluster.run_until(1);
    check_outcomes(none, AttemptOutcome::failed);
    CHECK(blame(none) ==
          "rank 0: the program was told to save its state and to pause at iteration 1, and ended without having saved "
          "it");
}

TEST_CASE("checkpoints of a program are kept on the way, as often as the study file says", "[trial]") {
    Programs programs(2, counting);
    programs.cluster.spec().checkpoint.interval = study::CheckpointSpec::Interval::iterations;
    programs.cluster.spec().checkpoint.iterations = 2;
    programs.cluster.prepare(2, 99);
    const auto logs = programs.cluster.run([&](const RunnerReported& report) {
        if (report.iteration == 5) programs.cluster.thread(0).interrupt({Verb::discard, study::Reason::none, 0, 0});
    });
    check_outcomes(logs, AttemptOutcome::stopped);
    REQUIRE(logs[0].saved.size() >= 2);
    CHECK(logs[0].saved[0].iteration == 2);
    CHECK(logs[0].saved[1].iteration == 4);
    CHECK(read_file(programs.home.path() + "/" + logs[0].saved[0].path + "/state.txt") == "3");
    CHECK(read_file(programs.home.path() + "/" + logs[0].saved[1].path + "/state.txt") == "10");
}

TEST_CASE("a checkpoint that cannot be stored or read is not the trial's fault", "[trial]") {
    Programs programs(2, counting);
    std::ofstream(programs.home.path() + "/checkpoints") << "in the way";
    programs.cluster.prepare(2, 1);
    CHECK(programs.cluster.run_until(1)[0].ended->outcome == AttemptOutcome::unsaved);
    fs::remove(programs.home.path() + "/checkpoints");
    programs.cluster.prepare(2, 1);
    const auto checkpoint = programs.cluster.run_until(1)[0].saved.at(0);
    const std::string state = programs.home.path() + "/" + checkpoint.path + "/state.txt";
    fs::permissions(state, fs::perms::owner_all);
    std::ofstream(state) << "damaged";
    programs.cluster.prepare(2, 3, checkpoint);
    CHECK(programs.cluster.run_until(3)[0].ended->outcome == AttemptOutcome::unreadable);
    fs::remove_all(programs.home.path() + "/" + checkpoint.path); // moved, or not mounted: not damaged
    programs.cluster.prepare(2, 3, checkpoint);
    CHECK(programs.cluster.run_until(3)[0].ended->outcome == AttemptOutcome::unreachable);
}

TEST_CASE("an error after the last decision is logged and has no effect", "[trial]") {
    Programs programs(2, "report(1.0)\nsys.exit(9 if rank == 1 else 0)\n");
    programs.cluster.prepare(2, 1);
    check_outcomes(programs.cluster.run_until(1, Verb::stop), AttemptOutcome::stopped);
    CHECK(programs.cluster.notes() == std::vector<std::string>{"rank 1 of the trial, told to end: exit code 9"});
}

TEST_CASE("a program that hangs is stopped by the time-out for reports", "[trial]") {
    Programs programs(2, "report(1.0)\nif rank == 1:\n    report(1.0)\ntime.sleep(1000)\n");
    programs.cluster.spec().failure.report_timeout = 500ms;
    programs.cluster.prepare(2, 99);
    const auto logs = programs.cluster.run_until(99);
    CHECK(logs[0].ended->outcome == AttemptOutcome::disturbed); // a time-out may have an outside cause
    CHECK(logs[1].ended->outcome == AttemptOutcome::failed);    // its partner is gone
    CHECK(blame(logs).starts_with("rank 0: no sign of progress for 500ms (failure.report_timeout); reports made: "));
}

TEST_CASE("waiting for a hung rank has a limit once its trial must end", "[trial]") {
    Programs programs(2, R"(
report(1.0)
mark = os.path.join(folder, "mark")
if rank == 1:
    open(mark, "w").close()
while not os.path.exists(mark):
    time.sleep(0.01)
if rank == 0:
    report(1.0, checkpoint=mark)
    print("goes on", flush=True)
time.sleep(1000)
)");
    programs.cluster.spec().output.abort_grace = 400ms;
    SECTION("what rank 0 reported counts when it stops") {
        programs.cluster.prepare(2, 2);
        check_outcomes(programs.cluster.run_until(2, Verb::discard), AttemptOutcome::stopped);
        const auto notes = programs.cluster.notes();
        REQUIRE(notes.size() == 2);
        CHECK(notes[0].starts_with("waiting for #0, rank 1 (report 2), for another "));
        CHECK(notes[1].starts_with("waited "));
        CHECK(notes[1].find(" in vain for rank 1 (report 2); the program is stopped by signal") != std::string::npos);
    }
    SECTION("the state of the best one is lost, which is no failure of the trial") {
        programs.cluster.prepare(2, 2);
        const auto logs = programs.cluster.run_until(2, Verb::stop);
        CHECK(logs[0].ended->outcome == AttemptOutcome::unsaved);
        CAPTURE(blame(logs));
        CHECK(blame(logs).find(" in vain for rank 1 (report 2)") != std::string::npos);
    }
    SECTION("at a rung it fails: its state is not complete") {
        programs.cluster.prepare(2, 2);
        const auto logs = programs.cluster.run_until(2);
        check_outcomes(logs, AttemptOutcome::failed);
        CAPTURE(blame(logs));
        CHECK(blame(logs).find(" in vain for rank 1 (report 2)") != std::string::npos);
    }
    SECTION("at the end of a job it is paused without a checkpoint") {
        programs.cluster.prepare(2, 2);
        const auto logs = programs.cluster.run([&](const RunnerReported& report) {
            if (report.iteration == 2) programs.cluster.answer(2, Verb::pause, 0, study::Reason::draining);
        });
        check_outcomes(logs, AttemptOutcome::paused);
        CHECK(logs[0].saved.empty());
    }
    SECTION("without another report, the end of a job leaves it unchanged") {
        programs.cluster.prepare(2, 99);
        programs.cluster.start();
        bool asked = false;
        while (!programs.cluster.all_ended()) {
            programs.cluster.pump([](const RunnerReported&) {});
            if (asked || programs.printed() != "goes on\n") continue;
            programs.cluster.thread(0).interrupt({Verb::pause, study::Reason::draining, 0.0, 0.0});
            asked = true;
        }
        const auto& ended = *programs.cluster.logs[0].ended;
        CHECK(ended.outcome == AttemptOutcome::unsaved);
        CHECK(ended.failure.message.find(" in vain for rank 0 (report 3), rank 1 (report 2)") != std::string::npos);
    }
    CHECK(programs.scratch_is_empty());
}

TEST_CASE("a program that takes too long to save is stopped by signal", "[trial]") {
    Programs programs(1, "report(1.0, can_save=True)\ntime.sleep(1000)\n");
    programs.cluster.spec().output.abort_grace = 50ms;
    programs.cluster.prepare(1, 1);
    const auto logs = programs.cluster.run_until(1);
    check_outcomes(logs, AttemptOutcome::failed);
    CHECK(blame(logs).find(" in vain for rank 0 (to save its state)") != std::string::npos);
}

TEST_CASE("a checkpoint that cannot be read is the program's fault", "[trial]") {
    Programs programs(1, R"(
os.mkdir(os.path.join(folder, "state"))
os.symlink("step9", os.path.join(folder, "state", "latest"))
report(1.0, checkpoint=os.path.join(folder, "state"))
)");
    programs.cluster.prepare(1, 1);
    const auto logs = programs.cluster.run_until(1);
    check_outcomes(logs, AttemptOutcome::failed);
    CHECK(blame(logs).ends_with("/state/latest' is a link to 'step9', which is not there"));
}

TEST_CASE("studies on one node, trials of a study and starts of a study look for ports at different places",
          "[trial]") {
    study::StartTrial start;
    start.ranks = {base::Rank{1}, base::Rank{2}};
    start.incarnation = base::Incarnation{1};
    const auto place = [&](const std::string& directory, std::size_t rank = 0) {
        return port_start(directory, start, rank) % 12000;
    };
    std::set<std::uint64_t> places{place("/home/ann/a"), place("/home/ann/b"), place("/home/ann/a", 1)};
    start.incarnation = base::Incarnation{2};
    places.insert(place("/home/ann/a"));
    start.trial = base::TrialId{1};
    places.insert(place("/home/ann/a"));
    CHECK(places.size() == 5);
}

TEST_CASE("the beginning and the end of a program's output are kept", "[trial]") {
    std::vector<std::string> lines;
    OutputLimit limit({.first = 30, .last = 20}, [&](std::string_view line) { lines.emplace_back(line); });
    for (int i = 0; i < 3; ++i) limit.line("line of 9");
    CHECK(lines == std::vector<std::string>(3, "line of 9"));
    for (int i = 0; i < 5; ++i) limit.line("line no " + std::to_string(i));
    REQUIRE(lines.size() == 4);
    CHECK(lines[3].starts_with("... the program has printed 30 bytes: of what follows the end is kept"));
    limit.finish();
    CHECK(std::vector(lines.begin() + 4, lines.end()) ==
          std::vector<std::string>{"... 3 lines of 30 bytes were left out here", "line no 3", "line no 4"});
}

TEST_CASE("a flood of output does not fill the log", "[trial]") {
    Programs programs(1, R"(
report(1.0)
for i in range(150000):
    print(f"{i:099d}")
print("last words")
)");
    programs.cluster.prepare(1, 99);
    check_outcomes(programs.cluster.run_until(99), AttemptOutcome::finished);
    const std::string printed = programs.printed(); // 15 MB
    CHECK(printed.size() > 8'900U << 10U);
    CHECK(printed.size() < 9'900U << 10U);
    CHECK(printed.ends_with("\nlast words\n"));
    CHECK(printed.find("were left out here") != std::string::npos);
}

TEST_CASE("a program that is given up is stopped, even if it ignores TERM", "[trial]") {
    Programs programs(
        2,
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nreport(1.0)\nprint('in', flush=True)\nwhile True:\n    "
        "time.sleep(1)\n");
    programs.cluster.spec().output.abort_grace = 400ms;
    programs.cluster.prepare(2, 99);
    bool given_up = false;
    programs.cluster.start();
    while (!programs.cluster.all_ended()) {
        programs.cluster.pump([](const RunnerReported&) {});
        if (given_up || programs.printed() != "in\nin\n") continue;
        for (int r = 0; r < 2; ++r) programs.cluster.thread(r).abandon();
        given_up = true;
    }
    check_outcomes(programs.cluster.logs, AttemptOutcome::lost);
    CHECK(programs.scratch_is_empty());
}

TEST_CASE("an unknown message is logged once", "[trial]") {
    Programs programs(1, "report(1.0, colour='red')\nreport(1.0, colour='red')\nsend(log='one line')\n");
    programs.cluster.prepare(1, 99);
    check_outcomes(programs.cluster.run_until(99), AttemptOutcome::finished);
    CHECK(programs.cluster.notes().size() == 1);
    CHECK(programs.printed() == "one line\n");
}

} // namespace ranktune::testing::program_trial_test
