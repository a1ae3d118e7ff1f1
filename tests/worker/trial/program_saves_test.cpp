// SPDX-License-Identifier: Apache-2.0
// A program that saves its state when it is told to, and goes on.

#include "worker/trial/program_fixture.hpp"

namespace ranktune::testing::program_saves_test {

using study::Verb;
using worker::RunnerReported;

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
        if mode == "links" and rank == 0:
            open("state", "w").write(str(iteration))
            os.symlink(os.path.abspath("state"), os.path.join(decision["save_to"], "link"))
        open(os.path.join(decision["save_to"], str(rank)), "w").write(str(iteration))
        if mode == "fails" and rank == 1:
            send(failed="storage", log="OSError: [Errno 28] No space left on device")
        elif mode != "silent" or rank == 0:
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
                                         {"fails", "rank 1 of the program could not save its part of the state"},
                                         {"links", "saved a link to what it may change: '"},
                                         {"elsewhere", "outside of the folder that it was given: /etc/hosts"}}));
    const auto logs = run(programs, mode);
    check_outcomes(logs, AttemptOutcome::stopped);
    CHECK(logs[0].saved.empty());
    CHECK(logs[0].reports.size() >= 16);
    REQUIRE(logs[0].unsaved.size() >= 2);
    CHECK(logs[0].unsaved[0].find(why) != std::string::npos);
}

namespace {

/// The places that rank 0 of this program announces until its trial is told to pause at its third report.
std::vector<RankLog> run_for_three(Programs& programs, const std::string& text) {
    std::ofstream(programs.home.path() + "/program.py") << prologue << text;
    programs.cluster.prepare(1, 3);
    return programs.cluster.run_until(3);
}

} // namespace

TEST_CASE("the head hears once of each place that another trial could name, too", "[trial]") {
    Programs programs(1, "");
    const std::string home = fs::canonical(programs.home.path());
    const auto named = [&](const std::string& text) {
        std::vector<std::string> paths;
        const auto logs = run_for_three(programs, text);
        check_outcomes(logs, AttemptOutcome::paused);
        for (const auto& place : logs[0].named) paths.push_back(place.path);
        return paths;
    };
    const std::string loop = R"(
for i in range(1, 4):
    path = PATH
    open(path, "w").write(str(i))
    report(i, checkpoint=path)
)";
    const auto with = [&](const std::string& path) {
        std::string text = loop;
        return text.replace(text.find("PATH"), 4, path);
    };
    using Paths = std::vector<std::string>;
    CHECK(named(with("'same'")) == Paths{home + "/same"});
    CHECK(named(with("f'{i}.pt'")) == Paths{home + "/1.pt", home + "/2.pt", home + "/3.pt"});
    CHECK(named(with("os.path.join(folder, 'state')")).empty());
    CHECK(named("os.symlink('/tmp/../" + home + "', 'link')\n" + with("'link/through'")) == Paths{home + "/through"});
    // Also below a folder of its own, if it leads out of it.
    CHECK(named("os.symlink('" + home + "', folder + '/out')\n" + with("folder + '/out/same'")) ==
          Paths{home + "/same"});
    // So does a link in what was saved, if it leads to something new.
    const std::string in_folder = R"(
os.makedirs("data", exist_ok=True)
os.makedirs(f"{folder}/mine", exist_ok=True)
os.symlink("HOME/data", f"{folder}/mine/data")
for i in range(1, 4):
    WRITE
    report(i, checkpoint=f"{folder}/mine")
)";
    const auto linking = [&](const std::string& write) {
        std::string text = in_folder;
        text.replace(text.find("HOME"), 4, home);
        return named(text.replace(text.find("WRITE"), 5, write));
    };
    CHECK(linking("open('data/state', 'w').write(str(i))") == Paths{home + "/data"});
    const auto long_ago = fs::file_time_type::clock::now() - 24h;
    fs::last_write_time(home + "/data/state", long_ago);
    fs::last_write_time(home + "/data", long_ago);
    CHECK(linking("pass").empty());
    programs.cluster.spec().trainable.program->directory += "/{folder}";
    CHECK(named(with("'same'")).empty());
}

