// SPDX-License-Identifier: Apache-2.0
// One output of several processes, killed or without power at any moment.
#include <cerrno>
#include <map>
#include <set>

#include "ranktune/base/error.hpp"
#include "storage/hdf5/hdf5.hpp"
#include "storage/hdf5/thread.hpp"
#include "storage/output_file.hpp"
#include "support/catch.hpp"
#include "support/crash_file_system.hpp"
#include "support/files.hpp"
#include "support/hooked_file_system.hpp"

namespace ranktune::storage::output_file_test {
using ranktune::test::CrashFileSystem;

namespace {

constexpr std::uint64_t rows = 10;
constexpr std::uint64_t per_range = 4;
constexpr std::size_t ranges = 3;
const std::string path = "/out/y.h5";

OutputForm form() {
    return {.rows = rows,
            .columns = {{"y", base::DType::float32, {3}}, {"class", base::DType::int32, {}}},
            .attributes = {{"study", "digits"}, {"trial", "17"}}};
}

void write_range(OutputFile& output, std::size_t range) {
    const std::uint64_t first = range * per_range;
    std::vector<float> y;
    std::vector<std::int32_t> classes;
    for (std::uint64_t row = first; row < std::min(first + per_range, rows); ++row) {
        for (int column = 0; column < 3; ++column)
            y.push_back(static_cast<float>(10 * row) + static_cast<float>(column));
        classes.push_back(static_cast<std::int32_t>(row + 1));
    }
    const OutputFile::Range mine{first, std::min(first + per_range, rows)};
    output.write(0, first, std::as_bytes(std::span(y)), mine);
    output.write(1, first, std::as_bytes(std::span(classes)), mine);
    output.sync();
}

/// Two processes share the ranges that are not `done`. Returns, of each range, the operation after which it was.
std::map<std::size_t, std::size_t> life(CrashFileSystem& files, const std::set<std::size_t>& done) {
    std::map<std::size_t, std::size_t> recorded;
    for (const std::size_t range : done) recorded[range] = 0;
    OutputFile first(files, path, 0, form());
    OutputFile second(files, path, 1, form());
    for (std::size_t range = 0; range < ranges; ++range) {
        if (done.contains(range)) continue;
        write_range(range % 2 == 0 ? first : second, range);
        recorded[range] = files.operations();
    }
    return recorded;
}

std::vector<std::byte> content(CrashFileSystem& files) {
    const auto file = files.open(path, FileSystem::Open::read);
    std::vector<std::byte> bytes(file->size());
    REQUIRE(file->read_at(0, bytes) == bytes.size());
    return bytes;
}

} // namespace

TEST_CASE("an output goes on after a kill or a loss of power at any operation, and is the same in the end",
          "[storage]") {
    CrashFileSystem files;
    files.make_directories("/out");
    const auto recorded = life(files, {});
    const auto whole = content(files);
    CHECK(files.list("/out") == std::vector<std::string>{"y.h5"});
    base::RngStream rng(1, base::Purpose::fault);
    const auto goes_on = [&](CrashFileSystem& left, std::size_t cut) {
        std::set<std::size_t> done;
        for (const auto& [range, at] : recorded)
            if (at <= cut) done.insert(range);
        static_cast<void>(life(left, done));
        REQUIRE(content(left) == whole);
        REQUIRE(left.list("/out") == std::vector<std::string>{"y.h5"});
    };
    for (std::size_t cut = 0; cut <= files.operations(); ++cut) {
        for (const std::size_t torn : {std::size_t{0}, std::size_t{5}}) goes_on(*files.after_kill(cut, torn), cut);
        for (int i = 0; i < 10; ++i) goes_on(*files.after_power_cut(cut, rng), cut);
    }
}

TEST_CASE("an output is an HDF5 file whose rows lie at pages", "[storage]") {
    testing::TemporaryDirectory folder;
    const std::string file = folder.path() + "/y.h5";
    OutputFile output(posix_file_system(), file, 0, form());
    for (std::size_t range = 0; range < ranges; ++range) write_range(output, range);
    hdf5_call([&] {
        const hdf5::FileHandle opened(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
        CHECK(hdf5::get_string(opened.get(), "trial") == "17");
        const hdf5::DatasetHandle y(H5Dopen2(opened.get(), "y", H5P_DEFAULT));
        std::vector<float> values(rows * 3);
        hdf5::check(H5Dread(y.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), "y");
        CHECK(values[0] == 0.0F);
        CHECK(values[29] == 92.0F);
        CHECK(H5Dget_offset(y.get()) % 4096 == 0);
        const hdf5::DatasetHandle classes(H5Dopen2(opened.get(), "class", H5P_DEFAULT));
        CHECK(H5Dget_offset(classes.get()) % 4096 == 0);
    });
}

TEST_CASE("an output of another form is not written to", "[storage]") {
    CrashFileSystem files;
    files.make_directories("/out");
    static_cast<void>(life(files, {}));
    OutputForm other = form();
    other.attributes[1].second = "18";
    CHECK_THROWS_AS(OutputFile(files, path, 0, other), base::FormatError);
    other = form();
    other.rows = rows + 1;
    CHECK_THROWS_AS(OutputFile(files, path, 0, other), base::FormatError);
}

TEST_CASE("what killed processes left is removed, and what others called so stays", "[storage]") {
    CrashFileSystem files;
    files.make_directories("/out");
    for (const char* name : {"y.h5.7.tmp", "y.h5.mine.tmp", "y.h5.tmp", "x.h5.7.tmp"})
        static_cast<void>(files.open(std::string("/out/") + name, FileSystem::Open::create_new));
    static_cast<void>(life(files, {}));
    CHECK(files.list("/out") == std::vector<std::string>{"x.h5.7.tmp", "y.h5", "y.h5.mine.tmp", "y.h5.tmp"});
}

TEST_CASE("rows of an output that was removed are not synced", "[storage]") {
    CrashFileSystem files;
    files.make_directories("/out");
    OutputFile output(files, path, 0, form());
    write_range(output, 0);
    files.remove(path);
    CHECK_THROWS_AS(write_range(output, 1), base::Error);
}

TEST_CASE("an output that cannot be made leaves nothing under its name", "[storage]") {
    std::size_t failures = 0;
    for (const auto bad : {CrashFileSystem::Kind::create, CrashFileSystem::Kind::write, CrashFileSystem::Kind::truncate,
                           CrashFileSystem::Kind::sync, CrashFileSystem::Kind::link}) {
        CrashFileSystem files;
        files.make_directories("/out");
        files.set_fault([&](CrashFileSystem::Kind kind, const std::string&) { return kind == bad ? ENOSPC : 0; });
        CHECK_THROWS_AS(OutputFile(files, path, 0, form()), base::IoError);
        failures += files.exists(path) ? 0 : 1;
        files.set_fault({});
        static_cast<void>(life(files, {}));
    }
    CHECK(failures == 5);
}

TEST_CASE("pages that two ranges share are written under a lock, and others are not", "[storage]") {
    using Call = ranktune::test::HookedFileSystem::Call;
    const ranktune::testing::TemporaryDirectory folder;
    const std::string file = folder.path() + "/y.h5";
    std::vector<Call> calls;
    ranktune::test::HookedFileSystem files(posix_file_system(), [&](Call call, const std::string& at) {
        if (at == file && (call == Call::write || call == Call::write_shared)) calls.push_back(call);
    });
    // A page has 1,024 rows.
    OutputFile output(files, file, 0, {.rows = 5000, .columns = {{"y", base::DType::float32, {}}}, .attributes = {}});
    const auto how = [&](std::uint64_t first, std::uint64_t end, OutputFile::Range mine) {
        calls.clear();
        output.write(0, first, std::vector<std::byte>((end - first) * sizeof(float)), mine);
        REQUIRE(calls.size() == 1);
        return calls.front();
    };
    CHECK(how(0, 1024, {0, 1024}) == Call::write);
    CHECK(how(1024, 1100, {1024, 2048}) == Call::write);
    CHECK(how(0, 256, {0, 1000}) == Call::write_shared); // row 1,000, on the same page, is another process's
    CHECK(how(900, 1000, {0, 1000}) == Call::write_shared);
    CHECK(how(1000, 1100, {1000, 3000}) == Call::write_shared);
    CHECK(how(1024, 2048, {1000, 3000}) == Call::write);
    CHECK(how(1100, 1200, {1000, 3000}) == Call::write);
    CHECK(how(2048, 2100, {1000, 3000}) == Call::write_shared);
    CHECK(how(4096, 5000, {4096, 5000}) == Call::write); // nothing follows
}

} // namespace ranktune::storage::output_file_test
