// SPDX-License-Identifier: Apache-2.0
// Checkpoints that programs saved: adopted, verified, released; with crashes and power losses in between.

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "ranktune/base/error.hpp"
#include "storage/checkpoints/checkpoint_store.hpp"
#include "storage/checkpoints/set_aside.hpp"
#include "support/catch.hpp"
#include "support/crash_file_system.hpp"
#include "support/files.hpp"
#include "support/hooked_file_system.hpp"

namespace ranktune::storage::checkpoint_folder_test {
namespace {

namespace fs = std::filesystem;
using ranktune::test::CrashFileSystem;
using ranktune::test::HookedFileSystem;
using ranktune::testing::read_file;
using ranktune::testing::TemporaryDirectory;

const CheckpointKey key{base::TrialId(7), 27, base::Incarnation(2), base::AttemptId(3)};
constexpr const char* folder_path = "checkpoints/7/27-2.3";

void write_file(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
}

void write_file(FileSystem& files, const std::string& path, const std::string& text) {
    const auto file = files.open(path, FileSystem::Open::create_new);
    file->write_at(0, std::as_bytes(std::span(text)));
}

/// A study directory with a folder that a program saved.
struct Saved {
    TemporaryDirectory home;
    std::string study = home.path() + "/study";
    std::string scratch = home.path() + "/scratch";
    CheckpointStore store{posix_file_system(), study};

