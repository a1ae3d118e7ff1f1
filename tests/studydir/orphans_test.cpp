// SPDX-License-Identifier: Apache-2.0
// Which checkpoint files are of no use.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "storage/file_system.hpp"
#include "studydir/open_study.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "tuner/state.hpp"

namespace orphans_test {

using namespace ranktune;

namespace {

study::CheckpointRef checkpoint(const std::string& path) {
    study::CheckpointRef reference;
    reference.path = path;
    return reference;
}

} // namespace

TEST_CASE("a checkpoint that its trial has released is no orphan while another trial goes on from it", "[studydir]") {
    const ranktune::testing::TemporaryDirectory home;
    for (const char* path : {"0/4-1.1.h5", "0/8-1.1.h5", "1/4-1.1.h5"}) {
        const auto file = std::filesystem::path(home.path()) / "checkpoints" / path;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << "state";
    }
    tuner::State state;
    state.trials.add({}); // it had 0/4 and 0/8
    tuner::Trial other;
    other.takeovers.push_back({4, {base::TrialId{0}, checkpoint("checkpoints/0/4-1.1.h5")}, {}});
    other.unsettled = 1;
    other.checkpoints.push_back(checkpoint("checkpoints/1/4-1.1.h5"));
    state.trials.add(other);
    const std::string orphan = home.path() + "/checkpoints/0/8-1.1.h5";
    CHECK(studydir::orphans_of(storage::posix_file_system(), home.path(), state) == std::vector{orphan});
    CHECK(studydir::remove_orphans(storage::posix_file_system(), home.path(), state) == 1);
    CHECK(std::filesystem::exists(home.path() + "/checkpoints/0/4-1.1.h5"));
    CHECK_FALSE(std::filesystem::exists(orphan));

    // With two states of its own it needs the donor's no longer.
    state.trials.at(base::TrialId{1}).unsettled = 0;
    CHECK(studydir::orphans_of(storage::posix_file_system(), home.path(), state).size() == 1);
}

} // namespace orphans_test
