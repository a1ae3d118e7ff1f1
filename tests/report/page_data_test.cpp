// SPDX-License-Identifier: Apache-2.0
#include "report/page/page_data.hpp"

#include <filesystem>
#include <fstream>
#include <limits>

#include <nlohmann/json.hpp>

#include "report/view/importance.hpp"
#include "report/view/surroundings.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "view_by_hand.hpp"

namespace page_data_test {

using namespace ranktune;
using namespace ranktune::report;
using namespace ranktune::report::testing;
using Json = nlohmann::json;

namespace {

constexpr double no_value = std::numeric_limits<double>::quiet_NaN();

Json data_of(const StudyView& view, const PageLimits& limits = {}) {
    const PageStudy study{view, "dir", "ended"};
    return Json::parse(page_data({&study, 1}, "2026-11-20T00:00:00Z", limits)).at("studies").at(0);
}

/// A study with one curve of so many points, best after a third.
StudyView long_curve(study::Iteration points) {
    StudyView view;
    TrialView trial;
    for (study::Iteration i = 1; i <= points; ++i)
        trial.curve.push_back({i, i == points / 3 ? 2.0 : 1.0, static_cast<double>(i) * 0.25});
    view.trials.push_back(trial);
    return view;
}

/// Trials whose value depends on `lr` alone; `width` is drawn beside it.
StudyView planted(std::size_t trials) {
    StudyView view;
    view.mode = study::Mode::min;
    view.parameters = {{"lr", space::FloatRange{0.0, 1.0}, {}}, {"width", space::Choice{{32, 64, 128}}, {}}};
    for (std::size_t i = 0; i < trials; ++i) {
        TrialView trial;
        const double lr = (static_cast<double>(i) + 0.5) / static_cast<double>(trials);
        trial.best = std::abs(lr - 0.3);
        trial.configuration = space::Configuration({{"lr", lr}, {"width", static_cast<int>(32 << i % 3)}});
        view.trials.push_back(trial);
    }
    return view;
}

} // namespace

TEST_CASE("columns of iterations and times are differences, in hundredths of a second", "[report]") {
    const Json curves = data_of(long_curve(4)).at("curves");
    CHECK(curves.at("count") == Json{4});
    CHECK(curves.at("iteration") == Json{1, 1, 1, 1});
    CHECK(curves.at("at") == Json{25, 25, 25, 25});
    CHECK(curves.at("value") == Json{2, 1, 1, 1});
    CHECK(curves.at("thinned") == false);
}

TEST_CASE("a long curve is thinned, and keeps its ends and its best point", "[report]") {
    const StudyView view = long_curve(1000);
    const auto kept = thinned(view.trials[0].curve, 10, study::Mode::max);
    CHECK(kept.size() == 10);
    CHECK(kept.front() == 0);
    CHECK(kept.back() == 999);
    CHECK(std::ranges::find(kept, std::size_t{332}) != kept.end());
    const Json curves = data_of(view, {.curve_points = 10, .attempts = 10, .decisions = 10}).at("curves");
    CHECK(curves.at("thinned") == true);
    CHECK(curves.at("reports") == 1000);
    CHECK(curves.at("count") == Json{10});
}

TEST_CASE("values that are not finite are null, and numbers are rounded to six digits", "[report]") {
    StudyView view = long_curve(1);
    view.trials[0].curve[0].value = std::numeric_limits<double>::infinity();
    view.trials[0].best = no_value;
    view.trials[0].last = 0.123456789;
    const Json data = data_of(view);
    CHECK(data.at("curves").at("value") == Json{nullptr});
    CHECK(data.at("trials").at("best") == Json{nullptr});
    CHECK(data.at("trials").at("last") == Json{0.123457});
}

TEST_CASE("best values keep all digits, as trials are ranked by them", "[report]") {
    StudyView view = long_curve(1);
    view.trials[0].best = 0.9999999999994;
    CHECK(data_of(view).at("trials").at("best") == Json{0.9999999999994});
}

TEST_CASE("names and messages of users cannot leave the data of the page", "[report]") {
    StudyView view = long_curve(1);
    view.name = "</script><script>alert(1)</script>";
    view.trials[0].message = std::string("bad \xff byte <!-- ");
    const PageStudy study{view, "<b>", "ended"};
    const std::string text = page_data({&study, 1}, "now");
    CHECK(text.find('<') == std::string::npos);
    const Json data = Json::parse(text).at("studies").at(0);
    CHECK(data.at("name") == view.name);
    CHECK(data.at("texts").at(data.at("trials").at("message").at(0).get<std::size_t>()) == "bad \\xff byte <!-- ");
}

TEST_CASE("the page has failures by their messages", "[report]") {
    StudyView view;
    CHECK_FALSE(data_of(view).contains("failures"));
    view.failures = {"#1 #2: out of memory", "#3: NaN"};
    CHECK(data_of(view).at("failures") == Json(view.failures));
}

TEST_CASE("of too many attempts the longest stay, in their order", "[report]") {
    StudyView view;
    for (const double length : {1.0, 5.0, 2.0, 4.0}) {
        AttemptView attempt;
        attempt.ranks = {study::Rank{1}, study::Rank{2}, study::Rank{5}};
        attempt.end_s = length;
        view.attempts.push_back(attempt);
    }
    const Json attempts = data_of(view, {.curve_points = 9, .attempts = 2, .decisions = 9}).at("attempts");
    CHECK(attempts.at("all") == 4);
    CHECK(attempts.at("length") == Json{500, 400});
    CHECK(attempts.at("ranks").at(0) == Json{1, 2, 5, 1}); // ranks 1 and 2, and rank 5
}

TEST_CASE("starts name their machine, job, software and code, as far as files say so", "[report]") {
    const ranktune::testing::TemporaryDirectory directory;
    auto& files = storage::posix_file_system();
    CHECK(surroundings_of(files, directory.path()).empty());
    std::filesystem::create_directories(directory.path() + "/logs");
    const auto write = [&](const char* name, const char* text) {
        std::ofstream(directory.path() + "/logs/" + name) << text;
    };
    write("start-2.env.json",
          R"({"start": 2, "ranktune": "0.1.0", "mpi": "Open MPI 4.1.4", "hdf5": "1.10.8", "machine": {"host": "n2"},
              "code": {"directory": "/home/ann", "commit": "abc"}, "variables": {"SLURM_JOB_ID": "4711"}})");
    write("start-1.env.json", "{\"start\": 1"); // cut off
    write("start-3.env.json", "[]");
    PageStudy study{StudyView{}, "dir", "ended", surroundings_of(files, directory.path())};
    REQUIRE(study.surroundings.size() == 1);
    study.view.starts.resize(2);
    const Json starts = Json::parse(page_data({&study, 1}, "now")).at("studies").at(0).at("starts");
    CHECK_FALSE(starts.at(0).contains("host"));
    CHECK(starts.at(1).at("host") == "n2");
    CHECK(starts.at(1).at("job") == "4711");
    CHECK(starts.at(1).at("software") == "ranktune 0.1.0, Open MPI 4.1.4, HDF5 1.10.8");
    CHECK(starts.at(1).at("code") == "abc in /home/ann");
}

