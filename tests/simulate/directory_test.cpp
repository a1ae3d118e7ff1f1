// SPDX-License-Identifier: Apache-2.0
#include "simulate/directory.hpp"

#include "ranktune/base/error.hpp"
#include "report/replay/replay.hpp"
#include "report/screens/simulated.hpp"
#include "report/view/load.hpp"
#include "setups.hpp"
#include "studydir/open_study.hpp"
#include "studydir/study_directory.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

namespace directory_test {

using namespace ranktune;
using namespace ranktune::simulate;

namespace {

Setup small() {
    Setup setup{
        simulate::testing::spec("num_trials = 20\nmax_iterations = 9",
                                "[scheduler]\ntype = \"pbt\"\ninterval = 2\n[scheduler.explore]\nx = [0.8, 1.2]\n"),
        Model{}, 4};
    return setup;
}

} // namespace

TEST_CASE("views can read the directory of a simulated study", "[simulate]") {
    const ranktune::testing::TemporaryDirectory place;
    auto& files = storage::posix_file_system();
    const Setup setup = small();
    const std::string directory = place.path() + "/s";
    const Figures figures = simulate_to(files, setup, {directory, "text", "[time]\n", "", "test"});
    const auto study = report::load_study(files, directory);
    CHECK(study.tuner->state().reports == figures.reports);
    CHECK(study.tuner->state().ended);
    CHECK(report::simulated_text(study.tuner->state()) == "simulated: 4 groups of 1 rank; no trial was trained");
    CHECK(report::load_state(files, directory).tuner->digest() == study.tuner->digest());
    CHECK(report::verify_journal(files, directory, ~std::uint64_t{0}).difference.empty());
    CHECK(studydir::read_outcome(files, {directory})->records == study.journal.records);
    CHECK(storage::read_text(files, directory + "/study.toml") == "text");
    CHECK(storage::read_text(files, directory + "/model.toml") == "[time]\n");
}

TEST_CASE("the same setup gives the same files", "[simulate]") {
    const ranktune::testing::TemporaryDirectory place;
    auto& files = storage::posix_file_system();
    const Setup setup = small();
    for (const char* name : {"/a", "/b"})
        static_cast<void>(simulate_to(files, setup, {place.path() + name, "text", "", "", "test"}));
    for (const char* name : {"/journal/000001.h5", "/outcome", "/resolved.toml"}) {
        INFO(name);
        CHECK(storage::read_text(files, place.path() + "/a" + name) ==
              storage::read_text(files, place.path() + "/b" + name));
    }
}

TEST_CASE("a run refuses a simulated study, and a simulation a directory in use", "[simulate]") {
    const ranktune::testing::TemporaryDirectory place;
    auto& files = storage::posix_file_system();
    const Setup setup = small();
    const std::string directory = place.path() + "/s";
    static_cast<void>(simulate_to(files, setup, {directory, "text", "", "", "test"}));
    CHECK_THROWS_WITH(studydir::open_study(files, directory, setup.spec, {}),
                      Catch::Matchers::Contains("holds a simulated study"));
    CHECK(studydir::open_study(files, directory, setup.spec, {.fresh = true}).is_new);
    CHECK_THROWS_AS(simulate_to(files, setup, {directory, "text", "", "", "test"}), base::UsageError);
    static_cast<void>(simulate_to(files, setup, {directory, "text", "", "", "test", true}));
    CHECK(files.exists(directory + "~1/outcome"));
}

} // namespace directory_test