TEST_CASE("a trial works in a folder of its own, where it finds its files in the next attempt", "[trial]") {
    Programs programs(1, "");
    programs.cluster.spec().trainable.program->command = "/usr/bin/python3 -S -E program.py {folder}/x {trial}";
    programs.cluster.spec().trainable.program->env = {{"OUT", "{folder}-{trial}"}};
    programs.cluster.spec().trainable.program->directory += "/{folder}";
    const std::string text = R"(
open("lines", "a").write("line\n")
print(os.getcwd(), *sys.argv[1:], os.environ["OUT"], len(open("lines").readlines()), os.environ["PYTHONPATH"])
for i in range(3): report(1.0)
)";
    programs.cluster.spec().trainable.program->checkpoints = false;
    set_option(programs.cluster.spec().scheduler, {"restart_paused", true});
    for (const std::string lines : {"1", "2"}) {
        check_outcomes(run_for_three(programs, text), AttemptOutcome::paused);
        const std::string own = programs.home.path() + "/trials/0";
        CHECK(programs.printed().find(own + " " + own + "/x 0 " + own + "-0 " + lines + " " + programs.home.path() +
                                      "/python:" + programs.home.path() + "\n") != std::string::npos);
    }
}

TEST_CASE("a folder that holds more than a checkpoint is refused at its report, and nothing is copied", "[trial]") {
    Programs programs(1, "");
    const std::string home = programs.home.path();
    fs::create_directories(home + "/code");
    const auto refusal = [&](const std::string& path) {
        const auto logs = run_for_three(programs, "report(1.0, checkpoint='" + path + "')\ntime.sleep(1000)\n");
        check_outcomes(logs, AttemptOutcome::failed);
        CHECK(logs[0].saved.empty());
        return blame(logs);
    };
    const std::string head = "rank 0: the checkpoint '";
    CHECK(refusal("").starts_with("rank 0: the program named \"\" as its checkpoint"));
    for (const std::string path : {".", "..", "/", "code/..", "program.py/../.."})
        CHECK(
            refusal(path).starts_with(head + path + "' is no file or folder of its own: it is or contains the study "));
    CHECK(refusal("attempts").starts_with(head + "attempts' is no file or folder of its own: it lies in a folder of"));
    CHECK(refusal("trials/5/x").starts_with(head + "trials/5/x' is no file or folder of its own: it lies in a folder"));
    programs.cluster.spec().trainable.program->directory += "/code";
    CHECK(refusal(".").starts_with(head + ".' is no file or folder of its own: it is or contains the folder that the"));
    // Asked to save, it names the same.
    const auto logs = run_for_three(programs, R"(
for i in range(3): decision = report(1.0, can_save=True)
send(checkpoint="..")
)");
    check_outcomes(logs, AttemptOutcome::failed);
    CHECK(blame(logs).starts_with(head + "..' is no file or folder of its own"));
    CHECK_FALSE(fs::exists(home + "/checkpoints"));
}

