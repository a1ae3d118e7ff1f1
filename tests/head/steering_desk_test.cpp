// SPDX-License-Identifier: Apache-2.0
// Requests of users beside entries that cannot be read, answered or removed.
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <system_error>
#include <thread>

#include "head/background/steering_desk.hpp"
#include "ranktune/base/error.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/hooked_file_system.hpp"

namespace steering_desk_test {

using namespace ranktune;
using test::HookedFileSystem;

namespace {

/// Lines of the event "control", by what they name.
class ControlLog final : public base::LogSink {
  public:
    void write(base::LogLevel, std::string_view event, const std::vector<base::LogField>& fields) override {
        const std::lock_guard lock(mutex_);
        if (event == "control") names_.push_back(fields.front().value);
    }
    [[nodiscard]] auto lines_about(const std::string& name) const {
        const std::lock_guard lock(mutex_);
        return std::count(names_.begin(), names_.end(), name);
    }

  private:
    mutable std::mutex mutex_;
    std::vector<std::string> names_;
};

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

struct Desk {
    testing::TemporaryDirectory folder;
    studydir::StudyDirectory directory{folder.path() + "/study"};
    std::atomic<bool> fails = true;
    HookedFileSystem files{storage::posix_file_system(), [this](HookedFileSystem::Call call, const std::string& path) {
                               const bool reads = call == HookedFileSystem::Call::open;
                               if (fails && reads && path.ends_with("/1.ask"))
                                   throw base::IoError("cannot read", path, std::make_error_code(std::errc::io_error));
                           }};
    ControlLog log;
    base::NullLog journal_log;
    process::Waker waker;
    std::unique_ptr<storage::Journal> journal;

    Desk() {
        std::filesystem::create_directories(directory.control());
        storage::JournalOptions options;
        options.directory = directory.path;
        options.uuid = "5f0c8a52-1111-4222-8333-444455556666";
        options.incarnation = 1;
        journal = std::make_unique<storage::Journal>(storage::posix_file_system(), options, journal_log);
    }
    [[nodiscard]] std::string entry(const std::string& name) const { return directory.control() + "/" + name; }
    void wait_for(const std::string& name) const {
        while (!std::filesystem::exists(entry(name))) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
};

} // namespace

TEST_CASE("an entry that cannot be read, answered or removed holds up no other request", "[head]") {
    Desk desk;
    namespace fs = std::filesystem;
    fs::create_directories(desk.entry("0.answer/sub")); // as if of an earlier start
    write(desk.entry("0.ask"), "its answer cannot be written");
    write(desk.entry("1.ask"), "a file server gives an error now");
    fs::create_directory(desk.entry("2.ask"));
    fs::create_directories(desk.entry("3.ask/sub"));
    REQUIRE(mkfifo(desk.entry("4.ask").c_str(), 0600) == 0);
    fs::create_symlink("nowhere", desk.entry("5.ask"));
    fs::create_symlink("/dev/zero", desk.entry("6.ask"));
    fs::create_directories(desk.entry("7.answer.tmp/sub"));
    write(desk.entry("7.ask"), "its answer cannot be written either");
    write(desk.entry("9.ask"), "no request");

    head::SteeringDesk steering(nullptr, desk.files, desk.directory, *desk.journal, {}, desk.waker, desk.log);
    for (const char* name : {"2", "3", "4", "5", "6", "9"}) desk.wait_for(name + std::string(".answer"));
    CHECK(testing::read_file(desk.entry("4.answer")).starts_with("refused: a request is a file"));
    CHECK(testing::read_file(desk.entry("9.answer")).starts_with("refused: the request"));

    // What was asked is removed, but for what somebody put into a folder.
    steering.close("the study is over");
    for (const char* name : {"2", "4", "5", "6", "9"})
        CHECK_FALSE(fs::is_symlink(fs::symlink_status(desk.entry(name + std::string(".ask")))));
    for (const char* name : {"2", "4", "9"}) CHECK_FALSE(fs::exists(desk.entry(name + std::string(".ask"))));
    CHECK(fs::exists(desk.entry("3.ask/sub")));
    CHECK(fs::exists(desk.entry("0.ask")));
    CHECK(desk.log.lines_about("1") == 1);
}

TEST_CASE("a request that could not be read is read when it can, and is logged once until then", "[head]") {
    Desk desk;
    write(desk.entry("1.ask"), "a file server gives an error now");
    head::SteeringDesk steering(nullptr, desk.files, desk.directory, *desk.journal, {}, desk.waker, desk.log);
    for (const char* name : {"2", "3"}) { // each is another look
        write(desk.entry(name + std::string(".ask")), "no request");
        desk.wait_for(name + std::string(".answer"));
    }
    CHECK_FALSE(std::filesystem::exists(desk.entry("1.answer")));
    CHECK(desk.log.lines_about("1") == 1);
    desk.fails = false;
    desk.wait_for("1.answer");
    CHECK_FALSE(std::filesystem::exists(desk.entry("1.ask")));
}

} // namespace steering_desk_test
