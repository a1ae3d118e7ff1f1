// SPDX-License-Identifier: Apache-2.0
// Copies of data on one node.
#include "data/staging/stager.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>

#include "process/environment.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/data/source.hpp"
#include "staging_fixture.hpp"
#include "storage/hdf5/hdf5.hpp"
#include "support/catch.hpp"
#include "support/hooked_file_system.hpp"

namespace stager_test {

using namespace ranktune;
using namespace ranktune::testing;
using test::HookedFileSystem;

namespace {

/// Zeros, packed by deflate.
void write_packed(const std::string& path, hsize_t rows) {
    const storage::hdf5::FileHandle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    const hsize_t chunk = 1000;
    const storage::hdf5::SpaceHandle space(H5Screate_simple(1, &rows, nullptr));
    const storage::hdf5::PropertiesHandle options(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_chunk(options.get(), 1, &chunk);
    H5Pset_deflate(options.get(), 1);
    const storage::hdf5::DatasetHandle set(
        H5Dcreate2(file.get(), "x", H5T_NATIVE_DOUBLE, space.get(), H5P_DEFAULT, options.get(), H5P_DEFAULT));
    const std::vector<double> zeros(rows);
    H5Dwrite(set.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, zeros.data());
}

base::IoError full_disk(const std::string& path, int why = ENOSPC) {
    return {"cannot reserve space for", path, std::error_code(why, std::generic_category())};
}

} // namespace

TEST_CASE("trials read a copy that is equal to the original, and the last user removes it", "[staging]") {
    const TemporaryDirectory directory;
    const std::string text = data_text(10'500);
    write_file(directory.path() + "/data/train.h5", text);
    const std::string place = directory.path() + "/node";
    const study::StudySpec spec = study_of({{.name = "train", .path = directory.path() + "/data/train.h5"}});
    StagingRank one(place, spec);
    const std::string copy = one.path();
    CHECK(copy.starts_with(place + "/"));
    CHECK(copy.ends_with("-10500/train.h5"));
    CHECK(read_file(copy) == text);
    CHECK(one.stager().figures() == data::StagingFigures{10'500, 10'500, 10'500, true});
    CHECK_THAT(one.log(), Catch::Contains("data.train: 10 kB copied to " + place));

    StagingRank two(place, spec); // another rank, or another study
    CHECK(two.path() == copy);
    CHECK(two.stager().figures() == data::StagingFigures{0, 0, 0, true});
    one.leave();
    CHECK(read_file(copy) == text);
    two.leave();
    CHECK(names_in(place).empty());
}

TEST_CASE("ranks of a node that begin together make one copy", "[staging]") {
    const TemporaryDirectory directory;
    write_file(directory.path() + "/data/train.bin", data_text(200'000));
    write_file(directory.path() + "/data/train.idx", data_text(34));
    const study::StudySpec spec =
        study_of({{.name = "text", .path = directory.path() + "/data/train.bin", .tokens = 8}});
    std::vector<std::unique_ptr<StagingRank>> ranks;
    for (int i = 0; i < 8; ++i) ranks.push_back(std::make_unique<StagingRank>(directory.path() + "/node", spec));
    std::uint64_t read = 0;
    for (const auto& rank : ranks) {
        CHECK(rank->path() == ranks[0]->path());
        read += rank->stager().figures().read;
    }
    CHECK(read == 200'034); // Megatron's index goes with its tokens
    CHECK(read_file(std::filesystem::path(ranks[0]->path()).replace_extension(".idx")) == data_text(34));
    ranks.clear();
    CHECK(names_in(directory.path() + "/node").empty());
}

TEST_CASE("a folder is copied with what is below it", "[staging]") {
    const TemporaryDirectory directory;
    write_file(directory.path() + "/images/a/1.png", data_text(1500));
    write_file(directory.path() + "/images/b.png", "");
    StagingRank rank(directory.path() + "/node", study_of({{.name = "images", .path = directory.path() + "/images"}}));
    CHECK(read_file(rank.path() + "/a/1.png") == data_text(1500));
    CHECK(std::filesystem::exists(rank.path() + "/b.png"));
    CHECK(rank.path().ends_with("/images"));
}

TEST_CASE("a folder of too many files is refused with the command that packs it", "[staging]") {
    const TemporaryDirectory directory;
    const std::string folder = directory.path() + "/images";
    std::filesystem::create_directories(folder);
    for (std::size_t i = 0; i < data::most_files; ++i) std::ofstream(folder + "/" + std::to_string(i));
    CHECK(data::list_files({.name = "images", .path = folder}).entries.size() == data::most_files);
    std::ofstream(folder + "/more");
    CHECK_THROWS_WITH(data::list_files({.name = "images", .path = folder}),
                      Catch::Contains("data.images: '" + folder + "' has more than 10000 files") &&
                          Catch::Contains("tar --sort=name --dereference --hard-dereference -cf " + folder +
                                          ".tar -C " + folder + " ."));
}

TEST_CASE("another time of change, size, name or form makes another copy", "[staging]") {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/x.csv";
    const auto key = [&](bool decode = false) {
        return data::list_files({.name = "x", .path = path, .decode = decode}).key;
    };
    write_file(path, "a\n1\n");
    const std::uint64_t first = key();
    CHECK(key() == first);
    CHECK(key(true) != first);
    std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::seconds(1));
    CHECK(key() != first);
    const std::uint64_t second = key();
    write_file(path, "a\n12\n");
    CHECK(key() != second);
}

TEST_CASE("a start after a kill uses the whole copies that were left, and removes the others", "[staging]") {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/train.npy";
    const std::string place = directory.path() + "/node";
    write_file(path, data_text(5000));
    const std::string second = directory.path() + "/val.npy";
    write_file(second, data_text(3000));
    const study::StudySpec spec = study_of({{.name = "train", .path = path}, {.name = "val", .path = second}});
    const auto killed_after_copy = [&] {
        const pid_t child = fork();
        if (child == 0) {
            StagingRank rank(place, spec);
            static_cast<void>(rank.path());
            static_cast<void>(kill(getpid(), SIGKILL));
        }
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
    };
    killed_after_copy();
    CHECK(names_in(place).size() == 4); // the copies and their locks
    {
        StagingRank again(place, spec);
        CHECK(read_file(again.path()) == data_text(5000));
        CHECK(again.stager().figures().read == 0);
        CHECK_THAT(again.log(), Catch::Contains("data.train: found a copy of an earlier start, " + place));
        CHECK_THAT(again.log(), Catch::Contains("data.val: found a copy of an earlier start, " + place));
    }
    CHECK(names_in(place).empty());

    killed_after_copy();
    write_file(path, data_text(6000));         // the copy is of no use any more
    write_file(place + "/1-2.part/train", ""); // of a process that was killed while it copied
    write_file(place + "/1-2.lock", "");
    StagingRank other(place, spec);
    CHECK(read_file(other.path()) == data_text(6000));
    CHECK(names_in(place).size() == 4);
}

TEST_CASE("a removal that is cut short leaves nothing that counts as a copy", "[staging]") {
    const TemporaryDirectory directory;
    const std::string place = directory.path() + "/node";
    for (const char* name : {"1", "2", "3"}) write_file(directory.path() + "/images/" + name, data_text(100));
    const study::StudySpec spec = study_of({{.name = "images", .path = directory.path() + "/images"}});
    const pid_t child = fork();
    if (child == 0) {
        bool removes = false;
        int removed = 0;
        HookedFileSystem files(storage::posix_file_system(), [&](HookedFileSystem::Call call, const std::string&) {
            if (removes && call == HookedFileSystem::Call::remove && ++removed == 2) _exit(0);
        });
        StagingRank rank(place, spec, 1U << 20U, files);
        static_cast<void>(rank.path());
        removes = true;
        rank.leave();
        _exit(1); // it was to be killed on the way
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    StagingRank again(place, spec);
    for (const char* name : {"1", "2", "3"}) CHECK(read_file(again.path() + "/" + name) == data_text(100));
    CHECK(again.stager().figures().read == 300);
}

TEST_CASE("a link has its own name in the copy, and what it leads to", "[staging]") {
    const TemporaryDirectory directory;
    write_file(directory.path() + "/blobs/abc123", data_text(500));
    std::filesystem::create_symlink("blobs/abc123", directory.path() + "/train.npy");
    StagingRank rank(directory.path() + "/node",
                     study_of({{.name = "train", .path = directory.path() + "/train.npy"}}));
    CHECK(rank.path().ends_with("/train.npy"));
    CHECK(read_file(rank.path()) == data_text(500));
    CHECK_FALSE(std::filesystem::is_symlink(rank.path()));
    std::filesystem::create_directories(directory.path() + "/f");
    CHECK(data::list_files({.name = "f", .path = directory.path() + "/f/"}).name == "f");
}

TEST_CASE("an HDF5 file that takes rows from other files is read where it is", "[staging]") {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/train.h5";
    const auto make = [&](const std::function<void(hid_t file, hid_t space, hid_t options)>& add) {
        const storage::hdf5::FileHandle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
        const storage::hdf5::GroupHandle group(H5Gcreate2(file.get(), "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        const hsize_t rows = 5;
        const storage::hdf5::SpaceHandle space(H5Screate_simple(1, &rows, nullptr));
        const storage::hdf5::PropertiesHandle options(H5Pcreate(H5P_DATASET_CREATE));
        if (add) add(group.get(), space.get(), options.get());
        const storage::hdf5::DatasetHandle set(
            H5Dcreate2(group.get(), "x", H5T_NATIVE_INT, space.get(), H5P_DEFAULT, options.get(), H5P_DEFAULT));
        REQUIRE(set);
    };
    const auto log_of = [&] {
        StagingRank rank(directory.path() + "/node", study_of({{.name = "train", .path = path}}));
        const bool in_place = rank.path() == path;
        CHECK(in_place == (rank.log().find("every rank reads the original") != std::string::npos));
        return rank.log();
    };
    make({});
    CHECK_THAT(log_of(), Catch::Contains("copied to"));
    make([](hid_t, hid_t space, hid_t options) { H5Pset_virtual(options, space, "part.h5", "x", space); });
    CHECK_THAT(log_of(), Catch::Contains(": data set 'g/x' is virtual: its rows are in other files; every rank reads"));
    make([](hid_t, hid_t, hid_t options) { H5Pset_external(options, "rows.bin", 0, H5F_UNLIMITED); });
    CHECK_THAT(log_of(), Catch::Contains(": data set 'g/x' keeps its rows in other files; every rank reads"));
    make([](hid_t group, hid_t, hid_t) { H5Lcreate_external("part.h5", "/x", group, "a", H5P_DEFAULT, H5P_DEFAULT); });
    CHECK_THAT(log_of(), Catch::Contains(": 'g/a' is a link to another file; every rank reads"));
    study::StudySpec strict = study_of({{.name = "train", .path = path}});
    strict.staging.must_fit = true;
    StagingRank ended(directory.path() + "/node", strict);
    CHECK_THAT(ended.stager().figures().problem, Catch::Contains("write all into one file, or set data.must_fit"));
    std::filesystem::create_directories(directory.path() + "/parts");
    std::filesystem::rename(path, directory.path() + "/parts/one.h5");
    CHECK(data::part_elsewhere(data::list_files({.name = "parts", .path = directory.path() + "/parts"})) ==
          "'parts/one.h5': 'g/a' is a link to another file");
    write_file(path, "no HDF5"); // whoever reads it says so
    CHECK_THAT(log_of(), Catch::Contains("copied to"));
}

TEST_CASE("a copy that was half made is made anew", "[staging]") {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/train.npy";
    const std::string place = directory.path() + "/node";
    write_file(path, data_text(5000));
    const study::StudySpec spec = study_of({{.name = "train", .path = path}});
    const std::string copy = place + "/" + data::list_files(spec.data[0]).copy_name(data::start_of_node());
    write_file(copy + ".part/train.npy", "half");
    StagingRank rank(place, spec);
    CHECK(read_file(rank.path()) == data_text(5000));
}

TEST_CASE("without room the original is read, or the study ends if the copy must fit", "[staging]") {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/train.npy";
    const std::string place = directory.path() + "/node";
    write_file(path, data_text(5000));
    study::StudySpec spec = study_of({{.name = "train", .path = path}});
    {
        StagingRank rank(place, spec, 4999);
        CHECK(rank.path() == path);
        CHECK_THAT(rank.log(), Catch::Contains("data.train (5.0 kB) cannot be copied to " + process::host_name() +
                                               ": 5.0 kB free in " + place + "; every rank reads the original"));
        StagingRank other(place, spec, 4999, storage::posix_file_system(), {{{}}, 0}, nullptr, {},
                          data::start_of_node(), false);
        CHECK(other.path() == path);
        CHECK(other.log().empty()); // one of the node says so
    }
    HookedFileSystem full(storage::posix_file_system(), [](HookedFileSystem::Call call, const std::string& at) {
        if (call == HookedFileSystem::Call::reserve) throw full_disk(at);
    });
    HookedFileSystem quota(storage::posix_file_system(), [](HookedFileSystem::Call call, const std::string& at) {
        if (call == HookedFileSystem::Call::reserve) throw full_disk(at, EDQUOT);
    });
    {
        StagingRank rank(place, spec, 1U << 20U, full);
        CHECK(rank.path() == path);
        CHECK_THAT(rank.log(), Catch::Contains("No space left on device"));
    }
    {
        StagingRank rank(place, spec, 1U << 20U, quota);
        CHECK(rank.path() == path);
        CHECK_THAT(rank.log(), Catch::Contains("Disk quota exceeded"));
    }
    CHECK(names_in(place).empty());
    spec.staging.must_fit = true;
    StagingRank rank(place, spec, 1U << 20U, full);
    CHECK_THAT(rank.stager().figures().problem,
               Catch::Contains("No space left on device") && Catch::Contains("data.must_fit = false"));
    CHECK(rank.stager().figures().bytes == 0);
}

TEST_CASE("a disk that fills up on the way leaves nothing behind", "[staging]") {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/train.npy";
    const std::string place = directory.path() + "/node";
    write_file(path, data_text(5000));
    int writes = 0;
    HookedFileSystem files(storage::posix_file_system(), [&](HookedFileSystem::Call call, const std::string& at) {
        if (call == HookedFileSystem::Call::write && ++writes == 3) throw full_disk(at);
    });
    StagingRank rank(place, study_of({{.name = "train", .path = path}}), 1U << 20U, files);
    CHECK(rank.path() == path);
    CHECK(names_in(place).empty());
}

TEST_CASE("a file that changes while it is copied is not used as a copy", "[staging]") {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/train.npy";
    write_file(path, data_text(5000));
    int reads = 0;
    HookedFileSystem files(storage::posix_file_system(), [&](HookedFileSystem::Call call, const std::string& at) {
        if (call == HookedFileSystem::Call::read && at == path && ++reads == 2)
            std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::seconds(1));
    });
    StagingRank rank(directory.path() + "/node", study_of({{.name = "train", .path = path}}), 1U << 20U, files);
    CHECK(rank.path() == path);
    CHECK_THAT(rank.log(), Catch::Contains("changed while it was copied"));
}

TEST_CASE("a file that becomes shorter while it is copied is not used as a copy", "[staging]") {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/train.npy";
    const std::string place = directory.path() + "/node";
    write_file(path, data_text(5000));
    HookedFileSystem files(storage::posix_file_system(), [&](HookedFileSystem::Call call, const std::string& at) {
        if (call == HookedFileSystem::Call::write && at != path) std::filesystem::resize_file(path, 100);
    });
    StagingRank rank(place, study_of({{.name = "train", .path = path}}), 1U << 20U, files);
    CHECK(rank.path() == path);
    CHECK_THAT(rank.log(), Catch::Contains("became shorter while it was copied: '" + path));
    CHECK(names_in(place).empty());
}

TEST_CASE("a table becomes plain rows on the way", "[staging]") {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/train.csv";
    write_file(path, "x1,x2,y\n0.5,1,0\n2.5,3,1\n");
    StagingRank rank(directory.path() + "/node", study_of({{.name = "train", .path = path, .decode = true}}));
    const auto source = data::Source::open(rank.stager().files()[0]);
    CHECK(source->samples() == 2);
    std::vector<double> x(4);
    const std::vector<std::uint64_t> both{0, 1};
    source->gather(source->field("x"), both, std::as_writable_bytes(std::span(x)));
    CHECK(x == std::vector<double>{0.5, 1.0, 2.5, 3.0});
    write_file(path, "x1,y\n0.5,one\n");
    StagingRank wrong(directory.path() + "/node", study_of({{.name = "train", .path = path, .decode = true}}));
    CHECK_THAT(wrong.stager().figures().problem,
               Catch::Contains("data file '" + path + "': line 2, column 'y': 'one' is no number"));
    std::string late = "x1,y\n";
    for (int i = 0; i < 200; ++i) late += "0.5,1\n";
    write_file(path, late + "0.5,two\n"); // found when the copy is decoded
    StagingRank later(directory.path() + "/node", study_of({{.name = "train", .path = path, .decode = true}}));
    CHECK_THAT(later.stager().figures().problem, Catch::Contains("data file '" + path + "': line 202, column 'y'"));
    CHECK(names_in(directory.path() + "/node").size() == 2); // of the first one
}

TEST_CASE("without room for its decoded rows HDF5 is copied as it is, or read where it is", "[staging]") {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/train.h5";
    const std::string place = directory.path() + "/node";
    write_packed(path, 100'000); // 800 kB of rows
    const std::uint64_t bytes = std::filesystem::file_size(path);
    REQUIRE(bytes < 50'000);
    study::StudySpec spec = study_of({{.name = "train", .path = path, .decode = true}});
    {
        StagingRank rank(place, spec, bytes + 799'999);
        const std::string copy = rank.path();
        CHECK((copy.starts_with(place) && copy.ends_with("/train.h5")));
        CHECK(read_file(copy) == read_file(path));
        CHECK(rank.stager().figures().read == bytes); // once
        CHECK_THAT(rank.log(), Catch::Contains("800 kB of decoded rows) cannot be copied to") &&
                                   Catch::Contains("its packed chunks are decoded as they are read"));
        CHECK(data::Source::open(rank.stager().files()[0])->samples() == 100'000);
        StagingRank with_room(place, spec, bytes + 800'000);
        CHECK(with_room.path().ends_with("/train.safetensors"));
    }
    {
        StagingRank rank(place, spec, bytes - 1);
        CHECK(rank.path() == path);
        CHECK_THAT(rank.log(), Catch::Contains("every rank reads the original"));
        CHECK(data::Source::open(rank.stager().files()[0])->samples() == 100'000);
    }
    CHECK(names_in(place).empty());
    spec.staging.must_fit = true;
    StagingRank rank(place, spec, bytes + 799'999);
    CHECK_THAT(rank.stager().figures().problem, Catch::Contains("data.must_fit = false"));
}

TEST_CASE("a table whose rows have no room ends the study", "[staging]") {
    const TemporaryDirectory directory;
    write_file(directory.path() + "/train.csv", "x\n1\n2\n3\n");
    StagingRank rank(directory.path() + "/node",
                     study_of({{.name = "train", .path = directory.path() + "/train.csv", .decode = true}}), 30);
    CHECK_THAT(rank.stager().figures().problem, Catch::Contains("decoded rows need a copy"));
}

TEST_CASE("what killed processes left in memory is removed by a start that has another place", "[staging]") {
    const TemporaryDirectory directory;
    const std::string place = directory.path() + "/node";
    write_file(directory.path() + "/train.npy", data_text(100));
    const study::StudySpec spec = study_of({{.name = "train", .path = directory.path() + "/train.npy"}});
    const std::string own = data::list_files(spec.data[0]).copy_name(data::start_of_node());
    for (const std::string& name : {std::string("1-2"), own}) {
        write_file(place + ".memory/" + name + "/train.npy", data_text(100));
        write_file(place + ".memory/" + name + ".lock", "");
    }
    StagingRank rank(place, spec);
    CHECK(rank.path() == place + "/" + own + "/train.npy");
    CHECK(names_in(place + ".memory").empty());
}

TEST_CASE("decoded rows that do not fit are not written", "[staging]") {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/train.csv";
    write_file(path, "x\n1\n2\n3\n");
    const std::string plain = directory.path() + "/rows.safetensors";
    CHECK_THROWS_WITH(data::decode_rows(path, {}, plain, 23), Catch::Contains("24 B"));
    CHECK(std::filesystem::file_size(plain) == 0);
}

TEST_CASE("who decodes rows may be told to stop", "[staging]") {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/train.csv";
    write_file(path, "x\n1\n2\n3\n");
    const std::string plain = directory.path() + "/rows.safetensors";
    for (const int last : {1, 5}) { // while it looks for the types, and while it writes
        int checks = 0;
        const auto stop = [&] {
            if (++checks == last) throw base::Error("stop");
        };
        CHECK_THROWS_WITH(data::decode_rows(path, {}, plain, 1000, stop), "stop");
        CHECK(std::filesystem::remove(plain) == (last == 5));
    }
}

TEST_CASE("the study may end while data are copied", "[staging]") {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/train.npy";
    const std::string place = directory.path() + "/node";
    write_file(path, data_text(5000));
    const study::StudySpec spec = study_of({{.name = "train", .path = path}});
    const std::string lock = place + "/" + data::list_files(spec.data[0]).copy_name(data::start_of_node()) + ".lock";
    std::filesystem::create_directories(place);
    const auto held = data::CopyLock::take(lock); // another process makes the copy
    StagingRank rank(place, spec);
    rank.leave();
    CHECK(held.has_value());
}

TEST_CASE("a lock is held alone or together, and its file is removed by who holds it alone", "[staging]") {
    using data::CopyLock;
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/lock";
    auto first = CopyLock::take(path);
    REQUIRE(first);
    CHECK(first->held() == CopyLock::Held::alone);
    CHECK_FALSE(CopyLock::take(path));
    CHECK_FALSE(CopyLock::take_unused(path));
    CHECK(first->share());
    auto second = CopyLock::take(path);
    REQUIRE(second);
    CHECK(second->held() == CopyLock::Held::together);
    CHECK_FALSE(CopyLock::take_unused(path));
    CHECK_FALSE(second->is_last());
    second.reset();
    CHECK(first->is_last());
    first->remove_file();
    CHECK_FALSE(std::filesystem::exists(path));
    CHECK_FALSE(first->share()); // nobody else finds this file
}

TEST_CASE("places: a directory of the user, else memory", "[staging]") {
    const TemporaryDirectory directory;
    const auto own = data::find_places(directory.path());
    REQUIRE(own.usable.size() == 1);
    CHECK(own.usable[0].folder == directory.path() + "/ranktune-" + std::to_string(getuid()));
    CHECK(own.usable[0].room > 0);
    const auto missing = data::find_places("/proc/nowhere");
    CHECK(missing.usable.empty());
    REQUIRE(missing.refused.size() == 1);
    CHECK_THAT(missing.refused[0], Catch::Contains("data.directory (/proc/nowhere)"));
    CHECK_FALSE(data::is_network("/dev/shm"));
    const TemporaryDirectory other;
    const auto seen = data::look_for_places(other.path());
    REQUIRE(seen.usable.size() == 1);
    CHECK(seen.usable[0].room > 0);
    CHECK(names_in(other.path()).empty());
    CHECK(data::look_for_places("/proc/nowhere").refused.size() == 1);
}

} // namespace stager_test
