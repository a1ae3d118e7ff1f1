// SPDX-License-Identifier: Apache-2.0
#include "report/screens/study_list.hpp"

#include <string>

#include <nlohmann/json.hpp>

#include "golden.hpp"
#include "report/view/wall_time.hpp"
#include "screens_by_hand.hpp"

namespace study_list_test {

using namespace ranktune;
using namespace ranktune::report;
using namespace ranktune::report::testing;

namespace {

ListedStudy study_in(const std::string& directory, ListedState state, double newest) {
    ListedStudy study;
    study.directory = study.name = directory;
    study.state = state;
    study.metric = study.metrics = "val_accuracy";
    study.trials = 41;
    study.done = 39;
    study.num_trials = 60;
    study.newest = newest;
    return study;
}

std::vector<ListedStudy> some_studies() {
    std::vector<ListedStudy> studies{
        study_in("old", ListedState::finished, 1000.0), study_in("new", ListedState::failed, 90000.0),
        study_in("now", ListedState::running, 99000.0), study_in("killed\x1b[2J", ListedState::interrupted, 50000.0)};
    studies[0].best = {17, 0.9722};
    studies[1].exit_code = 4;
    ListedStudy lost;
    lost.directory = "lost";
    lost.state = ListedState::unreadable;
    lost.problem = "'lost/journal/000001.h5' is damaged at byte 4096";
    studies.push_back(lost);
    return studies;
}

} // namespace

TEST_CASE("the list of studies shows running ones first, then the newest", "[report]") {
    const std::string text = studies_text(some_studies(), 100000.0, Style{});
    CHECK(text == golden("studies", text));
    for (std::size_t width = 20; width <= 100; ++width) {
        const std::string table = studies_text(some_studies(), 100000.0, columns(width));
        CHECK(widest(table.substr(0, table.find("problem  "))) <= std::max<std::size_t>(width, 60));
    }
    const auto json = studies_json(some_studies());
    CHECK(json["studies"].size() == 5);
    CHECK(json["studies"][0]["name"] == "now");
    CHECK(json["studies"][0]["trials_done"] == 39);
    CHECK(json["studies"][1]["exit_code"] == 4);
    CHECK(json["studies"][3]["best"]["trial"] == 17);
    CHECK(json["studies"][4]["problem"].is_string());
}

TEST_CASE("what is listed of a study comes from its state", "[report]") {
    const StudyByHand study = half_way();
    const ListedStudy listed = report::listed(study.tuner, "digits");
    const auto& state = study.tuner.state();
    CHECK(listed.trials == state.trials.size());
    CHECK(listed.done == listed.trials - state.in(study::TrialPhase::running));
    CHECK(listed.best->trial == state.best->value());
    CHECK_FALSE(listed.exit_code);
    CHECK(wall_time_text(*listed.newest).starts_with("2026-11-20T14:02:"));
    CHECK(state_after(study::StudyOutcome::resumable) == ListedState::stopped);
    CHECK(state_after(study::StudyOutcome::no_success) == ListedState::failed);
}

TEST_CASE("times of the wall clock are read and written", "[report]") {
    CHECK(unix_seconds("1970-01-02T00:00:01.500Z") == 86401.0);
    CHECK_FALSE(unix_seconds("yesterday"));
    CHECK(wall_time_text(86401.0) == "1970-01-02T00:00:01Z");
    const std::vector<StartOfHead> starts{{0.0, 10.0, "1970-01-01T01:00:00Z", 1},
                                          {10.0, 20.0, "1970-01-01T02:00:00Z", 1}};
    CHECK(unix_at(starts, 5.0) == 3605.0);
    CHECK(unix_at(starts, 12.0) == 7202.0); // study time rests between starts
    CHECK(unix_at({}, 12.0) == 12.0);
    const std::vector<StartOfHead> late{{2.0, 10.0, "1970-01-01T01:00:00Z", 1}};
    CHECK(unix_at(late, 0.0) == 3598.0); // the study was created before its first start
}

} // namespace study_list_test
