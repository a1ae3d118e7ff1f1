// SPDX-License-Identifier: Apache-2.0
// Where the configurations of trials came from: as `explain` tells it, and as exports have it.
#include "report/view/origins.hpp"

#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "journal_by_hand.hpp"
#include "report/explain/explain.hpp"
#include "report/export/export.hpp"
#include "report/screens/screens.hpp"
#include "report/view/load.hpp"
#include "support/catch.hpp"
#include "view_by_hand.hpp"

namespace origins_test {

using namespace ranktune;
using namespace ranktune::report;
using namespace ranktune::report::testing;
using Catch::Matchers::Contains;
using Json = nlohmann::json;

namespace {

/// Six trials of one iteration, by `loss`.
std::string short_trials(const std::string& searcher) {
    return R"toml([study]
name = "small"
metric = "loss"
mode = "min"
num_trials = 6
seed = 1
max_iterations = 1
[trainable]
name = "any"
[space]
lr = "uniform(0.0, 1.0)"
[scheduler]
type = "fifo"
[searcher]
)toml" + searcher;
}

space::Configuration lr(double value) {
    space::Configuration configuration;
    configuration.set("lr", value);
    return configuration;
}

std::string explained(const StudyView& view, std::uint32_t trial) {
    Style style;
    style.width = 200;
    return explanation(view, study::TrialId{trial}, "small", true, style);
}

/// By trial, as the export has it.
std::vector<Json> exported(const StudyByHand& study) {
    Reread reread(study);
    std::ostringstream out;
    export_json(
        std::move(reread.loaded), [](const auto&) {}, out);
    std::vector<Json> origins;
    const Json json = Json::parse(out.str());
    for (const Json& trial : json["trials"]) origins.push_back(trial["origin"]);
    return origins;
}

/// #0 and #1 begin before a suggestion is ready, #2 after one that failed, #3 takes one, a user asks for #4.
struct Prepared : StudyByHand {
    explicit Prepared(const study::SuggestionBasis& basis)
        : StudyByHand(short_trials("type = \"external\"\ncommand = \"none\"\n")) {
        began(2);
        step(study::Prepared{0, {}, "no memory\nat line 3"});
        train(0, 1, 0.5);
        step(study::Prepared{1, lr(0.25), "", basis});
        train(1, 1, 0.5);
        study::Steering add;
        add.request = 7;
        add.verb = study::SteerVerb::add;
        add.points.push_back(lr(0.125));
        step(study::SteerAsked{"ada@login1", add});
        train(2, 1, 0.5);
    }
};

} // namespace

TEST_CASE("a prepared suggestion says what it rests on, in the study's metric", "[report]") {
    // A score of -0.75 is a loss of 0.75.
    const Prepared study(
        {.model = "external", .results = 24, .expected = -0.75, .gain = 1.5, .note = "searches a branch"});
    REQUIRE(study.state(3).origin.kind == study::Origin::Kind::ticket);
    CHECK_THAT(explained(view_of(study), 3),
               Contains("origin    prepared by external from 24 results; expected loss 0.7500; log of its acquisition "
                        "1.5000; searches a branch\n"));
    CHECK(exported(study).at(3) == Json{{"kind", "ticket"},
                                        {"index", 1},
                                        {"model", "external"},
                                        {"results", 24},
                                        {"expected", 0.75},
                                        {"gain", 1.5},
                                        {"note", "searches a branch"}});
}

TEST_CASE("a prepared suggestion without a model has the searcher's name, and its note", "[report]") {
    const Prepared sobol({.model = "sobol", .note = "the model needs 10 results"});
    CHECK_THAT(explained(view_of(sobol), 3),
               Contains("origin    prepared by external (sobol); the model needs 10 results\n"));
    const Prepared silent({});
    CHECK_THAT(explained(view_of(silent), 3), Contains("origin    prepared by external\n"));
    CHECK(exported(silent).at(3) == Json{{"kind", "ticket"}, {"index", 1}});
}

TEST_CASE("a suggestion that was not prepared is explained from the records before it", "[report]") {
    StudyByHand study(short_trials("type = \"evolution\"\npopulation = 2\nsample = 2\n"));
    study.began(1);
    study.play_out([](std::uint32_t trial, base::Iteration) { return static_cast<double>(trial); });
    const TemporaryDirectory directory;
    write_journal(directory.path(), study.records);
    auto& files = storage::posix_file_system();
    const auto text = [&](std::uint32_t trial) {
        StudyView view = view_of(study);
        view.origins.tell(study::TrialId(trial), basis_of(files, directory.path(), study::TrialId(trial)));
        return explained(view, trial);
    };
    CHECK_THAT(text(1), Contains("origin    suggested by evolution (random) from 1 result; the population is not "
                                 "complete\n"));
    CHECK_THAT(text(2), Contains("origin    suggested by evolution from 2 results; a change of #0\n"));
    CHECK_THAT(explained(view_of(study), 2), Contains("origin    suggested by evolution\n"));
    const Prepared prepared({.model = "external"});
    const TemporaryDirectory other;
    write_journal(other.path(), prepared.records);
    CHECK(basis_of(files, other.path(), study::TrialId(3)) == study::SuggestionBasis{}); // its record says it
}

