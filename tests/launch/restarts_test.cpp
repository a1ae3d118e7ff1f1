// SPDX-License-Identifier: Apache-2.0
#include "launch/restarts.hpp"

#include "comm/wire/protocol.hpp"
#include "support/catch.hpp"

namespace restarts_test {

using namespace ranktune::launch;
using namespace ranktune::studydir;
using namespace ranktune::comm;
using ranktune::study::StudyOutcome;

namespace {

/// The head was killed with everything else.
StepFacts killed(std::uint64_t progress) {
    StepFacts facts;
    facts.code = 137;
    facts.has_journal = true;
    facts.progress = progress;
    return facts;
}

StepFacts resumable(EndCause cause, int code = 75) {
    StepFacts facts = killed(1);
    facts.code = code;
    facts.outcome = OutcomeFile{};
    facts.outcome->outcome = StudyOutcome::resumable;
    facts.outcome->cause = cause;
    facts.outcome->reason = "why";
    return facts;
}

} // namespace

TEST_CASE("A step that was killed is started again as long as it makes progress", "[launch]") {
    Restarts restarts(100, 0);
    for (std::uint64_t progress = 1; progress <= 10; ++progress) CHECK(restarts.after(killed(progress)).restart);
    CHECK(restarts.count() == 10);
}

TEST_CASE("A launcher that ends with 0 before its study is not reported as killed", "[launch]") {
    Restarts restarts(100, 0);
    StepFacts facts = killed(1);
    facts.code = 0;
    const auto decision = restarts.after(facts);
    CHECK(decision.restart);
    CHECK(decision.words == "its launcher ended with exit code 0 before the study had ended");
}

TEST_CASE("Two steps in a row with nothing new are the last ones", "[launch]") {
    Restarts restarts(100, 5);
    CHECK(restarts.after(killed(5)).restart);
    CHECK(restarts.after(killed(6)).restart); // progress: the count begins again
    CHECK(restarts.after(killed(6)).restart);
    const auto end = restarts.after(killed(6));
    CHECK_FALSE(end.restart);
    CHECK(end.code == 1);
    CHECK(end.words.find("2 times in a row with nothing new") != std::string::npos);
}

TEST_CASE("Restarts are limited", "[launch]") {
    Restarts restarts(2, 0);
    CHECK(restarts.after(killed(1)).restart);
    CHECK(restarts.after(killed(2)).restart);
    const auto end = restarts.after(killed(3));
    CHECK_FALSE(end.restart);
    CHECK(end.code == 75);
    CHECK(end.words.find("--max-restarts") != std::string::npos);
}

TEST_CASE("A head that could not write its outcome is not started again", "[launch]") {
    Restarts restarts(100, 0);
    StepFacts facts = killed(0);
    facts.code = 75;
    CHECK(restarts.after(facts).restart); // the directory is writable: the head was killed
    facts.can_write = false;
    const auto end = restarts.after(facts);
    CHECK_FALSE(end.restart);
    CHECK(end.code == 75);
    CHECK(end.words.find("the same command goes on") != std::string::npos);
    CHECK(end.words.find("killed") == std::string::npos);
    facts.has_journal = false; // at the very first start
    CHECK(Restarts(100, 0).after(facts).code == 75);
}

TEST_CASE("A study whose directory was removed during the run is not begun again", "[launch]") {
    StepFacts facts = killed(5);
    facts.directory_lost = true;
    for (const int code : {75, 137}) {
        facts.code = code;
        const auto end = Restarts(100, 0).after(facts);
        CHECK_FALSE(end.restart);
        CHECK(end.code == code);
        CHECK(end.words.find("Move the directory back") != std::string::npos);
    }
}

TEST_CASE("A study whose directory was replaced by another one is not begun there", "[launch]") {
    StepFacts facts = killed(5);
    facts.directory_replaced = true;
    facts.has_journal = false;
    facts.outcome = OutcomeFile{}; // its head wrote into the new directory
    facts.outcome->outcome = ranktune::study::StudyOutcome::resumable;
    facts.outcome->cause = EndCause::ranks;
    for (const int code : {0, 75, 137}) {
        facts.code = code;
        const auto end = Restarts(100, 0).after(facts);
        CHECK_FALSE(end.restart);
        CHECK(end.code == (code == 0 ? 75 : code));
        CHECK(end.words.find("another directory is where the study's was") != std::string::npos);
        CHECK(end.words.find("Move the directory back") != std::string::npos);
    }
}

TEST_CASE("A study that is over ends with its own code, whatever the launcher's code", "[launch]") {
    for (const int code : {0, 3, 4}) {
        StepFacts facts = killed(1);
        facts.finished = code;
        const auto end = Restarts(10, 0).after(facts);
        CHECK_FALSE(end.restart);
        CHECK(end.code == code);
        CHECK(end.words.empty());
    }
}

TEST_CASE("A study that lacks only its tables ends as resumable, and is not started again", "[launch]") {
    StepFacts facts = resumable(EndCause::storage);
    facts.finished = 0;
    const auto decision = Restarts(10, 0).after(facts);
    CHECK_FALSE(decision.restart);
    CHECK(decision.code == 75);
}

TEST_CASE("A requested stop is not followed by a restart", "[launch]") {
    StepFacts told = killed(1);
    told.asked = true;
    CHECK(Restarts(10, 0).after(told).code == 75);
    told.has_journal = false; // before anything began
    told.code = 130;
    CHECK(Restarts(10, 0).after(told).code == 130);
    CHECK_FALSE(Restarts(10, 0).after(resumable(EndCause::asked)).restart); // a signal to the ranks, `ranktune stop`
    // When a rank was killed, mpirun sends TERM to the others and ends with that rank's code.
    CHECK(Restarts(10, 0).after(resumable(EndCause::asked, 137)).restart);
}

TEST_CASE("Causes decide about a restart", "[launch]") {
    CHECK_FALSE(Restarts(10, 0).after(resumable(EndCause::storage)).restart);
    CHECK(Restarts(10, 0).after(resumable(EndCause::storage)).code == 75);
    CHECK_FALSE(Restarts(10, 0).after(resumable(EndCause::trials)).restart);
    CHECK(Restarts(10, 0).after(resumable(EndCause::trials)).code == 75);
    CHECK(Restarts(10, 0).after(resumable(EndCause::ranks)).restart);
    CHECK(Restarts(10, 0).after(resumable(EndCause::error, 1)).restart);
    CHECK(Restarts(10, 0).after(resumable(EndCause::ranks, 0)).restart); // --enable-recovery changes codes
}

TEST_CASE("Workers that lost their head are started again, and no trial is to blame", "[launch]") {
    // The head came back and got TERM from a launcher whose ranks had left, so it reports a request.
    const auto asked = Restarts(10, 0).after(resumable(EndCause::asked, head_lost_code));
    CHECK(asked.restart);
    CHECK(asked.blameless);
    CHECK(asked.words == "the workers heard nothing of the head for run.heartbeat_timeout, and left (exit code 76)");
    // The head knows why, whatever became of the code.
    for (const int code : {75, 76, 143}) {
        const auto told = Restarts(10, 0).after(resumable(EndCause::stalled, code));
        CHECK(told.restart);
        CHECK(told.blameless);
        CHECK(told.words == "why");
    }
    StepFacts speechless = killed(1); // the head never came back
    speechless.code = head_lost_code;
    CHECK(Restarts(10, 0).after(speechless).blameless);
    CHECK_FALSE(Restarts(10, 0).after(killed(1)).blameless);
    CHECK(Restarts(10, 0).after(speechless).restart);
    speechless.asked = true;
    CHECK_FALSE(Restarts(10, 0).after(speechless).restart);
    CHECK(end_cause(StudyOutcome::resumable, ranktune::study::Reason::lost) == EndCause::stalled);
    CHECK(name(EndCause::stalled) == "stalled");
}

TEST_CASE("The code of a launcher that outlives ranks says nothing about them", "[launch]") {
    StepFacts stopped = resumable(EndCause::asked, 0); // some rank died, and the study was stopped
    CHECK(Restarts(10, 0).after(stopped).restart);
    stopped.outlives = true;
    CHECK_FALSE(Restarts(10, 0).after(stopped).restart);
    CHECK(Restarts(10, 0).after(stopped).code == 75);
    stopped.head_died = true; // before the stop was over
    CHECK(Restarts(10, 0).after(stopped).restart);

    StepFacts dead = killed(1);
    dead.code = 0;
    dead.outlives = dead.head_died = true;
    const auto again = Restarts(10, 0).after(dead);
    CHECK(again.restart);
    CHECK(again.blameless);
    CHECK(again.words == "its head has died, and the workers left");
}

TEST_CASE("A command that cannot be started, or has no valid study, is not tried twice", "[launch]") {
    StepFacts facts;
    for (const int code : {2, 126, 127}) {
        facts.code = code;
        CHECK_FALSE(Restarts(10, 0).after(facts).restart);
        CHECK(Restarts(10, 0).after(facts).code == code);
    }
    facts.code = 2;
    facts.nodes_left_out = true; // too few nodes are left: the study itself is fine
    CHECK(Restarts(10, 0).after(facts).code == 75);
}

TEST_CASE("The file outcome is read as it is written", "[launch]") {
    OutcomeFile file{StudyOutcome::resumable, "SIGTERM", true, 12, 3, "2026-11-20T10:00:00.000Z"};
    file.cause = EndCause::ranks;
    file.by = ranktune::study::Asker::sigterm;
    CHECK(outcome_text(file).find("launch=") == std::string::npos);
    file.launch = "this one";
    const auto read = parse_outcome(outcome_text(file));
    REQUIRE(read);
    CHECK(read->outcome == file.outcome);
    CHECK(read->reason == "SIGTERM");
    CHECK(read->progress);
    CHECK(read->launch == "this one");
    CHECK(read->reports == 12);
    CHECK(read->start == 3);
    CHECK(read->cause == EndCause::ranks);
    CHECK(read->by == ranktune::study::Asker::sigterm);
    CHECK(read->time == file.time);
    CHECK_FALSE(parse_outcome(""));
    CHECK_FALSE(parse_outcome("reason=x\n"));
    CHECK(parse_outcome("exit=75\ncause=something new\n")->cause == EndCause::error);
}

} // namespace restarts_test
