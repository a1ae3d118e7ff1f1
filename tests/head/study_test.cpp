// SPDX-License-Identifier: Apache-2.0
// Whole studies in one process: real loops, real trial threads, real files.

#include <fstream>

#include "head/local_study.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

namespace ranktune::testing {

namespace {

using ranktune::testing::read_file;

std::string study_toml(const std::string& scheduler, const std::string& more = "", const std::string& trainable = "",
                       const std::string& ranks = "1") {
    std::string text = "[study]\nname = \"local\"\nmetric = \"score\"\nmode = \"max\"\n";
    text += "num_trials = 30\nmax_iterations = 9\nseed = 3\n" + more;
    text += "[trainable]\nbuiltin = \"curve\"\n" + trainable;
    text += "[resources]\nranks = " + ranks + "\n";
    text += "[space]\nlr = \"loguniform(1e-4, 1.0)\"\nc = \"uniform(0.2, 1.0)\"\n";
    if (ranks == "\"{size}\"") text += "size = [1, 2, 3]\n";
    return text + scheduler;
}

constexpr const char* promote = "[scheduler]\ntype = \"asha\"\n";
constexpr const char* stop = "[scheduler]\ntype = \"asha\"\nvariant = \"stop\"\n";
constexpr const char* median = "[scheduler]\ntype = \"median\"\n";
constexpr const char* fifo = "[scheduler]\ntype = \"fifo\"\n";

base::NullLog null_log;

storage::JournalOptions cut_options(const std::string& directory) {
    storage::JournalOptions options;
    options.directory = directory;
    options.uuid = "00000000-0000-4000-8000-000000000001";
    return options;
}

void check_complete(const std::string& toml, const LocalStudy& study, std::uint32_t trials) {
    CHECK(study.head.clean);
    for (const auto& worker : study.workers) {
        CHECK(worker.outcome == study.head.outcome);
        CHECK(worker.clean);
    }
    const auto tuner = replay(toml, study.directory);
    CHECK(tuner->state().ended);
    CHECK(tuner->state().end_message == study.message);
    REQUIRE(tuner->state().trials.size() == trials);
    for (const auto& trial : tuner->state().trials) CHECK(study::is_final(trial.phase));
}

} // namespace

TEST_CASE("studies with every scheduler run to their end on one, two and four workers", "[head]") {
    for (const char* scheduler : {promote, stop, median, fifo}) {
        for (const std::uint32_t workers : {1U, 2U, 4U}) {
            const TemporaryDirectory directory;
            const auto toml = study_toml(scheduler);
            const auto study = run_local_study(toml, workers, directory.path());
            CHECK(study.head.outcome == study::StudyOutcome::ok);
            check_complete(toml, study, 30);
            CHECK(std::filesystem::exists(directory.path() + "/metrics.h5"));
            CHECK(read_file(directory.path() + "/study.toml") == toml);
            CHECK(read_file(directory.path() + "/outcome").find("exit=0\n") == 0);
            CHECK(read_file(directory.path() + "/status").find("\"ended\": true") != std::string::npos);
        }
    }
}

TEST_CASE("trials of mixed sizes share four workers", "[head]") {
    const TemporaryDirectory directory;
    const auto toml = study_toml(promote, "", "", "\"{size}\"");
    check_complete(toml, run_local_study(toml, 4, directory.path()), 30);
}

TEST_CASE("trials that throw on one rank are recorded with their message, the others go on", "[head]") {
    const TemporaryDirectory directory;
    const auto toml = study_toml(promote, "", "fail_rate = 0.5\n", "2");
    const auto study = run_local_study(toml, 4, directory.path());
    CHECK(study.head.outcome == study::StudyOutcome::too_many_failures);
    check_complete(toml, study, 30);
    const auto tuner = replay(toml, directory.path());
    std::size_t failed = 0;
    for (const auto& trial : tuner->state().trials) {
        if (trial.phase != study::TrialPhase::failed) continue;
        ++failed;
        CHECK(trial.failure.message.find("curve was told to fail at iteration") != std::string::npos);
        CHECK(trial.failure.rank);
    }
    CHECK(failed > 0);
    CHECK(failed < 30);
}

TEST_CASE("a trial that pauses leaves a checkpoint, and released checkpoints are unlinked", "[head]") {
    const TemporaryDirectory directory;
    const auto toml = study_toml(promote, "", "state_bytes = 1000\n");
    check_complete(toml, run_local_study(toml, 2, directory.path()), 30);
    const auto tuner = replay(toml, directory.path());
    std::size_t wanted = 0;
    for (const auto& trial : tuner->state().trials) {
        for (const auto& checkpoint : trial.checkpoints) {
            ++wanted;
            CHECK(std::filesystem::exists(directory.path() + "/" + checkpoint.path));
        }
    }
    std::size_t there = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory.path() + "/checkpoints"))
        there += entry.is_regular_file() ? 1 : 0;
    CHECK(there == wanted);
    CHECK(wanted > 0);
}

