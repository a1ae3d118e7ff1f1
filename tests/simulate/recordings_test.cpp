// SPDX-License-Identifier: Apache-2.0
#include "simulate/recordings.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ranktune/base/error.hpp"
#include "setups.hpp"
#include "simulate/directory.hpp"
#include "simulate/recorded_curves.hpp"
#include "storage/hdf5/hdf5.hpp"
#include "storage/hdf5/thread.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/files.hpp"

namespace recordings_test {

using namespace ranktune;
using namespace ranktune::simulate;
using simulate::testing::exact;
using simulate::testing::spec;

namespace {

Recordings table(const std::string& text) { return read_csv(text, "curves.csv", "score", {"x", "y"}); }

std::string refusal(const std::string& text) {
    return ranktune::testing::error_of<base::UsageError>([&] { return table(text); });
}

/// Three curves: a good one, one that ends early beside it, and a short, bad one.
constexpr const char* three =
    "curve,iteration,score,seconds,x,y,note\n"
    "good,1,0.5,2,0.5,0.5,a\n"
    "good,2,0.7,4,0.5,0.5,b\n"
    "good,4,0.9,10,0.5,0.5,c\n"
    "\n"
    "early,1,0.4,1,0.6,0.5,d\n"
    "early,2,0.5,2,0.6,0.5,e\n"
    "\"bad, one\",1,0.1,3,1,0,f\n";

std::unique_ptr<RecordedCurves> curves_of(const study::StudySpec& spec, const std::string& text = three) {
    return std::make_unique<RecordedCurves>(std::make_shared<Recordings>(table(text)), CurveModel{}, TimeModel{}, spec);
}

space::Configuration at(const study::StudySpec& spec, double x, double y) {
    const double point[] = {x, y};
    return spec.space.decode(point);
}

constexpr const char* fifo = "[scheduler]\ntype = \"fifo\"\n";

} // namespace

TEST_CASE("a table has curves, iterations, values, seconds and hyper-parameters", "[simulate]") {
    const Recordings recordings = table(three);
    CHECK(recordings.origin == "curves.csv");
    CHECK(recordings.parameters == std::vector<std::string>{"x", "y"});
    CHECK(recordings.has_seconds);
    REQUIRE(recordings.curves.size() == 3);
    REQUIRE(recordings.curves[0].points.size() == 3);
    CHECK(recordings.curves[0].points[2].iteration == 4);
    CHECK(recordings.curves[0].points[2].value == 0.9);
    CHECK(recordings.curves[0].points[2].seconds == 10.0);
    CHECK(recordings.curves[1].configuration[0] == "0.6");
    CHECK(table("iteration,curve,score\r\n1,a,3\r\n").curves[0].points[0].value == 3.0);
}

TEST_CASE("mistakes in a table are named with file and line", "[simulate]") {
    CHECK(refusal("") == "curves.csv is empty: it needs the names of its columns");
    CHECK(refusal("curve,iteration,loss\n") == "curves.csv:1: there is no column 'score' (the study's metric)");
    CHECK(refusal("curve,iteration,score,score\n") == "curves.csv:1: two columns have the name 'score'");
    CHECK(refusal("curve,iteration,score\n") == "curves.csv has no curves");
    CHECK(refusal("curve,iteration,score\na,1\n") == "curves.csv:2: the row has 2 cells, and the first line names 3");
    CHECK(refusal("curve,iteration,score\na,1,x\n") == "curves.csv:2: the metric needs a number, not 'x'");
    CHECK(refusal("curve,iteration,score\na,1.5,1\n") ==
          "curves.csv:2: iteration needs a whole number from 1, not '1.5'");
    CHECK(refusal("curve,iteration,score\na,1,1\n\na,1,2\n") == "curves.csv: curve 'a', iteration 1 is there twice");
    CHECK(refusal("curve,iteration,score,seconds\na,1,1,-1\n") ==
          "curves.csv:2: seconds need a number from 0 to 1e9, not '-1'");
    for (const std::string seconds : {"inf", "1e300", "nan"})
        CHECK(refusal("curve,iteration,score,seconds\na,1,1," + seconds + "\n") ==
              "curves.csv:2: seconds need a number from 0 to 1e9, not '" + seconds + "'");
    CHECK(refusal("curve,iteration,score,seconds\na,1,1,5\na,2,1,4\n")
              .find("curve 'a', iteration 2: its seconds are fewer") != std::string::npos);
    CHECK(refusal("curve,iteration,score,x\na,1,1,5\na,2,1,4\n") ==
          "curves.csv:3: curve 'a' has other hyper-parameters in an earlier line");
    CHECK(refusal("curve,iteration,score\n\"a,1,1\n") == "curves.csv:2: a quoted cell does not end");
}

TEST_CASE("a table can be an HDF5 file", "[simulate]") {
    const ranktune::testing::TemporaryDirectory place;
    const std::string path = place.path() + "/curves.h5";
    storage::on_hdf5_thread([&] {
        const storage::hdf5::FileHandle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
        const auto put = [&](const char* name, hid_t type, const void* values) {
            const hsize_t rows = 3;
            const storage::hdf5::SpaceHandle space(H5Screate_simple(1, &rows, nullptr));
            const storage::hdf5::DatasetHandle dataset(
                H5Dcreate2(file.get(), name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
            H5Dwrite(dataset.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
        };
        const std::int32_t curve[] = {7, 7, 9};
        const std::int64_t iteration[] = {1, 2, 1};
        const float score[] = {0.5F, 0.75F, 0.25F};
        const double x[] = {0.1, 0.1, 0.9};
        const char* y[] = {"0.2", "0.2", "0.3"};
        put("curve", H5T_NATIVE_INT32, curve);
        put("iteration", H5T_NATIVE_INT64, iteration);
        put("score", H5T_NATIVE_FLOAT, score);
        put("x", H5T_NATIVE_DOUBLE, x);
        put("y", storage::hdf5::string_type().get(), y);
        static_cast<void>(storage::hdf5::create_group(file.get(), "other"));
    });
    const Recordings recordings = read_hdf5(path, "score", {"x", "y"});
    REQUIRE(recordings.curves.size() == 2);
    CHECK(recordings.curves[0].points[1].value == 0.75);
    CHECK(recordings.curves[0].configuration[0] == "0.1");
    CHECK(recordings.curves[1].configuration[1] == "0.3");
    CHECK_FALSE(recordings.has_seconds);
    CHECK_THROWS_WITH(read_hdf5(path, "loss", {}),
                      Catch::Matchers::Contains("there is no column 'loss' (the study's metric)"));
    CHECK_THROWS_AS(read_hdf5(place.path() + "/none.h5", "score", {}), base::FormatError);
}

TEST_CASE("a trial gets the nearest measured curve", "[simulate]") {
    const auto study = spec("num_trials = 4\nmax_iterations = 4");
    const auto curves = curves_of(study);
    const auto good = curves->curve(at(study, 0.5, 0.45));
    CHECK(good->quality({1.0, 0.0}) == 0.5);
    CHECK(good->quality({3.0, 0.0}) == Approx(0.8)); // between two points
    CHECK(good->quality({4.0, 0.0}) == 0.9);
    CHECK(curves->curve(at(study, 0.9, 0.2))->quality({1.0, 0.0}) == 0.1);
    REQUIRE(curves->distances());
    CHECK(curves->distances()->largest == Approx(std::sqrt((0.01 + 0.04) / 2.0)));
    CHECK(curves->best_reachable() == 0.9);
    CHECK(curves_of(spec("num_trials = 4\nmax_iterations = 2"))->best_reachable() == 0.7);
}

TEST_CASE("beyond its data a curve goes on beside a longer one that is no worse", "[simulate]") {
    const auto study = spec("num_trials = 4\nmax_iterations = 6");
    const auto curves = curves_of(study);
    const auto early = curves->curve(at(study, 0.6, 0.5));
    CHECK(early->quality({2.0, 0.0}) == 0.5);
    CHECK(early->is_known({2.0, 0.0}));
    CHECK_FALSE(early->is_known({3.0, 0.0}));
    CHECK(early->quality({4.0, 0.0}) == Approx(0.7)); // 0.2 below the good one
    CHECK(early->quality({6.0, 0.0}) == Approx(0.7)); // nobody is longer
    CHECK(curves->curve(at(study, 0.5, 0.5))->quality({6.0, 0.0}) == 0.9);
    // The nearest is "early", which ends at 2; from there on the good one leads.
    CHECK(curves->curve(at(study, 0.99, 0.0))->quality({4.0, 0.0}) == Approx(0.1 + 0.1 + 0.2));
}

TEST_CASE("measured seconds take their time, and beyond them that of one of them", "[simulate]") {
    const auto study = spec("num_trials = 4\nmax_iterations = 3000");
    const auto good = curves_of(study)->curve(at(study, 0.5, 0.5));
    CHECK(good->step({0.0, 0.0}, 1).seconds == 2.0);
    CHECK(good->step({1.0, 0.0}, 2).seconds == 2.0);
    CHECK(good->step({2.0, 0.0}, 3).seconds == 3.0);
    CHECK(good->step({3.0, 0.0}, 4).seconds == 3.0);
    // After the first: 2, 3, 3. The mean of all further ones is theirs, and some are the slow ones.
    std::map<double, int> further;
    for (base::Iteration i = 5; i <= 3000; ++i) ++further[good->step({static_cast<double>(i - 1), 0.0}, i).seconds];
    CHECK(further.size() == 2);
    CHECK(further[2.0] / 2996.0 == Approx(1.0 / 3.0).margin(0.03));
    CHECK(good->step({4.0, 0.0}, 5).seconds ==
          curves_of(study)->curve(at(study, 0.5, 0.5))->step({4.0, 0.0}, 5).seconds);
    // It has one iteration, perhaps a slow one; the nearest curve with more takes a second for its second.
    const auto bad = curves_of(study)->curve(at(study, 0.99, 0.0));
    CHECK(bad->step({0.0, 0.0}, 1).seconds == 3.0);
    CHECK(bad->step({1.0, 0.0}, 2).seconds == 1.0);
    CHECK(good->step({0.0, 0.0}, 1).noise == 0.0);
}

TEST_CASE("a state moves from one measured curve to another", "[simulate]") {
    const auto study = spec("num_trials = 4\nmax_iterations = 4");
    const auto curves = curves_of(study);
    const auto good = curves->curve(at(study, 0.5, 0.5));
    const Progress between = good->progress_at(0.6);
    CHECK(between.iterations == 2.0);
    CHECK(good->quality(between) == Approx(0.6));
    const auto early = curves->curve(at(study, 0.6, 0.5));
    const Progress ahead = early->progress_at(0.9);
    CHECK(early->quality(ahead) == Approx(0.9));
    CHECK(ahead.lead == Approx(0.2));
    // Its own checkpoint, even where another iteration has the same value.
    CHECK(good->resumed(0.8, 3.0).iterations == 3.0);
    CHECK(good->resumed(0.8, 3.0).lead == Approx(0.0).margin(1e-15));
}

TEST_CASE("words, lists, grids and absent parameters have distances", "[simulate]") {
    const std::string text =
        "[study]\nname = \"g\"\nmetric = \"score\"\nmode = \"min\"\nnum_trials = 3\nmax_iterations = 9\n"
        "[trainable]\nname = \"any\"\n[space]\nword = ['a', 'b', 'c']\nsize = [16, 32, 64]\nlr = \"loguniform(1e-4, "
        "1)\"\n"
        "fixed = 3\n";
    const auto study =
        study::parse_study(text, "g.toml", {}, ranktune::testing::known({ranktune::testing::any_trainable("any")}));
    const auto recordings = [&](const std::string& csv) {
        return std::make_shared<Recordings>(read_csv(csv, "c.csv", "score", {"word", "size", "lr"}));
    };
    RecordedCurves curves(recordings("curve,iteration,score,word,size,lr\n"
                                     "1,1,0.1,a,16,0.01\n2,1,0.2,c,64,0.01\n3,1,0.3,b,32.0,1\n4,1,0.4,z,16,\n"),
                          {}, {}, study);
    const auto value_at = [&](const char* word, int size, double lr) {
        const auto curve = curves.curve(
            space::Configuration({{"word", word}, {"size", space::Value(size)}, {"lr", lr}, {"fixed", 3}}));
        return curves.metric(curve->quality({1.0, 0.0})); // a loss
    };
    CHECK(value_at("a", 16, 0.02) == 0.1);
    CHECK(value_at("c", 16, 0.01) == 0.2); // the word is 1 apart, 16 and 64 two thirds
    CHECK(value_at("b", 32, 0.001) == 0.3);
    CHECK(curves.best_reachable() == -0.1);
    CHECK_THROWS_WITH(RecordedCurves(recordings("curve,iteration,score,size\n1,1,1,16\n"), {}, {}, study),
                      "c.csv lacks hyper-parameters of the study: word, lr");
}

TEST_CASE("a table without hyper-parameters and seconds gives any of its curves", "[simulate]") {
    const auto study = spec("num_trials = 40\nmax_iterations = 1", fifo);
    Setup setup{study, exact(), 4};
    setup.recordings = std::make_shared<Recordings>(table("curve,iteration,score\na,1,0.25\nb,1,0.5\nc,1,0.75\n"));
    const Figures figures = simulate::simulate(setup, "uuid", "test", nullptr);
    CHECK(figures.best == 0.75);
    CHECK(figures.best_reachable == 0.75);
    CHECK(figures.seconds == 10.0); // the iteration of the model
    REQUIRE(figures.extrapolation);
    CHECK(figures.extrapolation->beyond == 0.0);
    CHECK_FALSE(figures.extrapolation->distances);
}

TEST_CASE("a study with measured curves takes their values and seconds, and counts what lies beyond", "[simulate]") {
    auto study = spec("num_trials = 1\nmax_iterations = 6", fifo);
    Setup setup{study, exact(), 1};
    setup.model.time.given = {"start", "checkpoint"};
    setup.recordings =
        std::make_shared<Recordings>(table("curve,iteration,score,seconds,x,y\n"
                                           "a,1,0.5,2,0.5,0.5\na,4,0.8,8,0.5,0.5\n"));
    const Figures figures = simulate::simulate(setup, "uuid", "test", nullptr);
    CHECK(figures.seconds == Approx(12.0));
    CHECK(figures.best == 0.8);
    CHECK(figures.near_best_s == 8.0);
    REQUIRE(figures.extrapolation);
    CHECK(figures.extrapolation->beyond == Approx(2.0 / 6.0));
    CHECK(description(setup) == "1 group of 1 rank, with the curves of curves.csv");
    setup.model.time.given.emplace_back("spread");
    CHECK_THROWS_WITH(simulate::simulate(setup, "uuid", "test", nullptr),
                      "time.spread of the model has no effect: curves.csv has the seconds of its iterations");
}

TEST_CASE("the journal of a study gives its curves and times back", "[simulate]") {
    const ranktune::testing::TemporaryDirectory place;
    auto& files = storage::posix_file_system();
    const std::string directory = place.path() + "/earlier";
    const std::string asha = "[scheduler]\ntype = \"asha\"\neta = 3\n";
    Setup earlier{spec("num_trials = 27\nmax_iterations = 9", asha), exact(), 3};
    earlier.model.time.start = 4.0;
    earlier.model.time.first_start = 6.0;
    earlier.model.time.checkpoint = 2.0;
    earlier.model.time.report = 0.25;
    earlier.model.time.spread = 0.4;
    const Figures before = simulate_to(files, earlier, {directory, "text", "", "", "test"});
    auto recordings = std::make_shared<Recordings>(read_study(files, directory, "score"));
    CHECK(recordings->curves.size() == 27);
    CHECK(recordings->parameters == std::vector<std::string>{"x", "y"});
    REQUIRE(recordings->times.start);
    CHECK(*recordings->times.start == Approx(4.0).margin(1e-6));
    CHECK(*recordings->times.first_start == Approx(6.0).margin(1e-6));
    CHECK(*recordings->times.checkpoint == Approx(2.0).margin(1e-6));
    CHECK(*recordings->times.report == Approx(0.25).margin(1e-6));
    CHECK_FALSE(recordings->times.exploit);
    CHECK(times_of(TimeModel{}, *recordings).exploit == *recordings->times.start);
    CHECK(times_of(TimeModel{}, *recordings).stragglers == 0.0);

    // The same study on its own curves is the same study.
    Setup again{earlier.spec, Model{}, 3};
    again.recordings = recordings;
    const Figures same = simulate::simulate(again, "uuid", "test", nullptr);
    CHECK(same.seconds == Approx(before.seconds).epsilon(1e-6));
    CHECK(same.reports == before.reports);
    CHECK(same.best == before.best);
    CHECK(same.extrapolation->beyond == 0.0);
    CHECK(same.extrapolation->distances->largest == Approx(0.0).margin(1e-6));

    // Without early ends it goes beyond the data, on the same configurations.
    Setup whole{spec("num_trials = 27\nmax_iterations = 9", fifo), Model{}, 5};
    whole.recordings = recordings;
    const Figures all = simulate::simulate(whole, "uuid", "test", nullptr);
    CHECK(all.reports == 27 * 9);
    const double expected = 1.0 - static_cast<double>(before.reports) / (27.0 * 9.0);
    CHECK(all.extrapolation->beyond == Approx(expected));
    CHECK(all.best <= all.best_reachable);

    CHECK_THROWS_WITH(read_study(files, directory, "loss"),
                      "the study in " + directory + " has no metric 'loss'; it has score");
    CHECK_THROWS_WITH(read_study(files, place.path(), "score"),
                      "'" + place.path() + "' holds no study (no journal in it) to take learning curves from");
}

TEST_CASE("iterations that were trained again count once", "[simulate]") {
    const ranktune::testing::TemporaryDirectory place;
    auto& files = storage::posix_file_system();
    const std::string directory = place.path() + "/earlier";
    Setup earlier{spec("num_trials = 4\nmax_iterations = 50", std::string("[checkpoint]\ninterval = 10\n") + fifo),
                  exact(), 2};
    earlier.faults.job_mean_s = 30.0;
    const Figures figures = simulate_to(files, earlier, {directory, "text", "", "", "test"});
    REQUIRE(figures.repeated_s > 0.0);
    const Recordings recordings = read_study(files, directory, "score");
    REQUIRE(recordings.curves.size() == 4);
    for (const Recording& curve : recordings.curves) {
        CHECK(curve.points.size() == 50);
        CHECK(curve.points.back().seconds == Approx(50.0));
    }
    CHECK(recordings.times.start == 0.0);
}

TEST_CASE("after an exploit reports belong to no curve", "[simulate]") {
    const ranktune::testing::TemporaryDirectory place;
    auto& files = storage::posix_file_system();
    const std::string directory = place.path() + "/earlier";
    Setup earlier{spec("num_trials = 8\nmax_iterations = 30",
                       "[scheduler]\ntype = \"pbt\"\ninterval = 3\n[scheduler.explore]\nx = [0.8, 1.2]\n"),
                  exact(), 8};
    earlier.model.time.start = 4.0;
    earlier.model.time.exploit = 7.0;
    static_cast<void>(simulate_to(files, earlier, {directory, "text", "", "", "test"}));
    const Recordings recordings = read_study(files, directory, "score");
    CHECK(recordings.curves.size() == 8);
    CHECK(std::ranges::any_of(recordings.curves, [](const Recording& curve) { return curve.points.size() < 30; }));
    REQUIRE(recordings.times.exploit);
    CHECK(*recordings.times.exploit == Approx(7.0).margin(1e-6));
    CHECK(*recordings.times.start == Approx(4.0).margin(1e-6));
    // And population-based training runs on such curves.
    Setup again{earlier.spec, Model{}, 4};
    again.recordings = std::make_shared<Recordings>(recordings);
    CHECK(simulate::simulate(again, "uuid", "test", nullptr).trials == 8);
}

} // namespace recordings_test
