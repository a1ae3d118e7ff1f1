// SPDX-License-Identifier: Apache-2.0
#include "studydir/last_end.hpp"

#include <stdlib.h>

#include <span>

#include "studydir/crash_note.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

namespace last_end_test {

using namespace ranktune;
using namespace ranktune::studydir;

namespace {

LastEnd killed() {
    LastEnd end;
    end.trials_ran = true;
    return end;
}

OutcomeFile outcome(EndCause cause) {
    OutcomeFile file;
    file.outcome = study::StudyOutcome::resumable;
    file.cause = cause;
    return file;
}

} // namespace

TEST_CASE("A job that was killed without a trace has died, and no trial is blamed", "[studydir]") {
    const auto death = death_of_job(killed());
    REQUIRE(death);
    CHECK(death->notes.empty());
}

TEST_CASE("A cause from outside makes no trial a suspect", "[studydir]") {
    LastEnd end = killed();
    end.trials_ran = false;
    CHECK_FALSE(death_of_job(end));

    for (const EndCause cause : {EndCause::asked, EndCause::storage, EndCause::stalled}) {
        end = killed();
        end.outcome = outcome(cause);
        CHECK_FALSE(death_of_job(end));
    }
    end = killed();
    end.requeued = true;
    CHECK_FALSE(death_of_job(end));
    end = killed();
    end.told = ToldEnd::outside;
    CHECK_FALSE(death_of_job(end));
}

TEST_CASE("The launcher's exit code outweighs the head's outcome: mpirun stops the head when a rank dies",
          "[studydir]") {
    LastEnd end = killed();
    end.outcome = outcome(EndCause::asked);
    end.told = ToldEnd::crash;
    CHECK(death_of_job(end));
}

TEST_CASE("Only the two words that supervise writes tell how a start ended", "[studydir]") {
    for (const ToldEnd end : {ToldEnd::crash, ToldEnd::outside}) {
        ::setenv(last_end_variable, std::string(name(end)).c_str(), 1);
        CHECK(told_end() == end);
    }
    ::setenv(last_end_variable, "weather", 1);
    CHECK_FALSE(told_end());
    ::unsetenv(last_end_variable);
    CHECK_FALSE(told_end());
}

TEST_CASE("How a start asked for a requeue is read as it was written, and an unknown word is no requeue",
          "[studydir]") {
    for (const Requeue requeue : {Requeue::no, Requeue::yes, Requeue::failed}) {
        OutcomeFile file = outcome(EndCause::asked);
        file.requeue = requeue;
        CHECK(parse_outcome(outcome_text(file)) == file);
    }
    const auto unknown = parse_outcome("exit=3\nrequeue=perhaps\n");
    REQUIRE(unknown);
    CHECK(unknown->requeue == Requeue::no);
}

TEST_CASE("A crash note counts, whatever other evidence says", "[studydir]") {
    LastEnd end = killed();
    end.told = ToldEnd::outside;
    end.notes = {{study::TrialId{3}, study::AttemptId{1}, {"killed by signal 11 (SIGSEGV)", 2}}};
    const auto death = death_of_job(end);
    REQUIRE(death);
    CHECK(death->notes.size() == 1);
}

TEST_CASE("A rank whose GPU did not answer accuses no trial, and is a death of the job", "[studydir]") {
    LastEnd end = killed();
    end.told = ToldEnd::outside; // as far as the launcher knows
    end.sick = {{study::TrialId{3}, study::AttemptId{1}, {"the GPU failed", 2}}};
    const auto death = death_of_job(end);
    REQUIRE(death);
    CHECK(death->notes.empty());
    end.notes = {
        {study::TrialId{4}, study::AttemptId{1}, {"killed by signal 11 (SIGSEGV)", 1}}}; // another rank crashed
    CHECK(death_of_job(end)->notes == end.notes);
}

TEST_CASE("A rank writes its crash note once, and the next head reads it", "[studydir]") {
    const testing::TemporaryDirectory directory;
    auto& files = storage::posix_file_system();
    const std::string study = directory.path();
    files.make_directories(StudyDirectory{study}.logs());
    CHECK(read_crash_notes(files, study, 4).trial.empty());

    leave_crash_note(CrashCause::trial, "before it is known where");
    prepare_crash_note(study, base::Incarnation{4}, base::Rank{12});
    leave_crash_note(CrashCause::trial, "without a trial");
    note_attempt({base::TrialId{7}, base::AttemptId{2}, base::Incarnation{4}});
    leave_crash_note(CrashCause::trial, "killed by signal 11 (SIGSEGV)");
    leave_crash_note(CrashCause::trial, "a second time");

    const auto notes = read_crash_notes(files, study, 4);
    REQUIRE(notes.trial.size() == 1);
    CHECK(notes.device.empty());
    CHECK(notes.trial[0] ==
          study::CrashNote{study::TrialId{7}, study::AttemptId{2}, {"killed by signal 11 (SIGSEGV)", 12}});
    CHECK(read_crash_notes(files, study, 5).trial.empty()); // another start
}

TEST_CASE("A crash note's cause decides whom it accuses, not its words", "[studydir]") {
    const testing::TemporaryDirectory directory;
    auto& files = storage::posix_file_system();
    const std::string study = directory.path();
    files.make_directories(StudyDirectory{study}.logs());
    const auto left = [&](const std::string& rank, const std::string& line) {
        files.publish(StudyDirectory{study}.logs() + "/crash-4-" + rank, std::as_bytes(std::span(line)), false);
    };
    left("10", "7 2 trial device: out of memory\n");
    left("9", "7 2 device killed by signal 11 (SIGSEGV)\n");
    left("2", "5 1 trial no report within 2s\n");
    left("3", "what is this");
    left("4", "7 2 weather it rained\n");
    left("5", "7 0 trial without an attempt\n");
    const auto notes = read_crash_notes(files, study, 4);
    REQUIRE(notes.trial.size() == 2);
    CHECK(notes.trial[0] == study::CrashNote{study::TrialId{5}, study::AttemptId{1}, {"no report within 2s", 2}});
    CHECK(notes.trial[1] == study::CrashNote{study::TrialId{7}, study::AttemptId{2}, {"device: out of memory", 10}});
    REQUIRE(notes.device.size() == 1);
    CHECK(notes.device[0].failure.rank == 9);
}

} // namespace last_end_test