TEST_CASE("the parameter that decides is the important one", "[report]") {
    const auto found = importance_of(planted(200));
    REQUIRE(found.size() == 2);
    CHECK(found[0].parameter == "lr");
    CHECK(found[0].share.value() > 0.9);
    CHECK(found[0].share.value() + found[1].share.value() == Approx(1.0));
}

TEST_CASE("a parameter that few of the best trials have gets no importance, and the others share it", "[report]") {
    StudyView view = planted(200);
    for (std::size_t i = 0; i < view.trials.size(); ++i)
        if (i > 55) view.trials[i].configuration = space::Configuration({{"width", 32}}); // the best are about 50 to 70
    const auto found = importance_of(view);
    REQUIRE(found.size() == 2);
    CHECK(found[0].parameter == "lr");
    view.trials[53].configuration = view.trials[54].configuration = view.trials[55].configuration =
        space::Configuration({{"width", 32}});
    const auto fewer = importance_of(view);
    CHECK(fewer[0].parameter == "width");
    CHECK(fewer[0].share.value() == Approx(1.0));
    CHECK_FALSE(fewer[1].share);
}

TEST_CASE("of few trials nothing is said about importance", "[report]") {
    CHECK(importance_of(planted(least_trials_for_importance - 1)).empty());
    CHECK(importance_of(planted(least_trials_for_importance)).size() == 2);
    StudyView failed = planted(200);
    for (auto& trial : failed.trials) trial.best = no_value;
    CHECK(importance_of(failed).empty());
}

} // namespace page_data_test
