// SPDX-License-Identifier: Apache-2.0
// Checkpoints on a failing disk: full, over quota, read-only, broken, at each operation of a save.
#include <cerrno>

#include "ranktune/base/error.hpp"
#include "storage/checkpoints/checkpoint_store.hpp"
#include "support/catch.hpp"
#include "support/crash_file_system.hpp"

namespace ranktune::storage::checkpoint_fault_test {
using ranktune::test::CrashFileSystem;

namespace {

constexpr CheckpointKey key{base::TrialId(7), 27, base::Incarnation(2), base::AttemptId(3)};

study::MemoryState state() {
    study::MemoryState state;
    const std::vector<float> weights(1000, 0.25F);
    state.put<float>("weights", weights);
    state.blob("step", std::as_bytes(std::span(weights).first(2)));
    return state;
}

} // namespace

TEST_CASE("a study directory that was removed is not made again by a checkpoint", "[storage]") {
    CrashFileSystem files;
    study::MemoryState state;
    state.blob("step", std::as_bytes(std::span("12")));
    CheckpointStore store(files, "/study");
    CHECK_THROWS_AS(store.save({study::TrialId{3}, 5, base::Incarnation{1}, base::AttemptId{1}}, state), base::IoError);
    CHECK_FALSE(files.exists("/study"));
    CHECK(files.operations() == 0);
}

TEST_CASE("a checkpoint fails at every operation of its save with an error, and leaves nothing", "[storage]") {
    for (const int error : {ENOSPC, EDQUOT, EROFS, EIO, EACCES}) {
        std::size_t operations = 0;
        for (std::size_t bad = 0;; ++bad) {
            CrashFileSystem files;
            files.make_directories("/study");
            CheckpointStore store(files, "/study");
            std::size_t seen = 0;
            bool failed = false;
            files.set_fault([&](CrashFileSystem::Kind kind, const std::string&) {
                // Cleaning up only removes files, which works on a full disk.
                if (kind == CrashFileSystem::Kind::remove || seen++ != bad) return 0;
                failed = true;
                return error;
            });
            bool saved = true;
            try {
                static_cast<void>(store.save(key, state()));
            } catch (const base::IoError& problem) {
                saved = false;
                CHECK(problem.code().value() == error);
            }
            if (!failed) {
                operations = bad;
                REQUIRE(saved);
                break;
            }
            // After the rename only the directory entry may be unsynced: the file is whole, and nobody reports it.
            REQUIRE(!saved);
            for (const auto& path : files.list_below("/study")) CHECK(path == "/study/" + checkpoint_path(key));
            files.set_fault(nullptr); // somebody made room
            const auto reference = store.save(key, state());
            CHECK(store.load(reference).digest() == state().digest());
        }
        CHECK(operations >= 6); // create, writes, sync, rename, directory
    }
}

} // namespace ranktune::storage::checkpoint_fault_test
