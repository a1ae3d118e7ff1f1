// SPDX-License-Identifier: Apache-2.0
#include "storage/file_system.hpp"

#include <filesystem>
#include <fstream>

#include "support/catch.hpp"
#include "support/files.hpp"

namespace ranktune::storage::testing {
namespace {

std::string content(const std::string& path) { return content_text(posix_file_system(), path); }

void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

/// Overwrites one byte.
void poke(const std::string& path, std::uint64_t at) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(at));
    file.put('x');
}

} // namespace

TEST_CASE("a file's fingerprint depends on its size and bytes, not on its path", "[storage]") {
    const ranktune::testing::TemporaryDirectory directory;
    const std::string here = directory.path() + "/a";
    const std::string there = directory.path() + "/b";
    write(here, "some data");
    write(there, "some data");
    CHECK(content(here) == content(there));
    CHECK(content(here).starts_with("9 bytes, XXH64 "));
    write(there, "some dat4");
    CHECK(content(here) != content(there));
    write(there, "");
    CHECK(content(there).starts_with("0 bytes, XXH64 "));
    CHECK_THROWS(content(directory.path() + "/nothing"));
}

TEST_CASE("the fingerprint of a large file covers a sample that includes its first and last byte", "[storage]") {
    const ranktune::testing::TemporaryDirectory directory;
    const std::string path = directory.path() + "/large";
    write(path, "");
    const std::uint64_t size = content_whole_bytes + 12345;
    std::filesystem::resize_file(path, size); // a sparse file
    const std::string before = content(path);
    CHECK(before.starts_with(std::to_string(size) + " bytes, XXH64 of 64 MiB "));
    CHECK(content(path) == before);
    poke(path, size - 1);
    const std::string last = content(path);
    CHECK(last != before);
    poke(path, 0);
    CHECK(content(path) != last);
}

} // namespace ranktune::storage::testing
