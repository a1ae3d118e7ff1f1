// SPDX-License-Identifier: Apache-2.0
#pragma once
// HDF5 files that tests read.

#include <hdf5.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "storage/hdf5/thread.hpp"

namespace ranktune::testing {

/// A file in the temporary directory, removed at the end of the test.
class TemporaryHdf5 {
  public:
    TemporaryHdf5() {
        static int number = 0;
        path_ = std::filesystem::temp_directory_path() /
                ("ranktune-dataset-" + std::to_string(getpid()) + "-" + std::to_string(++number) + ".h5");
    }
    ~TemporaryHdf5() { std::filesystem::remove(path_); }
    TemporaryHdf5(const TemporaryHdf5&) = delete;
    TemporaryHdf5& operator=(const TemporaryHdf5&) = delete;
    [[nodiscard]] std::string path() const { return path_.string(); }

  private:
    std::filesystem::path path_;
};

/// Writes data sets one by one; creates intermediate groups.
class Hdf5Writer {
  public:
    explicit Hdf5Writer(const std::string& path) {
        storage::on_hdf5_thread([&] { file_ = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT); });
    }
    ~Hdf5Writer() {
        storage::on_hdf5_thread([&] { H5Fclose(file_); });
    }
    Hdf5Writer(const Hdf5Writer&) = delete;
    Hdf5Writer& operator=(const Hdf5Writer&) = delete;

    /// `chunk`: rows of each; 0: contiguous.
    template <class T>
    Hdf5Writer& put(const char* name, hid_t stored, hid_t memory, std::vector<hsize_t> shape, std::vector<T> values,
                    hsize_t chunk = 0) {
        storage::on_hdf5_thread([&] {
            const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
            const hid_t links = H5Pcreate(H5P_LINK_CREATE);
            H5Pset_create_intermediate_group(links, 1);
            const hid_t layout = H5Pcreate(H5P_DATASET_CREATE);
            std::vector<hsize_t> chunks = shape;
            chunks[0] = chunk;
            if (chunk > 0) H5Pset_chunk(layout, static_cast<int>(chunks.size()), chunks.data());
            const hid_t dataset = H5Dcreate2(file_, name, stored, space, links, layout, H5P_DEFAULT);
            H5Dwrite(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
            H5Dclose(dataset);
            H5Pclose(layout);
            H5Pclose(links);
            H5Sclose(space);
        });
        return *this;
    }
    Hdf5Writer& floats(const char* name, std::vector<hsize_t> shape, std::vector<float> values, hsize_t chunk = 0) {
        return put(name, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, std::move(shape), std::move(values), chunk);
    }
    Hdf5Writer& bytes(const char* name, std::vector<hsize_t> shape, std::vector<int> values) {
        return put(name, H5T_STD_U8LE, H5T_NATIVE_INT, std::move(shape), std::move(values));
    }
    Hdf5Writer& integers(const char* name, std::vector<hsize_t> shape, std::vector<int> values) {
        return put(name, H5T_STD_I64LE, H5T_NATIVE_INT, std::move(shape), std::move(values));
    }
    Hdf5Writer& classes(std::int64_t count) {
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

} // namespace ranktune::testing
