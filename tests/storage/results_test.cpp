// SPDX-License-Identifier: Apache-2.0
#include "storage/results.hpp"

#include <limits>
#include <stdexcept>

#include "journal_fixture.hpp"
#include "storage/hdf5/hdf5.hpp"
#include "storage/hdf5/thread.hpp"
#include "support/catch.hpp"

namespace ranktune::storage {
namespace {

Results sample() {
    using Role = Column::Role;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    Results r{"digits", "uuid-1", "val_accuracy", "max", "0.1.0", "2026-01-02T03:04:05Z", {}};
    r.tables.push_back({"reports",
                        "every report",
                        {{"trial", Role::field, "", "number of the trial", std::vector<std::int64_t>{0, 1, 0}},
                         {"time", Role::field, "s", "study time", std::vector<double>{0.5, 1.0, 1.5}},
                         {"val_accuracy", Role::metric, "", "", std::vector<double>{0.25, nan, 0.75}},
                         {"time", Role::metric, "", "", std::vector<double>{1, 2, 3}},
                         {"loss/train", Role::metric, "", "", std::vector<double>{4, 5, 6}}}});
    r.tables.push_back({"trials",
                        "",
                        {{"id", Role::field, "", "", std::vector<std::int64_t>{0, 1}},
                         {"state", Role::field, "", "", std::vector<std::string>{"finished", "gestoppt – früh"}},
                         {"hidden", Role::parameter, "", "", std::vector<std::string>{"[128,64]", ""}}}});
    return r;
}

std::vector<double> read_doubles(hid_t file, const char* name) {
    const hdf5::DatasetHandle dataset(hdf5::check(H5Dopen2(file, name, H5P_DEFAULT), name));
    const hdf5::SpaceHandle space(hdf5::check(H5Dget_space(dataset.get()), name));
    std::vector<double> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.get())));
    hdf5::check(H5Dread(dataset.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), name);
    return values;
}

} // namespace

TEST_CASE("result tables are plain HDF5 columns", "[storage]") {
    const test::TemporaryDirectory home;
    const std::string path = home.path() + "/metrics.h5";
    publish_results(posix_file_system(), path, sample());
    publish_results(posix_file_system(), path, sample()); // replaces the first
    CHECK(posix_file_system().list(home.path()) == std::vector<std::string>{"metrics.h5"});
    on_hdf5_thread([&] {
        const hdf5::FileHandle file(hdf5::check(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "open"));
        CHECK(hdf5::get_string(file.get(), "study") == "digits");
        CHECK(hdf5::get_string(file.get(), "metric") == "val_accuracy");
        CHECK(hdf5::get_uint(file.get(), "schema_version") == results_schema);
        CHECK(read_doubles(file.get(), "reports/trial") == std::vector<double>{0, 1, 0});
        CHECK(read_doubles(file.get(), "reports/time") == std::vector<double>{0.5, 1.0, 1.5});
        const auto accuracy = read_doubles(file.get(), "reports/val_accuracy");
        CHECK(accuracy.at(0) == 0.25);
        CHECK(accuracy.at(1) != accuracy.at(1));
        CHECK(read_doubles(file.get(), "reports/metric.time") == std::vector<double>{1, 2, 3});
        CHECK(read_doubles(file.get(), "reports/loss%2Ftrain") == std::vector<double>{4, 5, 6});
        const hdf5::DatasetHandle loss(H5Dopen2(file.get(), "reports/loss%2Ftrain", H5P_DEFAULT));
        CHECK(hdf5::get_string(loss.get(), "name") == "loss/train");
        CHECK(hdf5::get_string(loss.get(), "role") == "metric");
        CHECK(hdf5::get_string(loss.get(), "units") == "1");
    });
}

TEST_CASE("names that clash get their role as a prefix, repeated if needed", "[storage]") {
    const test::TemporaryDirectory home;
    const std::string path = home.path() + "/metrics.h5";
    Results clashing = sample();
    auto& columns = clashing.tables[0].columns;
    using Role = Column::Role;
    columns.push_back({"metric.time", Role::metric, "", "", std::vector<double>{7, 8, 9}}); // after "time"
    publish_results(posix_file_system(), path, clashing);
    on_hdf5_thread([&] {
        const hdf5::FileHandle file(hdf5::check(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "open"));
        CHECK(read_doubles(file.get(), "reports/time") == std::vector<double>{0.5, 1.0, 1.5});
        CHECK(read_doubles(file.get(), "reports/metric.time") == std::vector<double>{7, 8, 9});
        CHECK(read_doubles(file.get(), "reports/metric.metric.time") == std::vector<double>{1, 2, 3});
        const hdf5::DatasetHandle time(H5Dopen2(file.get(), "reports/metric.metric.time", H5P_DEFAULT));
        CHECK(hdf5::get_string(time.get(), "name") == "time");
    });
}

TEST_CASE("an empty study has empty tables", "[storage]") {
    const test::TemporaryDirectory home;
    Results empty = sample();
    for (ResultTable& table : empty.tables) {
        for (Column& column : table.columns) std::visit([](auto& values) { values.clear(); }, column.values);
    }
    const std::string path = home.path() + "/metrics.h5";
    publish_results(posix_file_system(), path, empty);
    on_hdf5_thread([&] {
        const hdf5::FileHandle file(hdf5::check(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "open"));
        CHECK(read_doubles(file.get(), "reports/val_accuracy").empty());
    });
}

TEST_CASE("tables with columns of different length or equal names are refused", "[storage]") {
    const test::TemporaryDirectory home;
    Results uneven = sample();
    uneven.tables[0].columns[1].values = std::vector<double>{1.0};
    CHECK_THROWS_AS(publish_results(posix_file_system(), home.path() + "/m.h5", uneven), std::invalid_argument);
    Results twice = sample();
    twice.tables[1].columns[1].name = "id";
    CHECK_THROWS_AS(publish_results(posix_file_system(), home.path() + "/m.h5", twice), std::invalid_argument);
    CHECK(posix_file_system().list(home.path()).empty());
}

} // namespace ranktune::storage