TEST_CASE("a path counts if it is taken over before its report is answered", "[trial]") {
    // Does not wait for the answers, and says when all reports are made.
    const std::string text = R"(
for i in range(1, 6):
    path = os.path.join(folder, "state" if SAME else f"{i}")
    open(path, "w").write(str(i))
    send(report={"score": i}, checkpoint=path)
open("sent", "w").close()
time.sleep(1000)
)";
    const auto run = [&](Programs& programs, const std::string& same) {
        std::string with = text;
        with.replace(with.find("SAME"), 4, same);
        std::ofstream(programs.home.path() + "/program.py") << prologue << with;
        programs.cluster.spec().output.abort_grace = 1s;
        programs.cluster.prepare(1, 3);
        return programs.cluster.run([&](const RunnerReported& report) {
            if (report.iteration != 3) return;
            while (!fs::exists(programs.home.path() + "/sent")) std::this_thread::sleep_for(1ms);
            programs.cluster.answer(3, Verb::pause);
        });
    };
    Programs overwrites(1, "");
    const auto logs = run(overwrites, "True");
    check_outcomes(logs, AttemptOutcome::failed);
    CHECK(logs[0].saved.empty());
    CHECK(blame(logs).find("made the next report without waiting for the answer to this one") != std::string::npos);
    Programs keeps(1, "");
    const auto kept = run(keeps, "False");
    check_outcomes(kept, AttemptOutcome::paused);
    CHECK(read_file(keeps.home.path() + "/" + kept[0].saved.at(0).path + "/3") == "3");
}

TEST_CASE("nothing of a contested place is saved", "[trial]") {
    Programs programs(1, R"(
open("state", "w").close()
while True:
    report(1.0, checkpoint="state")
)");
    programs.cluster.spec().checkpoint.interval = study::CheckpointSpec::Interval::iterations;
    programs.cluster.spec().checkpoint.iterations = 1;
    programs.cluster.prepare(1, 3);
    const auto logs = programs.cluster.run([&](const RunnerReported& report) {
        if (report.iteration != 3) return;
        programs.cluster.thread(0).contest();
        programs.cluster.answer(3, Verb::pause);
    });
    check_outcomes(logs, AttemptOutcome::paused);
    CHECK(logs[0].named.size() == 1);
    for (const auto& checkpoint : logs[0].saved) CHECK(checkpoint.iteration < 3);
}

TEST_CASE("what a program says of its failure is the message of the trial, unless it reports again", "[trial]") {
    const auto told = [](const std::string& text) {
        Programs programs(2,
                          "report(1.0)\nif rank == 1:\n    send(failed='error', log='at iteration 2: ValueError: no "
                          "(train.py:3)')\n" +
                              text);
        programs.cluster.prepare(2, 9);
        const auto logs = programs.cluster.run_until(99);
        check_outcomes(logs, AttemptOutcome::failed);
        return blame(logs);
    };
    CHECK(told("    sys.exit(1)\ntime.sleep(1000)\n") == "rank 1: at iteration 2: ValueError: no (train.py:3)");
    CHECK(told("    sys.exit('Traceback\\nValueError: no')\ntime.sleep(1000)\n") ==
          "rank 1: at iteration 2: ValueError: no (train.py:3)\nlast lines of its standard "
          "error:\nTraceback\nValueError: no");
    CHECK(told("    report(2.0)\n    sys.exit('other')\nreport(2.0)\ntime.sleep(1000)\n") ==
          "rank 1: exit code 1: other");
}

TEST_CASE("a state that one rank could not save does not count, and the trial says why", "[trial]") {
    for (const int rank : {0, 1}) {
        for (const int code : {0, 1}) {
            Programs programs(2, "bad, code = " + std::to_string(rank) + ", " + std::to_string(code) + R"x(
decision = report(1.0, can_save=True)
open(os.path.join(decision["save_to"], str(rank)), "w").close()
if rank == bad:
    send(failed="saving", log="while saving at iteration 1: RuntimeError: cannot pickle (train.py:41)")
    sys.exit(code)
if rank == 0:
    send(checkpoint=decision["save_to"])
)x");
            programs.cluster.prepare(2, 1);
            const auto logs = programs.cluster.run_until(1);
            check_outcomes(logs, AttemptOutcome::failed);
            CHECK(blame(logs) == "rank " + std::to_string(rank) +
                                     ": while saving at iteration 1: RuntimeError: cannot pickle (train.py:41)");
            CHECK(logs[0].saved.empty());
        }
    }
}

} // namespace ranktune::testing::program_saves_test