TEST_CASE("a study that was killed continues in another job, with another number of workers", "[head]") {
    const TemporaryDirectory directory;
    // A kill leaves half a journal: everything after some frame is gone.
    const auto toml = study_toml(promote, "", "seconds = 0.01\n");
    {
        storage::Journal journal(storage::posix_file_system(), cut_options(directory.path()), null_log);
        tuner::Tuner tuner(spec_from(toml));
        tuner::Output out;
        tuner.create("00000000-0000-4000-8000-000000000001", study::resolved_toml(tuner.spec()), "test", out);
        tuner.step(
            {{}, study::Began{base::Incarnation{1}, {{base::Rank{1}, "here", 0}, {base::Rank{2}, "here", 0}}, "then"}},
            out);
        journal.append(out.records);
    }
    const std::string unread = directory.path() + "/control/0001764000000123-1f3a5c7e9b2d4f60.answer";
    std::filesystem::create_directories(directory.path() + "/control");
    std::ofstream(unread) << "accepted: pause trial #0\n";
    const auto study = run_local_study(toml, 3, directory.path());
    CHECK(study.head.outcome == study::StudyOutcome::ok);
    check_complete(toml, study, 30);
    const auto tuner = replay(toml, directory.path());
    CHECK(tuner->state().incarnation == base::Incarnation{2});
    CHECK(tuner->state().trial(study::TrialId{0}).attempt.id.value() >= 2); // the first one was in the other job
    CHECK_FALSE(std::filesystem::exists(unread));                           // whoever asked the first head has given up
    CHECK(read_file(directory.path() + "/outcome").find("start=2\n") != std::string::npos);
}

TEST_CASE("a study whose first start was killed before its first record begins", "[head]") {
    const TemporaryDirectory directory;
    { storage::Journal journal(storage::posix_file_system(), cut_options(directory.path()), null_log); }
    const auto toml = study_toml(fifo);
    check_complete(toml, run_local_study(toml, 2, directory.path()), 30);
    CHECK(replay(toml, directory.path())->state().incarnation == base::Incarnation{2});
}

TEST_CASE("a finished study is not touched; too many ranks and no workers are refused", "[head]") {
    const TemporaryDirectory directory;
    const auto toml = study_toml(fifo);
    check_complete(toml, run_local_study(toml, 1, directory.path()), 30);
    const auto before = read_file(directory.path() + "/outcome");
    const auto again = run_local_study(toml, 1, directory.path());
    CHECK(again.head.outcome == study::StudyOutcome::ok);
    CHECK(again.workers[0].outcome == study::StudyOutcome::ok);
    CHECK(read_file(directory.path() + "/outcome") == before);
    CHECK_FALSE(std::filesystem::exists(directory.path() + "/journal/000002.h5"));
    CHECK_FALSE(std::filesystem::exists(directory.path() + "/lease"));

    const TemporaryDirectory other;
    const auto wide = run_local_study(study_toml(fifo, "", "", "3"), 2, other.path());
    CHECK(wide.head.outcome == study::StudyOutcome::usage);
    CHECK(wide.message.find("a trial may ask for 3 ranks, which is more than the workers of this job: 2") !=
          std::string::npos);
    CHECK(std::filesystem::is_empty(other.path()));

    const auto alone = run_local_study(toml, 0, other.path());
    CHECK(alone.head.outcome == study::StudyOutcome::usage);
}

TEST_CASE("a study that is asked to stop pauses its trials and ends resumable", "[head]") {
    const TemporaryDirectory directory;
    // The time budget asks the study to stop while its trials sleep through their iterations.
    const auto toml = study_toml(fifo, "time_budget = \"1s\"\n", "seconds = 0.3\n");
    const auto study = run_local_study(toml, 2, directory.path());
    const auto tuner = replay(toml, directory.path());
    CHECK(tuner->state().ended);
    CHECK(tuner->state().draining);
    CHECK(tuner->state().in(study::TrialPhase::running) == 0);
    CHECK(study.head.clean);
}

} // namespace ranktune::testing
