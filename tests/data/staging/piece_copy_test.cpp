// SPDX-License-Identifier: Apache-2.0
#include "data/staging/piece_copy.hpp"

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <span>
#include <string>

#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"
#include "staging_fixture.hpp"
#include "support/catch.hpp"
#include "support/hooked_file_system.hpp"

namespace piece_copy_test {

using namespace ranktune;
using namespace ranktune::testing;
using test::HookedFileSystem;
using Call = HookedFileSystem::Call;
using Open = storage::FileSystem::Open;

namespace {

constexpr std::uint64_t offset = 100;
constexpr std::uint64_t many_blocks = 40 * data::copy_block_bytes;

/// A file of `bytes`, and its copy, seen through a hook.
struct Files {
    explicit Files(
        std::size_t bytes, const HookedFileSystem::Hook& hook = [](Call, const std::string&) {})
        : text(data_text(bytes)), files(storage::posix_file_system(), hook) {
        write_file(original, text);
        write_file(copy, "");
    }
    std::uint64_t copy_piece(data::PieceCopy& how, std::uint64_t begin, std::uint64_t bytes) {
        const auto from = files.open(original, Open::read);
        const auto to = files.open(copy, Open::read_write);
        return how.run(*from, original, *to, {0, begin, bytes});
    }
    [[nodiscard]] std::uint64_t digest(std::uint64_t begin, std::uint64_t bytes) const {
        return base::digest_of(std::string_view(text).substr(begin, bytes));
    }
    const TemporaryDirectory directory;
    std::string original = directory.path() + "/original";
    std::string copy = directory.path() + "/copy";
    std::string text;
    HookedFileSystem files;
};

} // namespace

TEST_CASE("a piece of many blocks is read once, digested and written to its place", "[staging]") {
    int reads = 0;
    int writes = 0;
    Files files(offset + many_blocks + 7, [&](Call call, const std::string&) {
        if (call == Call::read) ++reads;
        if (call == Call::write) ++writes;
    });
    data::PieceCopy how;
    CHECK(files.copy_piece(how, offset, many_blocks + 7) == files.digest(offset, many_blocks + 7));
    CHECK(reads == 41);
    CHECK(writes == 41);
    CHECK(read_file(files.copy).substr(offset) == files.text.substr(offset));
    CHECK(files.copy_piece(how, 0, offset) == files.digest(0, offset)); // the memory serves the next one
    CHECK(read_file(files.copy) == files.text);
}

TEST_CASE("the next block of a piece is read while the one before is written", "[staging]") {
    std::mutex mutex;
    std::condition_variable changed;
    int reads = 0;
    Files files(many_blocks, [&](Call call, const std::string&) {
        std::unique_lock lock(mutex);
        if (call == Call::read) ++reads;
        changed.notify_all();
        if (call == Call::write) changed.wait(lock, [&] { return reads >= 2; });
    });
    data::PieceCopy how;
    CHECK(files.copy_piece(how, 0, many_blocks) == files.digest(0, many_blocks));
    CHECK(read_file(files.copy) == files.text);
}

TEST_CASE("a write or a read that fails ends the copy of a piece", "[staging]") {
    int writes = 0;
    Files files(many_blocks, [&](Call call, const std::string& path) {
        if (call == Call::write && ++writes == 3)
            throw base::IoError("cannot write", path, std::error_code(ENOSPC, std::generic_category()));
    });
    data::PieceCopy how;
    CHECK_THROWS_WITH(files.copy_piece(how, 0, many_blocks), Catch::Contains("No space left on device"));
    CHECK(writes == 3);
    CHECK_THROWS_WITH(files.copy_piece(how, 0, many_blocks + 1),
                      Catch::Contains("became shorter while it was copied: '" + files.original));
    CHECK(files.copy_piece(how, 0, many_blocks) == files.digest(0, many_blocks));
    CHECK(read_file(files.copy) == files.text);
}

} // namespace piece_copy_test
