// SPDX-License-Identifier: Apache-2.0
#include "ranktune/data/dataset.hpp"

#include <hdf5.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "ranktune/base/error.hpp"
#include "storage/hdf5/thread.hpp"
#include "support/catch.hpp"

namespace dataset_test {

using namespace ranktune;
using namespace ranktune::data;

namespace {

/// A file in the temporary directory, removed at the end of the test.
class TemporaryFile {
  public:
    TemporaryFile() {
        static int number = 0;
        path_ = std::filesystem::temp_directory_path() /
                ("ranktune-dataset-" + std::to_string(getpid()) + "-" + std::to_string(++number) + ".h5");
    }
    ~TemporaryFile() { std::filesystem::remove(path_); }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    [[nodiscard]] std::string path() const { return path_.string(); }

  private:
    std::filesystem::path path_;
};

/// Writes data sets one by one; creates intermediate groups.
class Writer {
  public:
    explicit Writer(const std::string& path) {
        storage::on_hdf5_thread([&] { file_ = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT); });
    }
    ~Writer() {
        storage::on_hdf5_thread([&] { H5Fclose(file_); });
    }
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;

    template <class T>
    Writer& put(const char* name, hid_t stored, hid_t memory, std::vector<hsize_t> shape, std::vector<T> values) {
        storage::on_hdf5_thread([&] {
            const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
            const hid_t links = H5Pcreate(H5P_LINK_CREATE);
            H5Pset_create_intermediate_group(links, 1);
            const hid_t dataset = H5Dcreate2(file_, name, stored, space, links, H5P_DEFAULT, H5P_DEFAULT);
            H5Dwrite(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
            H5Dclose(dataset);
            H5Pclose(links);
            H5Sclose(space);
        });
        return *this;
    }
    Writer& floats(const char* name, std::vector<hsize_t> shape, std::vector<float> values) {
        return put(name, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, std::move(shape), std::move(values));
    }
    Writer& bytes(const char* name, std::vector<hsize_t> shape, std::vector<int> values) {
        return put(name, H5T_STD_U8LE, H5T_NATIVE_INT, std::move(shape), std::move(values));
    }
    Writer& integers(const char* name, std::vector<hsize_t> shape, std::vector<int> values) {
        return put(name, H5T_STD_I64LE, H5T_NATIVE_INT, std::move(shape), std::move(values));
    }
    Writer& classes(std::int64_t count) {
        storage::on_hdf5_thread([&] {
            const hid_t space = H5Screate(H5S_SCALAR);
            const hid_t attribute = H5Acreate2(file_, "classes", H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT);
            H5Awrite(attribute, H5T_NATIVE_INT64, &count);
            H5Aclose(attribute);
            H5Sclose(space);
        });
        return *this;
    }

  private:
    hid_t file_ = H5I_INVALID_HID;
};

std::string message_of(const std::string& path) {
    try {
        static_cast<void>(load_dataset(path, Scaling::none));
    } catch (const base::Error& error) {
        return error.what();
    }
    return "nothing was thrown";
}

} // namespace

TEST_CASE("a classification file of bytes is read as floats and classes, images flattened", "[data]") {
    const TemporaryFile file;
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
    const TemporaryFile file;
    Writer(file.path())
        .classes(10)
        .bytes("train/x", {1, 1}, {0})
        .integers("train/y", {1}, {2})
        .bytes("val/x", {1, 1}, {0})
        .integers("val/y", {1}, {2});
    CHECK(load_dataset(file.path(), Scaling::none).outputs == 10);
}

TEST_CASE("standard scaling takes its constants from the training samples alone", "[data]") {
    const TemporaryFile file;
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
    const TemporaryFile file;
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
    const TemporaryFile file;
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
    const TemporaryFile file;
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
    const TemporaryFile file;
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
    const TemporaryFile file;
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

} // namespace dataset_test
