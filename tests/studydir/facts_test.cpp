// SPDX-License-Identifier: Apache-2.0
// Facts about the machine and the file system.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "process/environment.hpp"
#include "studydir/environment_facts.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

namespace facts_test {

using namespace ranktune;
using namespace ranktune::studydir;

TEST_CASE("file systems have a name and a free size", "[studydir]") {
    CHECK(ranktune::process::file_system_name(0x0BD00BD0) == "lustre");
    CHECK(ranktune::process::file_system_name(0x6969) == "nfs");
    CHECK(ranktune::process::file_system_name(0x1234) == "0x1234");
    CHECK(binary_size(0) == "0B");
    CHECK(binary_size(1023) == "1023B");
    CHECK(binary_size(1024) == "1KiB");
    CHECK(binary_size(12ULL << 40) == "12TiB");
    CHECK(binary_size((1ULL << 20) - 1) == "1MiB");
    const ranktune::testing::TemporaryDirectory home;
    const auto facts = file_system_facts(home.path());
    CHECK(facts.type != "unknown");
    CHECK(facts.free_bytes > 0);
    CHECK_FALSE(facts.error);
    const auto nowhere = file_system_facts(home.path() + "/nowhere");
    CHECK(nowhere.type == "unknown");
    CHECK(nowhere.error == std::errc::no_such_file_or_directory);
}

TEST_CASE("env.json has every Slurm variable except those that may hold a secret", "[studydir]") {
    setenv("SLURM_JOB_QOS", "long", 1);
    setenv("SLURM_JWT", "very-secret", 1);
    setenv("SLURM_SITE_API_TOKEN", "very-secret", 1);
    setenv("SLURM_SPANK__SLURM_SPANK_OPTION_x_password", "very-secret", 1);
    setenv("HOME_OF_MINE", "private", 1);
    EnvironmentFacts facts;
    facts.build_type = "debugoptimized";
    const std::string text = environment_json(facts);
    for (const char* name : {"SLURM_JOB_QOS", "SLURM_JWT", "SLURM_SITE_API_TOKEN",
                             "SLURM_SPANK__SLURM_SPANK_OPTION_x_password", "HOME_OF_MINE"})
        unsetenv(name);
    const auto json = nlohmann::json::parse(text);
    CHECK(json["variables"]["SLURM_JOB_QOS"] == "long");
    CHECK(text.find("secret") == std::string::npos);
    CHECK(text.find("private") == std::string::npos);
    CHECK(json["build"]["type"] == "debugoptimized");
    CHECK_FALSE(json["blas"].get<std::string>().empty());
}

TEST_CASE("the commit of the user's code is found without git", "[studydir]") {
    const ranktune::testing::TemporaryDirectory home;
    const std::string commit(40, 'a');
    const std::string other(40, 'b');
    const auto write = [&](const std::string& name, const std::string& text) {
        const std::filesystem::path path = std::filesystem::path(home.path()) / name;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text << "\n";
    };
    const auto commit_in = [&](const std::string& name) { return source_commit(home.path() + "/" + name); };
    write("plain/train.py", "");
    CHECK(commit_in("plain").empty());
    write("code/.git/HEAD", "ref: refs/heads/main");
    write("code/deep/train.py", "");
    CHECK(commit_in("code").empty()); // no commit yet
    write("code/.git/packed-refs", "# pack-refs with: peeled\n" + commit + " refs/heads/main");
    CHECK(commit_in("code/deep") == commit);
    write("code/.git/refs/heads/main", other); // newer than the packed one
    CHECK(commit_in("code") == other);
    write("code/.git/worktrees/w/HEAD", "ref: refs/heads/main");
    write("code/.git/worktrees/w/commondir", "../..");
    write("tree/.git", "gitdir: " + home.path() + "/code/.git/worktrees/w");
    CHECK(commit_in("tree") == other);
    write("code/.git/HEAD", commit); // detached
    CHECK(commit_in("code") == commit);
    write("code/.git/HEAD", "garbage");
    CHECK(commit_in("code").empty());
}

} // namespace facts_test