TEST_CASE("a stopgap says why no suggestion was taken", "[report]") {
    const Prepared study({});
    const StudyView view = view_of(study);
    REQUIRE(study.state(2).origin.kind == study::Origin::Kind::stopgap);
    CHECK_THAT(explained(view, 0), Contains("origin    a stopgap of external: no suggestion was ready\n"));
    CHECK_THAT(explained(view, 1), Contains("origin    a stopgap of external: no suggestion was ready\n"));
    CHECK_THAT(explained(view, 2), Contains("origin    a stopgap of external: the searcher failed: no memory\n"));
    CHECK(exported(study).at(1) == Json{{"kind", "stopgap"}, {"index", 1}});
    CHECK(exported(study).at(2) ==
          Json{{"kind", "stopgap"}, {"index", 2}, {"failures", 1}, {"failure", "no memory\nat line 3"}});
}

TEST_CASE("a trial whose searcher was given up is a stopgap that says why, also without a failed ticket", "[report]") {
    StudyByHand study(short_trials("type = \"external\"\ncommand = \"python3 search.py\"\n"));
    study.began(1);
    for (const std::uint64_t ticket : {0U, 1U, 2U}) study.step(study::Prepared{ticket, {}, "it ended"});
    for (std::uint32_t trial = 0; trial < 6; ++trial) study.train(trial, 1, 0.5);
    REQUIRE(study.tuner.state().ended);
    REQUIRE(study.tuner.state().tickets.next() == 3);
    for (std::uint32_t trial = 1; trial < 6; ++trial)
        REQUIRE(study.state(trial).origin == study::Origin{study::Origin::Kind::stopgap, trial, 3});
    const StudyView view = view_of(study);
    CHECK_THAT(explained(view, 0), Contains("origin    a stopgap of external: no suggestion was ready\n"));
    const std::string why = "a stopgap of external: the searcher failed 3 times in a row, at last: it ended\n";
    CHECK_THAT(explained(view, 1), Contains("origin    " + why));
    CHECK_THAT(explained(view, 5), Contains("origin    " + why)); // no failed ticket is left for it
    CHECK(exported(study).at(5) == Json{{"kind", "stopgap"}, {"index", 5}, {"failures", 3}, {"failure", "it ended"}});
    Style style;
    style.width = 400;
    FilesInfo files;
    files.verbose = true;
    files.log = "small/logs/start-1.log";
    CHECK_THAT(end_screen(study.tuner, {}, files, style),
               Contains("search    0 suggestions by external, 6 stopgaps: 5 because it failed, 1 because none was "
                        "ready\n") &&
                   Contains("searcher  failed 3 times in a row, at last: it ended. See `no-suggestion` in "
                            "small/logs/start-1.log; mend the program: the next start of the study asks it again\n"));
    CHECK_THAT(live_head(study.tuner, {}, style), Contains("\nsearcher failed 3 times in a row, at last: it ended\n"));
}

TEST_CASE("a trial that a user asked for names the user and the request", "[report]") {
    const Prepared study({});
    REQUIRE(study.state(4).origin.kind == study::Origin::Kind::user);
    const std::string asked = "add 1 trial: lr=0.125";
    CHECK_THAT(explained(view_of(study), 4), Contains("origin    asked for by ada@login1 at 5.0s: " + asked + "\n"));
    CHECK(exported(study).at(4) == Json{{"kind", "user"}, {"index", 0}, {"who", "ada@login1"}, {"request", asked}});
}

TEST_CASE("points to try first, suggestions and repeats are named", "[report]") {
    StudyByHand study(short_trials("type = \"random\"\nrepeats = 2\n[[searcher.start]]\nlr = 0.5\n"));
    study.began(4);
    const StudyView view = view_of(study);
    CHECK_THAT(explained(view, 0), Contains("origin    point 1 of [[searcher.start]]\n"));
    CHECK_THAT(explained(view, 1), Contains("origin    repeat 1 of #0: point 1 of [[searcher.start]]\n"));
    CHECK_THAT(explained(view, 2), Contains("origin    suggested by random\n"));
    CHECK_THAT(explained(view, 3), Contains("origin    repeat 1 of #2: suggested by random\n"));
    const auto origins = exported(study);
    CHECK(origins.at(0) == Json{{"kind", "start"}, {"index", 0}});
    CHECK(origins.at(2) == Json{{"kind", "searcher"}, {"index", 0}});
    CHECK(origins.at(3) == Json{{"kind", "repeat"}, {"trial", 2}, {"repeat", 1}});
}

} // namespace origins_test
