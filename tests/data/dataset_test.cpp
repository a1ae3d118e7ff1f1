// SPDX-License-Identifier: Apache-2.0
#include "ranktune/data/dataset.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "data/column_sums.hpp"
#include "data/dataset_rows.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/rng.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/hdf5_file.hpp"

namespace dataset_test {

using namespace ranktune;
using namespace ranktune::data;
using testing::TemporaryHdf5;
using Writer = testing::Hdf5Writer;

namespace {

std::string message_of(const std::string& path) {
    return ranktune::testing::error_of([&] { return load_dataset(path, Scaling::none); });
}

} // namespace

TEST_CASE("a classification file of bytes is read as floats and classes, images flattened", "[data]") {
    const TemporaryHdf5 file;
    Writer(file.path())
        .bytes("train/x", {3, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 255})
        .integers("train/y", {3}, {0, 2, 1})
        .bytes("val/x", {1, 2, 2}, {1, 1, 1, 1})
        .integers("val/y", {1}, {3});
    const Dataset dataset = load_dataset(file.path(), Scaling::none);
    CHECK(dataset.classification);
    CHECK(dataset.features == 4);
    CHECK(dataset.outputs == 4); // the largest class of both splits plus one
    CHECK(dataset.train.count == 3);
    CHECK(dataset.train.x[11] == 255.0F);
    CHECK(dataset.train.classes == std::vector<std::int32_t>{0, 2, 1});
    CHECK(dataset.val.classes == std::vector<std::int32_t>{3});
}

TEST_CASE("the attribute classes counts classes that no sample has", "[data]") {
    const TemporaryHdf5 file;
    Writer(file.path())
        .classes(10)
        .bytes("train/x", {1, 1}, {0})
        .integers("train/y", {1}, {2})
        .bytes("val/x", {1, 1}, {0})
        .integers("val/y", {1}, {2});
    CHECK(load_dataset(file.path(), Scaling::none).outputs == 10);
}

TEST_CASE("standard scaling takes its constants from the training samples alone", "[data]") {
    const TemporaryHdf5 file;
    Writer(file.path())
        .floats("train/x", {4, 2}, {1, 7, 3, 7, 5, 7, 7, 7})
        .floats("train/y", {4}, {10, 20, 30, 40})
        .floats("val/x", {1, 2}, {4, 9})
        .floats("val/y", {1}, {25});
    const Dataset dataset = load_dataset(file.path(), Scaling::standard);
    CHECK_FALSE(dataset.classification);
    CHECK(dataset.outputs == 1);
    CHECK(dataset.x_scale.shift[0] == 4.0F);
    CHECK(dataset.x_scale.factor[0] == Approx(1.0 / std::sqrt(5.0)));
    CHECK(dataset.train.x[0] == Approx(-3.0 / std::sqrt(5.0)));
    CHECK(dataset.x_scale.factor[1] == 1.0F); // constant feature
    CHECK(dataset.val.x[0] == 0.0F);
    CHECK(dataset.val.x[1] == 2.0F);
    CHECK(dataset.y_scale.shift[0] == 25.0F);
    CHECK(dataset.val.targets[0] == 0.0F);
    CHECK(dataset.train.targets[3] == Approx(15.0 / std::sqrt(125.0)));
}

TEST_CASE("unit scaling divides by the largest magnitude", "[data]") {
    const TemporaryHdf5 file;
    Writer(file.path())
        .floats("train/x", {2, 2}, {-8, 0, 4, 0})
        .integers("train/y", {2}, {0, 1})
        .floats("val/x", {1, 2}, {16, 3})
        .integers("val/y", {1}, {0});
    const Dataset dataset = load_dataset(file.path(), Scaling::unit);
    CHECK(dataset.train.x == std::vector<float>{-1.0F, 0.0F, 0.5F, 0.0F});
    CHECK(dataset.val.x == std::vector<float>{2.0F, 3.0F});
}

TEST_CASE("targets of several values per sample are kept as columns", "[data]") {
    const TemporaryHdf5 file;
    Writer(file.path())
        .floats("train/x", {2, 1}, {0, 1})
        .floats("train/y", {2, 2}, {0, 100, 2, 300})
        .floats("val/x", {1, 1}, {0})
        .floats("val/y", {1, 2}, {1, 200});
    const Dataset dataset = load_dataset(file.path(), Scaling::none);
    CHECK(dataset.outputs == 2);
    CHECK(dataset.train.targets == std::vector<float>{-1.0F, -1.0F, 1.0F, 1.0F});
    CHECK(dataset.val.targets == std::vector<float>{0.0F, 0.0F});
}

TEST_CASE("errors in a dataset name the part", "[data]") {
    const TemporaryHdf5 file;
    SECTION("no such file") { CHECK_THROWS_AS(load_dataset("/nowhere/at/all.h5", Scaling::none), base::IoError); }
    SECTION("not HDF5") {
        std::ofstream(file.path()) << "no HDF5 here";
        CHECK(message_of(file.path()).find("cannot be opened as HDF5") != std::string::npos);
    }
    SECTION("a part is missing") {
        Writer(file.path()).bytes("train/x", {1, 1}, {0}).integers("train/y", {1}, {0});
        CHECK(message_of(file.path()).find("val/x is missing") != std::string::npos);
    }
    SECTION("lengths differ") {
        Writer(file.path()).bytes("train/x", {2, 1}, {0, 1}).integers("train/y", {1}, {0});
        CHECK(message_of(file.path()).find("train/y and x differ") != std::string::npos);
    }
    SECTION("features differ") {
        Writer(file.path())
            .bytes("train/x", {1, 2}, {0, 1})
            .integers("train/y", {1}, {0})
            .bytes("val/x", {1, 1}, {0})
            .integers("val/y", {1}, {0});
        CHECK(message_of(file.path()).find("val/x and train/x differ") != std::string::npos);
    }
    SECTION("one split has classes and the other targets") {
        Writer(file.path())
            .bytes("train/x", {1, 1}, {0})
            .integers("train/y", {1}, {0})
            .bytes("val/x", {1, 1}, {0})
            .floats("val/y", {1}, {0.5F});
        CHECK(message_of(file.path()).find("val/y and train/y differ") != std::string::npos);
    }
    SECTION("a class below 0") {
        Writer(file.path()).bytes("train/x", {1, 1}, {0}).integers("train/y", {1}, {-1});
        CHECK(message_of(file.path()).find("class -1") != std::string::npos);
    }
    SECTION("more classes than the attribute says") {
        Writer(file.path())
            .classes(2)
            .bytes("train/x", {1, 1}, {0})
            .integers("train/y", {1}, {2})
            .bytes("val/x", {1, 1}, {0})
            .integers("val/y", {1}, {0});
        CHECK(message_of(file.path()).find("attribute classes is smaller") != std::string::npos);
    }
    SECTION("NaN") {
        Writer(file.path()).floats("train/x", {1, 1}, {std::numeric_limits<float>::quiet_NaN()});
        CHECK(message_of(file.path()).find("train/x holds NaN") != std::string::npos);
    }
    SECTION("no samples") {
        Writer(file.path()).floats("train/x", {0, 3}, {});
        CHECK(message_of(file.path()).find("train/x has no samples") != std::string::npos);
    }
}

TEST_CASE("wrong shapes of a dataset are found without reading its values", "[data]") {
    const TemporaryHdf5 file;
    CHECK(dataset_problem(file.path()) != "");
    {
        Writer(file.path())
            .put<float>("train/x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, {2, 1}, {NAN, 1})
            .put<int>("train/y", H5T_STD_I32LE, H5T_NATIVE_INT, {2}, {0, 1})
            .put<float>("val/x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, {1, 1}, {1});
    }
    CHECK(dataset_problem(file.path()).find("val/y is missing") != std::string::npos);
    {
        Writer(file.path())
            .put<float>("train/x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, {2, 1}, {NAN, 1})
            .put<int>("train/y", H5T_STD_I32LE, H5T_NATIVE_INT, {2}, {0, 1})
            .put<float>("val/x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, {1, 1}, {1})
            .put<int>("val/y", H5T_STD_I32LE, H5T_NATIVE_INT, {1}, {0});
    }
    CHECK(dataset_problem(file.path()).empty());
}

TEST_CASE("trials of one process share a dataset until its file changes", "[data]") {
    const TemporaryHdf5 file;
    const auto write = [&](int value) {
        Writer(file.path())
            .bytes("train/x", {1, 1}, {value})
            .integers("train/y", {1}, {0})
            .bytes("val/x", {1, 1}, {0})
            .integers("val/y", {1}, {0});
    };
    write(1);
    const auto first = shared_dataset(file.path(), Scaling::none);
    CHECK(shared_dataset(file.path(), Scaling::none) == first);
    CHECK(shared_dataset(file.path(), Scaling::unit) != first);
    write(2);
    // A later time, in case both versions were written within one tick of the file system's clock.
    std::filesystem::last_write_time(file.path(),
                                     std::filesystem::last_write_time(file.path()) + std::chrono::seconds(5));
    CHECK(shared_dataset(file.path(), Scaling::none)->train.x[0] == 2.0F);
    CHECK(first->train.x[0] == 1.0F);
}

TEST_CASE("a dataset that would take more than a limit is not read", "[data]") {
    const TemporaryHdf5 file;
    Writer(file.path())
        .bytes("train/x", {3, 2}, {0, 1, 2, 3, 4, 5})
        .integers("train/y", {3}, {0, 2, 1})
        .floats("val/x", {1, 2}, {1, NAN})
        .integers("val/y", {1}, {4});
    CHECK(shared_dataset(file.path(), Scaling::none, 47) == nullptr);             // 4 samples of 12 bytes
    CHECK_THROWS_AS(shared_dataset(file.path(), Scaling::none, 48), base::Error); // is read, and has a NaN
    const DatasetShape shape = read_dataset_shape(file.path());
    CHECK(shape.features == 2);
    CHECK(shape.outputs == 5);
    CHECK(shape.train == 3);
    CHECK(shape.val == 1);
}

TEST_CASE("sums of pieces scale columns as the whole dataset does", "[data]") {
    base::RngStream random(3, base::Purpose::initialise);
    std::vector<float> rows;
    for (int i = 0; i < 300; ++i)
        for (const double shift : {0.0, 1e4, -3.0}) rows.push_back(static_cast<float>(shift + random.normal()));
    for (std::size_t i = 2; i < rows.size(); i += 3) rows[i] = 7.5F; // a column that never varies
    const TemporaryHdf5 file;
    Writer(file.path())
        .floats("train/x", {300, 3}, rows)
        .floats("train/y", {300}, std::vector<float>(300, 1.0F))
        .floats("val/x", {1, 3}, {1, 2, 3})
        .floats("val/y", {1}, {0});
    for (const Scaling scaling : {Scaling::none, Scaling::unit, Scaling::standard}) {
        const Scale whole = load_dataset(file.path(), scaling).x_scale;
        for (const std::size_t piece : {1U, 7U, 300U}) {
            ColumnSums sums(3);
            for (std::size_t begin = 0; begin < 300; begin += piece) {
                ColumnSums some(3);
                some.add(std::span(rows).subspan(begin * 3, std::min<std::size_t>(piece, 300 - begin) * 3));
                sums.merge(some);
            }
            REQUIRE(sums.finite());
            const Scale scale = sums.scale(scaling);
            for (std::size_t column = 0; column < 3; ++column) {
                CHECK(scale.shift[column] == Approx(whole.shift[column]).epsilon(1e-6));
                CHECK(scale.factor[column] == Approx(whole.factor[column]).epsilon(1e-6));
            }
        }
    }
    ColumnSums sums(3);
    sums.add(std::vector<float>{1, 2, 3, 4, std::numeric_limits<float>::infinity(), 6});
    CHECK_FALSE(sums.finite());
}

TEST_CASE("rows of a file are those that a dataset in memory has", "[data]") {
    const TemporaryHdf5 file;
    Writer(file.path())
        .bytes("train/x", {4, 2, 1}, {0, 1, 2, 3, 4, 5, 200, 7})
        .integers("train/y", {4}, {0, 2, 1, 3})
        .floats("val/x", {1, 2}, {1, 2})
        .integers("val/y", {1}, {0});
    const Dataset whole = load_dataset(file.path(), Scaling::standard);
    const DatasetShape shape = read_dataset_shape(file.path());
    const DatasetRows rows(DatasetRows(file.path(), "train", shape, 1U << 20U), whole.x_scale, {});
    const std::vector<std::uint64_t> samples{3, 0, 2};
    std::vector<float> x(6);
    std::vector<std::int32_t> y(3);
    rows.gather(0, samples, std::as_writable_bytes(std::span(x)));
    rows.gather(1, samples, std::as_writable_bytes(std::span(y)));
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(x[2 * i] == whole.train.x[2 * samples[i]]);
        CHECK(x[2 * i + 1] == whole.train.x[2 * samples[i] + 1]);
        CHECK(y[i] == whole.train.classes[samples[i]]);
    }
    DatasetShape fewer = shape;
    fewer.outputs = 3; // as if sample 3 had been written since
    const DatasetRows changed(file.path(), "train", fewer, 1U << 20U);
    std::string message;
    try {
        changed.gather(1, samples, std::as_writable_bytes(std::span(y)));
    } catch (const base::FormatError& error) {
        message = error.what();
    }
    CHECK(message.find("train/y: the class of sample 3 is not one of 0 to 2") != std::string::npos);
}

} // namespace dataset_test
