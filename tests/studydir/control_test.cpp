// SPDX-License-Identifier: Apache-2.0
// Requests of users as files of a study directory.
#include "studydir/control.hpp"
#include "ranktune/base/error.hpp"
#include "support/catch.hpp"
#include "support/crash_file_system.hpp"

using namespace ranktune;
using namespace ranktune::studydir;

TEST_CASE("requests are listed in the order in which they were asked, and are gone once answered", "[studydir]") {
    test::CrashFileSystem files;
    const StudyDirectory directory{"/study"};
    files.make_directories(directory.path);
    CHECK(requests_in(files, directory).empty());
    const space::SearchSpace space;
    const study::Steering first{7, study::SteerVerb::pause, base::TrialId{3}, {}, {}};
    const study::Steering second{1, study::SteerVerb::cancel, base::TrialId{4}, {}, {}};
    const std::string one = ask_of_study(files, directory, {"ada@n0", first});
    const std::string two = ask_of_study(files, directory, {"bob@n1", second});
    REQUIRE(requests_in(files, directory) == std::vector<std::string>{one, two});
    CHECK(read_request(files, directory, one, space).ask == first);
    CHECK(read_request(files, directory, two, space).who == "bob@n1");

    CHECK_FALSE(take_answer(files, directory, one));
    answer_request(files, directory, one, {false, "there is no trial #3"});
    CHECK(requests_in(files, directory) == std::vector<std::string>{two});
    const auto answer = take_answer(files, directory, one);
    REQUIRE(answer);
    CHECK_FALSE(answer->accepted);
    CHECK(answer->words == "there is no trial #3");
    CHECK_FALSE(take_answer(files, directory, one));

    answer_request(files, directory, two, {true, "cancel trial #4"});
    answer_request(files, directory, two, {true, "cancel trial #4"}); // a head that was killed in between does it again
    CHECK(answers_in(files, directory) == std::vector<std::string>{two});
    remove_answer(files, directory, two);
    CHECK_FALSE(take_answer(files, directory, two));
}
