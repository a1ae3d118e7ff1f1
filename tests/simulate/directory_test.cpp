// SPDX-License-Identifier: Apache-2.0
#include "simulate/directory.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ranktune/base/error.hpp"
#include "report/journal_by_hand.hpp"
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

TEST_CASE("a verification computes the suggestions of models again", "[simulate]") {
    const std::string searcher = GENERATE("gp", "tpe", "auto");
    INFO(searcher);
    const ranktune::testing::TemporaryDirectory place;
    auto& files = storage::posix_file_system();
    const Setup setup{
        simulate::testing::spec("num_trials = 30\nmax_iterations = 3", "[searcher]\ntype = \"" + searcher + "\"\n"),
        Model{}, 4};
    const std::string directory = place.path() + "/s";
    static_cast<void>(simulate_to(files, setup, {directory, "text", "[time]\n", "", "test"}));
    const auto found = report::verify_journal(files, directory);
    CHECK(found.difference.empty());
    CHECK(found.prepared.recorded > 0);
    CHECK(found.prepared.computed == found.prepared.recorded);
    CHECK(found.prepared.otherwise == 0);

    // A suggestion that the model would not make, taken by a trial.
    std::vector<study::Record> records;
    storage::read_journal(files, directory, [&](study::Record&& record) { records.push_back(std::move(record)); });
    std::optional<std::uint64_t> changed;
    for (study::Record& record : records) {
        if (auto* prepared = std::get_if<study::TicketPrepared>(&record);
            prepared != nullptr && prepared->configuration && !changed) {
            prepared->configuration->set("x", space::Value(0.123));
            changed = prepared->ticket;
        } else if (auto* created = std::get_if<study::TrialCreated>(&record);
                   created != nullptr && created->origin.kind == study::Origin::Kind::ticket &&
                   created->origin.index == changed) {
            created->configuration.set("x", space::Value(0.123));
        }
    }
    REQUIRE(changed);
    report::testing::write_journal(place.path() + "/other", records);
    const auto other = report::verify_journal(files, place.path() + "/other");
    CHECK(other.difference.empty());
    CHECK(other.prepared.otherwise > 0);
    CHECK(report::verified_text(other).find(" came out otherwise (another version, ") != std::string::npos);
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