    Saved() {
        posix_file_system().make_directories(study);
        write_file(scratch + "/model/weights.bin", std::string(5'000'000, 'w'));
        write_file(scratch + "/model/optimizer/state 1", "abc");
        write_file(scratch + "/model/empty", "");
    }
};

} // namespace

TEST_CASE("a folder that a program saved is moved, listed and found again", "[storage]") {
    Saved saved;
    const auto reference = saved.store.adopt(key, saved.scratch + "/model/", true);
    CHECK(reference.iteration == 27);
    CHECK(reference.path == folder_path);
    CHECK(reference.bytes == 5'000'003);
    CHECK_FALSE(fs::exists(saved.scratch + "/model/weights.bin"));
    const std::string place = saved.store.locate(reference);
    CHECK(place == saved.study + "/" + folder_path + "/model");
    CHECK(read_file(place + "/optimizer/state 1") == "abc");
    CHECK(fs::file_size(place + "/weights.bin") == 5'000'000);
    CHECK((fs::status(place + "/weights.bin").permissions() & fs::perms::owner_write) == fs::perms::none);
    CHECK(read_file(saved.study + "/" + folder_path + "/" + manifest_name)
              .starts_with("ranktune checkpoint folder 1\ntrial 7\niteration 27\nentry model\n"));
}

TEST_CASE("a single file is copied from elsewhere and stays there", "[storage]") {
    Saved saved;
    const auto reference = saved.store.adopt(key, saved.scratch + "/model/optimizer/state 1", false);
    CHECK(read_file(saved.store.locate(reference)) == "abc");
    CHECK(read_file(saved.scratch + "/model/optimizer/state 1") == "abc");
    fs::create_symlink("optimizer/state 1", saved.scratch + "/model/latest");
    CheckpointKey other = key;
    other.attempt = base::AttemptId(4);
    const auto linked = saved.store.adopt(other, saved.scratch + "/model/latest", true);
    CHECK(fs::is_regular_file(fs::symlink_status(saved.store.locate(linked))));
    CHECK(read_file(saved.store.locate(linked)) == "abc");
}

TEST_CASE("links within what was saved stay links, others are followed", "[storage]") {
    for (const bool move : {true, false}) {
        Saved saved;
        const std::string model = saved.scratch + "/model";
        write_file(saved.scratch + "/data/words.txt", "words");
        fs::create_directory_symlink("optimizer", model + "/latest");
        fs::create_symlink("optimizer/state 1", model + "/zuletzt");
        fs::create_symlink(model + "/empty", model + "/optimizer/absolute");
        fs::create_directory_symlink(".", model + "/self");
        fs::create_directory_symlink("../data", model + "/data");
        fs::create_symlink(saved.scratch + "/data/words.txt", model + "/words");
        const auto reference = saved.store.adopt(key, model, move);
        const fs::path place = saved.store.locate(reference);
        CHECK(fs::read_symlink(place / "latest") == "optimizer");
        CHECK(read_file(place / "latest/state 1") == "abc");
        CHECK(read_file(place / "zuletzt") == "abc");
        CHECK(fs::read_symlink(place / "optimizer/absolute") == "../empty");
        CHECK(fs::read_symlink(place / "self") == ".");
        CHECK(fs::is_directory(fs::symlink_status(place / "data")));
        CHECK(read_file(place / "data/words.txt") == "words");
        CHECK(fs::is_regular_file(fs::symlink_status(place / "words")));
        CHECK(read_file(saved.scratch + "/data/words.txt") == "words"); // copied even with `move`
        CHECK(reference.bytes == 5'000'013);

        fs::remove(place / "latest");
        fs::create_directory_symlink("elsewhere", place / "latest");
        CHECK_THROWS_AS(saved.store.locate(reference), DamageError);
    }
}

TEST_CASE("a file that has another name is copied, and what is written under that name changes nothing", "[storage]") {
    Saved saved;
    const std::string own = saved.scratch + "/last.txt";
    write_file(own, "iteration 3");
    fs::create_hard_link(own, saved.scratch + "/model/last.txt");
    const auto reference = saved.store.adopt(key, saved.scratch + "/model", true);
    CHECK((fs::status(own).permissions() & fs::perms::owner_write) != fs::perms::none);
    write_file(own, "iteration 4");
    CHECK(read_file(saved.store.locate(reference) + "/last.txt") == "iteration 3");
    CHECK_FALSE(fs::exists(saved.scratch + "/model/weights.bin")); // has one name: moved
}

TEST_CASE("a link to a folder is adopted as that folder", "[storage]") {
    Saved saved;
    fs::create_directory_symlink("model", saved.scratch + "/last");
    const auto reference = saved.store.adopt(key, saved.scratch + "/last", true);
    CHECK(saved.store.locate(reference).ends_with("/last"));
    CHECK(read_file(saved.store.locate(reference) + "/optimizer/state 1") == "abc");
    CHECK(read_file(saved.scratch + "/model/optimizer/state 1") == "abc");
}

TEST_CASE("an unreadable file of the program is not reported as an error of the study's folder", "[storage]") {
    Saved saved;
    const auto refusal = [&](const std::string& source) -> std::string {
        try {
            static_cast<void>(saved.store.adopt(key, source, true));
        } catch (const base::IoError&) {
            return "an IoError";
        } catch (const base::Error& error) {
            return error.what();
        }
        return "nothing";
    };
    const std::string link = saved.scratch + "/model/latest";
    fs::create_symlink("step9", link);
    CHECK(refusal(saved.scratch + "/model") == "'" + link + "' is a link to 'step9', which is not there");
    CHECK(refusal(link) == "'" + link + "' is a link to 'step9', which is not there");
    fs::remove(link);
    fs::create_symlink("latest", link); // to itself
    CHECK(refusal(saved.scratch + "/model") == "'" + link + "' is a link to 'latest', which is not there");
    CHECK(fs::exists(saved.scratch + "/model/weights.bin")); // nothing was moved
    CHECK_FALSE(fs::exists(saved.study + "/" + folder_path));
    CHECK(refusal(saved.scratch + "/model/empty/below").find("there is no") == 0);
}

TEST_CASE("an invalid source is refused and leaves nothing behind", "[storage]") {
    Saved saved;
    CHECK_THROWS_WITH(saved.store.adopt(key, saved.scratch + "/nothing", true),
                      "there is no '" + saved.scratch + "/nothing'");
    CHECK(fs::is_empty(saved.study));
    write_file(saved.scratch + "/" + manifest_name, "x");
    CHECK_THROWS_AS(saved.store.adopt(key, saved.scratch + "/" + manifest_name, true), base::Error);
    write_file(saved.scratch + "/model/two\nlines", "x");
    CHECK_THROWS_WITH(saved.store.adopt(key, saved.scratch + "/model", false),
                      "a checkpoint cannot hold a file with a line break in its name: '" + saved.scratch +
                          "/model/two?lines'; rename it");
    fs::remove(saved.scratch + "/model/two\nlines");
    REQUIRE(::mkfifo((saved.scratch + "/model/pipe").c_str(), 0600) == 0);
    CHECK_THROWS_AS(saved.store.adopt(key, saved.scratch + "/model", false), base::Error);
    CHECK_FALSE(fs::exists(saved.study + "/" + folder_path));
}

TEST_CASE("damage in a program's checkpoint is found before anybody uses it", "[storage]") {
    Saved saved;
    const auto reference = saved.store.adopt(key, saved.scratch + "/model", true);
    const fs::path place = saved.store.locate(reference);
    const auto damage = [&](const fs::path& path, const std::string& text) {
        const std::string before = read_file(path);
        fs::permissions(path, fs::perms::owner_all);
        std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
        CHECK_THROWS_AS(saved.store.locate(reference), DamageError);
        std::ofstream(path, std::ios::binary | std::ios::trunc) << before;
        CHECK(saved.store.locate(reference) == place);
    };
    damage(place / "optimizer/state 1", "abd");
    damage(place / "optimizer/state 1", "ab");
    fs::remove(place / "empty");
    CHECK_THROWS_AS(saved.store.locate(reference), base::IoError);
}

TEST_CASE("a manifest that a loss of power took is made again from the files, if they are the journal's", "[storage]") {
    Saved saved;
    fs::create_directory_symlink("optimizer", saved.scratch + "/model/latest");
    const auto reference = saved.store.adopt(key, saved.scratch + "/model", true);
    const fs::path place = saved.store.locate(reference);
    const fs::path manifest = place.parent_path() / manifest_name;
    const std::string whole = read_file(manifest);
    for (const std::string& left : {std::string(), whole.substr(0, 40), std::string(whole.size(), '\0')}) {
        std::ofstream(manifest, std::ios::binary | std::ios::trunc) << left;
        CHECK(saved.store.locate(reference) == place);
    }
    fs::remove(manifest);
    CHECK(saved.store.locate(reference) == place);
    write_file(place / "added", "x"); // known to be foreign only by the manifest
    CHECK_THROWS_AS(saved.store.locate(reference), DamageError);
    std::ofstream(manifest, std::ios::binary) << whole;
    CHECK(saved.store.locate(reference) == place);
    fs::remove(manifest);
    fs::remove(place / "added");
    fs::permissions(place / "optimizer/state 1", fs::perms::owner_all);
    write_file(place / "optimizer/state 1", "abd");
    CHECK_THROWS_AS(saved.store.locate(reference), DamageError);
}

TEST_CASE("what a framework has not saved whole is refused", "[storage]") {
    using Names = std::vector<std::string>;
    const auto [names, file, text, why] = GENERATE(table<Names, std::string, std::string, std::string>({
        {{"__0_0.distcp"}, "", "", ".metadata is missing; give report() the future of async_save"},
        {{"__0_0.distcp"},
         ".metadata",
         "\x80\x04X\x0c__0_0.distcpq\x0c__1_0.distcp",
         "its .metadata names __1_0.distcp, which is missing"},
        {{"__0_0.distcp"}, ".metadata", "\x80\x04X\x0c__0_0.distcpq", ""},
        {{"global_step10"}, "latest", "global_step20\n", "its file latest names global_step20, which is missing"},
        {{"global_step10"}, "latest", "global_step10\n", ""},
        {{"a"}, "latest", "epoch-3.pt", ""},
        {{"iter_0000010"},
         "latest_checkpointed_iteration.txt",
         "20",
         "its file latest_checkpointed_iteration.txt names iter_0000020, which is missing"},
        {{"iter_0000010"}, "latest_checkpointed_iteration.txt", "10", ""},
        {{"release"}, "latest_checkpointed_iteration.txt", "release", ""},
        {{"a"}, "latest_checkpointed_iteration.txt", "no number", ""},
    }));
    Saved saved;
    const std::string folder = saved.scratch + "/model/inner";
    for (const std::string& name : names) write_file(folder + "/" + name, "x");
    if (!file.empty()) write_file(folder + "/" + file, text);
    const auto adopt = [&] { return saved.store.adopt(key, saved.scratch + "/model", true); };
    if (why.empty())
        CHECK_NOTHROW(adopt());
    else
        CHECK_THROWS_WITH(adopt(), "the checkpoint is incomplete: " + why);
    CHECK(fs::exists(folder + "/" + names[0]) == !why.empty()); // nothing was moved
}

TEST_CASE("an empty folder is no checkpoint", "[storage]") {
    Saved saved;
    fs::create_directories(saved.scratch + "/none/inner");
    CHECK_THROWS_WITH(saved.store.adopt(key, saved.scratch + "/none", true),
                      Catch::Matchers::EndsWith("/none' is an empty folder: nothing was saved in it"));
}

TEST_CASE("what the program still writes while it is taken over is refused", "[storage]") {
    Saved saved;
    const bool move = GENERATE(true, false);
    const bool grows = GENERATE(true, false);
    bool done = false;
    HookedFileSystem files(posix_file_system(), [&](HookedFileSystem::Call call, const std::string& path) {
        if (done || call != HookedFileSystem::Call::read || !path.ends_with("weights.bin")) return;
        done = true;
        if (grows)
            std::ofstream(path, std::ios::app) << "more";
        else
            write_file(saved.scratch + "/model/late", "x");
    });
    CheckpointStore store(files, saved.study);
    CHECK_THROWS_WITH(store.adopt(key, saved.scratch + "/model", move),
                      Catch::Matchers::Contains("was still being written"));
    CHECK(done);
    CHECK_FALSE(fs::exists(saved.study + "/" + folder_path));
}

TEST_CASE("a checkpoint that was set aside is damaged, and says why", "[storage]") {
    Saved saved;
    const auto reference = saved.store.adopt(key, saved.scratch + "/model", false);
    set_aside(posix_file_system(), saved.study, reference.path, "trials #1 and #2 saved to the same place");
    CHECK_THROWS_WITH(saved.store.locate(reference),
                      Catch::Matchers::EndsWith("set aside: trials #1 and #2 saved to the same place"));
    CHECK_THROWS_AS(saved.store.locate(reference), DamageError);
}

TEST_CASE("a released checkpoint is removed whole, without following links", "[storage]") {
    Saved saved;
    fs::create_directory_symlink(saved.scratch + "/model", saved.scratch + "/link");
    posix_file_system().remove_all(saved.scratch + "/link");
    CHECK(fs::exists(saved.scratch + "/model/weights.bin"));
    fs::create_directory_symlink(saved.scratch + "/model", saved.scratch + "/model/optimizer/up");
    const auto reference = saved.store.adopt(key, saved.scratch + "/model/empty", false);
    posix_file_system().remove_all(saved.study + "/" + reference.path);
    CHECK(fs::is_empty(saved.study + "/checkpoints/7"));
    posix_file_system().remove_all(saved.scratch + "/model/optimizer");
    CHECK(fs::exists(saved.scratch + "/model/weights.bin"));
    posix_file_system().remove_all(saved.scratch + "/not there");
}

TEST_CASE("an adopted checkpoint survives a loss of power", "[storage]") {
    for (const bool move : {true, false}) {
        CrashFileSystem files;
        files.make_directories("/s/attempts/model/deep");
        write_file(files, "/s/attempts/model/a", std::string(3000, 'a'));
        write_file(files, "/s/attempts/model/deep/b", std::string(700, 'b'));
        CheckpointStore store(files, "/s");
        const auto reference = store.adopt(key, "/s/attempts/model", move);
        base::RngStream rng(1, base::Purpose::fault);
        for (int turn = 0; turn < 200; ++turn) {
            const auto after = files.after_power_cut(files.operations(), rng);
            CHECK(CheckpointStore(*after, "/s").locate(reference) == "/s/" + reference.path + "/model");
        }
        for (std::size_t count = 0; count <= files.operations(); ++count) { // never a wrong checkpoint before that
            const auto after = files.after_power_cut(count, rng);
            try {
                const std::string place = CheckpointStore(*after, "/s").locate(reference);
                CHECK(read_text(*after, place + "/a") == std::string(3000, 'a'));
                CHECK(read_text(*after, place + "/deep/b") == std::string(700, 'b'));
            } catch (const base::Error&) {
            }
        }
    }
}

TEST_CASE("a program's checkpoint that cannot be written or synced leaves nothing", "[storage]") {
    using Kind = CrashFileSystem::Kind;
    for (const Kind kind : {Kind::create, Kind::write, Kind::sync, Kind::sync_directory}) {
        CrashFileSystem files;
        files.make_directories("/s/attempts");
        write_file(files, "/s/attempts/model", "abc");
        CheckpointStore store(files, "/s");
        files.set_fault([kind](Kind what, const std::string& path) {
            return what == kind && path.find("checkpoints") != std::string::npos ? ENOSPC : 0;
        });
        CHECK_THROWS_AS(store.adopt(key, "/s/attempts/model", false), base::IoError);
        files.set_fault({});
        CHECK(files.kind(std::string("/s/") + folder_path + "/" + manifest_name) == FileSystem::Kind::missing);
    }
}

} // namespace ranktune::storage::checkpoint_folder_test
