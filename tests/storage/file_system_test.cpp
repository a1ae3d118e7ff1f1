// SPDX-License-Identifier: Apache-2.0
// One contract, run on the real file system and on the recording one that the crash tests use.
#include "storage/file_system.hpp"

#include <cstdio>

#include "journal_fixture.hpp"
#include "ranktune/base/error.hpp"
#include "storage/unique_handle.hpp"
#include "support/catch.hpp"
#include "support/crash_file_system.hpp"

namespace ranktune::storage {
namespace {

std::vector<std::byte> bytes_of(const std::string& text) {
    const auto view = std::as_bytes(std::span(text));
    return {view.begin(), view.end()};
}

/// Asks for more bytes than the file has.
std::string text_of(FileSystem& files, const std::string& path) {
    const auto file = files.open(path, FileSystem::Open::read);
    std::vector<std::byte> bytes(file->size() + 10);
    const std::size_t size = file->read_at(0, bytes);
    return {reinterpret_cast<const char*>(bytes.data()), size};
}

void put_text(FileSystem& files, const std::string& path, const std::string& text) {
    files.open(path, FileSystem::Open::create_new)->write_at(0, bytes_of(text));
}

std::errc code_of(const std::function<void()>& action) {
    try {
        action();
    } catch (const base::IoError& error) {
        return static_cast<std::errc>(error.code().value());
    }
    return {};
}

void check_files(FileSystem& files, const std::string& home) {
    const std::string path = home + "/a";
    const auto file = files.open(path, FileSystem::Open::create_new);
    CHECK(code_of([&] { static_cast<void>(files.open(path, FileSystem::Open::create_new)); }) ==
          std::errc::file_exists);
    CHECK(code_of([&] { static_cast<void>(files.open(home + "/none", FileSystem::Open::read)); }) ==
          std::errc::no_such_file_or_directory);
    file->write_at(0, bytes_of("hello"));
    file->write_at(8, bytes_of("world"));
    CHECK(file->size() == 13);
    CHECK(text_of(files, path) == std::string("hello\0\0\0world", 13));
    file->write_at(1, bytes_of("E"));
    file->truncate(4);
    CHECK(text_of(files, path) == "hEll");
    file->truncate(6);
    CHECK(text_of(files, path) == std::string("hEll\0\0", 6));
    file->reserve(100000);
    CHECK(file->size() == 6);
    CHECK(file->next_data(0) == 0);
    file->sync();
    std::vector<std::byte> past(3);
    CHECK(file->read_at(6, past) == 0);
    CHECK(file->read_at(4, past) == 2);
    files.open(path, FileSystem::Open::read_write)->write_at(0, bytes_of("J"));
    CHECK(text_of(files, path).front() == 'J');
}

void check_names(FileSystem& files, const std::string& home) {
    files.make_directories(home + "/x/y/z");
    files.make_directories(home + "/x/y/z");
    CHECK(files.exists(home + "/x/y"));
    CHECK_FALSE(files.exists(home + "/x/none"));
    CHECK(files.list(home + "/none").empty());
    const std::string folder = home + "/x/y/z/";
    put_text(files, folder + "b", "1");
    put_text(files, folder + "a", "2");
    CHECK(files.list(home + "/x/y/z") == std::vector<std::string>{"a", "b"});
    CHECK(files.list(home + "/x/y") == std::vector<std::string>{"z"});
    files.rename(folder + "a", folder + "b");
    CHECK(text_of(files, folder + "b") == "2");
    CHECK(files.list(home + "/x/y/z") == std::vector<std::string>{"b"});
    files.sync_directory(home + "/x/y/z");
    files.remove(folder + "b");
    files.remove(folder + "b");
    CHECK_FALSE(files.exists(folder + "b"));
    CHECK(code_of([&] { put_text(files, home + "/no/such/folder", ""); }) == std::errc::no_such_file_or_directory);
}

void check_link(FileSystem& files, const std::string& home) {
    put_text(files, home + "/mine", "mine");
    put_text(files, home + "/yours", "yours");
    CHECK(files.link(home + "/mine", home + "/shared"));
    CHECK_FALSE(files.link(home + "/yours", home + "/shared"));
    CHECK(text_of(files, home + "/shared") == "mine");
    files.remove(home + "/mine");
    CHECK(text_of(files, home + "/shared") == "mine");
    CHECK(code_of([&] { files.link(home + "/none", home + "/other"); }) == std::errc::no_such_file_or_directory);
}

void check_publish(FileSystem& files, const std::string& home) {
    files.publish(home + "/status", bytes_of("one"));
    files.publish(home + "/status", bytes_of("two"), false);
    CHECK(text_of(files, home + "/status") == "two");
    CHECK_THROWS_AS(files.write_whole(home + "/status", [](File&) { throw base::FormatError("no"); }),
                    base::FormatError);
    CHECK(text_of(files, home + "/status") == "two");
    CHECK_FALSE(files.exists(home + "/status.tmp"));
    put_text(files, home + "/left.tmp", "of an earlier life");
    files.publish(home + "/left", bytes_of("new"));
    CHECK(text_of(files, home + "/left") == "new");
}

void check_copy(FileSystem& files, const std::string& home) {
    std::string text;
    while (text.size() < 300'000) text += std::to_string(text.size());
    put_text(files, home + "/original", text);
    put_text(files, home + "/copy", "");
    const auto original = files.open(home + "/original", FileSystem::Open::read);
    const auto copy = files.open(home + "/copy", FileSystem::Open::read_write);
    CHECK(original->copy_to(*copy, 5, 270'000) == 270'000);
    CHECK(text_of(files, home + "/copy") == std::string(5, '\0') + text.substr(5, 270'000));
    CHECK(original->copy_to(*copy, 270'005, 200'000) == text.size() - 270'005);
    CHECK(original->copy_to(*copy, text.size(), 1) == 0);
    CHECK(text_of(files, home + "/copy") == std::string(5, '\0') + text.substr(5));
}

void check_contract(FileSystem& files, const std::string& home) {
    SECTION("files") { check_files(files, home); }
    SECTION("copy") { check_copy(files, home); }
    SECTION("names") { check_names(files, home); }
    SECTION("link") { check_link(files, home); }
    SECTION("publish") { check_publish(files, home); }
}

} // namespace

TEST_CASE("the real file system fulfils the contract", "[storage]") {
    const test::TemporaryDirectory home;
    check_contract(posix_file_system(), home.path());
}

TEST_CASE("the recording file system fulfils the contract", "[storage]") {
    ranktune::test::CrashFileSystem files;
    files.make_directories("/home");
    check_contract(files, "/home");
}

TEST_CASE("a sealed file is read-only", "[storage]") {
    const test::TemporaryDirectory home;
    put_text(posix_file_system(), home.path() + "/a", "x");
    posix_file_system().set_read_only(home.path() + "/a");
    using std::filesystem::perms;
    CHECK((std::filesystem::status(home.path() + "/a").permissions() & perms::all) ==
          (perms::owner_read | perms::group_read | perms::others_read));
}

TEST_CASE("a loss of power in the recording file system keeps what was synced and nothing that was not written",
          "[storage]") {
    using ranktune::test::CrashFileSystem;
    CrashFileSystem files;
    files.make_directories("/d");
    const auto file = files.open("/d/f", FileSystem::Open::create_new);
    file->write_at(0, bytes_of(std::string(2048, 'a')));
    file->sync();
    files.sync_directory("/d");
    const std::size_t synced = files.operations();
    file->write_at(0, bytes_of(std::string(2048, 'b')));
    base::RngStream rng(1, base::Purpose::fault);
    std::set<std::string> seen;
    for (int i = 0; i < 200; ++i) {
        CHECK(text_of(*files.after_power_cut(synced, rng), "/d/f") == std::string(2048, 'a'));
        const std::string after = text_of(*files.after_power_cut(files.operations(), rng), "/d/f");
        for (std::size_t at = 0; at < 2048; at += 512) {
            const std::string sector = after.substr(at, 512);
            CHECK((sector == std::string(512, 'a') || sector == std::string(512, 'b')));
        }
        seen.insert(after);
    }
    CHECK(seen.size() == 16); // every combination of four sectors
    const auto torn = files.after_kill(files.operations() - 1, 700);
    CHECK(text_of(*torn, "/d/f") == std::string(700, 'b') + std::string(1348, 'a'));
}

namespace {

struct CountingTraits {
    using Value = int;
    static constexpr int null() noexcept { return 0; }
    static void close(int value) noexcept { closed.push_back(value); }
    static inline std::vector<int> closed;
};

} // namespace

TEST_CASE("an owned handle is closed exactly once", "[storage]") {
    CountingTraits::closed.clear();
    {
        UniqueHandle<CountingTraits> a(1);
        UniqueHandle<CountingTraits> b(std::move(a));
        CHECK_FALSE(a); // NOLINT(bugprone-use-after-move): a moved-from handle is null
        UniqueHandle<CountingTraits> c(2);
        c = std::move(b);
        CHECK(CountingTraits::closed == std::vector<int>{2});
        auto& alias = c;
        c = std::move(alias);
        CHECK(c.get() == 1);
        c.reset(3);
        UniqueHandle<CountingTraits> released(4);
        CHECK(released.release() == 4);
    }
    CHECK(CountingTraits::closed == std::vector<int>{2, 1, 3});
}

} // namespace ranktune::storage
