// SPDX-License-Identifier: Apache-2.0
#include "report/explain/endings.hpp"

#include "report/screens/screens.hpp"
#include "report/study_by_hand.hpp"
#include "support/catch.hpp"

namespace ranktune::report {
namespace {

/// The wall clock, so many seconds after the start of the study.
double after(double seconds) { return 1'795'183'331.0 + seconds; } // 2026-11-20T14:02:11Z

} // namespace

TEST_CASE("a study that is stopping says for how long, why, and what it waits for", "[report]") {
    testing::StudyByHand study(testing::small_study(9));
    study.began(2);
    CHECK(stopping_text(study.tuner, after(60.0)).empty());
    SECTION("before anything has reported") {
        study.stop("SIGUSR1");
        CHECK(stopping_text(study.tuner, after(240.5)) ==
              "stopping for 4m00s (SIGUSR1): waits until #0, #1 have reported and saved");
    }
    SECTION("when it is known what an iteration takes") {
        study.train(0, 1, 0.5);
        study.stop("SIGUSR1");
        CHECK(stopping_text(study.tuner, after(61.5)) ==
              "stopping for 59.5s (SIGUSR1): waits for the next report of #1, #2; an iteration takes up to 0.5s");
    }
    SECTION("on a narrow terminal in several lines") {
        study.stop("SIGUSR1");
        Live live;
        live.stopping = stopping_text(study.tuner, after(240.5));
        const std::string table = live_table(study.tuner, live, Style{.width = 40});
        CHECK(table.find("\nstopping for 4m00s (SIGUSR1): waits\nuntil #0, #1 have reported and saved\n") !=
              std::string::npos);
    }
    SECTION("on a clock that goes after the head's it does not say for how long") {
        study.stop("SIGUSR1");
        CHECK(stopping_text(study.tuner, after(-60.0)).starts_with("stopping (SIGUSR1): waits"));
    }
    SECTION("until it has ended") {
        study.stop("SIGUSR1");
        study.play_out(testing::rising);
        CHECK(stopping_text(study.tuner, after(60.0)).empty());
    }
}

} // namespace ranktune::report
