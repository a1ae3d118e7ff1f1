// SPDX-License-Identifier: Apache-2.0
// What training data cost, in CPU time: an index of an order, the start of a loader within an epoch, and samples of 784
// floats, mapped and in compressed chunks. Writes two files of 50 MB into FOLDER, and removes them.
//   bench_data FOLDER

#include <hdf5.h>

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "ranktune/base/rng.hpp"
#include "ranktune/data/loader.hpp"
#include "storage/hdf5/thread.hpp"

namespace {

using namespace ranktune;
using namespace ranktune::data;

constexpr std::uint64_t rows = 16384;
constexpr std::uint64_t width = 784;

double cpu_seconds() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void show(const char* what, double seconds, double count, const char* unit) {
    std::printf("%-60s %10.3f %s\n", what, seconds / count * (unit[0] == 'n' ? 1e9 : 1e6), unit);
}

void indices(const char* what, const OrderShape& shape) {
    constexpr std::uint64_t count = 4'000'000;
    Order order(shape, 1, 0, 0);
    std::uint64_t sum = 0;
    const double begin = cpu_seconds();
    for (std::uint64_t p = 0; p < count; ++p) sum += order(p);
    show(what, cpu_seconds() - begin, count, "ns an index");
    if (sum == 0) std::printf("none\n");
}

/// One column of `rows` samples, as HDF5: contiguous, or in chunks.
std::string write(const std::string& path, bool packed) {
    std::vector<float> values(rows * width);
    base::RngStream random(1, base::user_purpose(0));
    for (float& value : values) value = random.below(4) == 0 ? static_cast<float>(random.below(256)) / 255.0F : 0.0F;
    storage::on_hdf5_thread([&] {
        const hsize_t extent[] = {rows, width};
        const hsize_t chunk[] = {256, width};
        const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        const hid_t space = H5Screate_simple(2, extent, nullptr);
        const hid_t create = H5Pcreate(H5P_DATASET_CREATE);
        if (packed) {
            H5Pset_chunk(create, 2, chunk);
            H5Pset_shuffle(create);
            H5Pset_deflate(create, 4);
        }
        const hid_t set = H5Dcreate2(file, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, create, H5P_DEFAULT);
        H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
        H5Dclose(set);
        H5Pclose(create);
        H5Sclose(space);
        H5Fclose(file);
    });
    return path;
}

void epochs(const char* what, const std::string& path, Shuffle shuffle, int count) {
    const auto source = Source::open(path);
    Loader loader(source, {}, {.batch = 256, .order = {shuffle}, .threads = 2});
    const double begin = cpu_seconds();
    for (int ended = 0; ended < count;)
        if (!loader.next()) ++ended;
    show(what, cpu_seconds() - begin, static_cast<double>(rows) * count, "us a sample");
}

void gather(const char* what, const std::string& path) {
    const auto source = Source::open(path);
    std::vector<float> row(width);
    const Permutation order(rows, {1, 0, 0, 0});
    std::uint64_t sample = 0;
    const double begin = cpu_seconds();
    for (int epoch = 0; epoch < 10; ++epoch)
        for (std::uint64_t p = 0; p < rows; ++p) {
            sample = order(p);
            source->gather(0, std::span(&sample, 1), std::as_writable_bytes(std::span(row)));
        }
    show(what, cpu_seconds() - begin, 10.0 * rows, "us a row");
}

/// The first batch of a share within an epoch of 1e10 samples in units of 1,024, and of 65,536 in a table.
void resume(const char* what, const OrderShape& shape) {
    const double begin = cpu_seconds();
    std::uint64_t sum = 0;
    for (int i = 0; i < 20; ++i) {
        Order order(shape, 1, 0, static_cast<std::uint64_t>(i));
        const std::uint64_t at = shape.samples / 2;
        const Share share(at, at + 256, 3, 8);
        for (std::uint64_t s = 0; s < share.size(); ++s) sum += order(share[s]);
    }
    show(what, cpu_seconds() - begin, 20.0, "us a start");
    if (sum == 0) std::printf("none\n");
}

} // namespace

int main(int count, char** arguments) {
    if (count != 2) {
        std::fprintf(stderr, "usage: bench_data FOLDER\n");
        return 2;
    }
    const std::string folder = arguments[1];
    indices("order, full, 1e10 samples", {10'000'000'000});
    indices("order, lanes of units of 1,024, 1e10 samples", {10'000'000'000, 1024, 960});
    resume("resume, full, 1e10 samples", {10'000'000'000});
    resume("resume, full, 65,536 samples (table)", {65536});
    resume("resume, lanes of units of 256, 1e8 samples, rank 3 of 8", {100'000'000, 256, 960});
    const std::string plain = write(folder + "/bench_data_plain.h5", false);
    const std::string packed = write(folder + "/bench_data_packed.h5", true);
    gather("a random row of a mapped HDF5", plain);
    epochs("loader, mapped, 2 threads", plain, Shuffle::full, 20);
    epochs("loader, chunks decoded once (they stay in memory), 20 epochs", packed, Shuffle::full, 20);
    epochs("loader, chunks, the first epoch", packed, Shuffle::none, 1);
    std::filesystem::remove(plain);
    std::filesystem::remove(packed);
    return 0;
}
