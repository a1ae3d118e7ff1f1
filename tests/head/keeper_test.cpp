// SPDX-License-Identifier: Apache-2.0
// Journals, leases and study directories that disappear while a study runs.
#include <thread>

#include "head/background/head_services.hpp"
#include "head/background/keeper.hpp"
#include "ranktune/base/error.hpp"
#include "storage/journal/segment.hpp"
#include "studydir/journal_extent.hpp"
#include "studydir/publisher.hpp"
#include "support/catch.hpp"
#include "support/crash_file_system.hpp"
#include "support/files.hpp"

namespace keeper_test {

using namespace ranktune;
using namespace ranktune::head;
using namespace ranktune::process;
using namespace ranktune::studydir;
using study::StudyOutcome;

namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const std::string home = "/study";

storage::JournalOptions journal_options(std::uint32_t incarnation = 1) {
    storage::JournalOptions options;
    options.directory = home;
    options.uuid = "5f0c8a52-1111-4222-8333-444455556666";
    options.incarnation = incarnation;
    options.commit_interval = std::chrono::hours(1);
    return options;
}

std::vector<study::Record> a_record() { return {study::Snapshot{7, "state", "spec"}}; }

storage::LeaseHolder holder(const std::string& nonce) {
    storage::LeaseHolder h = storage::this_holder("", 0);
    h.nonce = nonce;
    return h;
}

struct Study {
    test::CrashFileSystem files;
    base::NullLog log;
    storage::Journal journal{files, journal_options(), log};
    storage::Lease lease = storage::Lease::take(files, home, holder("mine"), storage::real_wait({}));
    Waker waker;

    /// The keeper's request after enough checks.
    std::optional<EndAsked> asked() {
        Keeper keeper(files, lease, journal, {home}, waker, log);
        for (int i = 0; i < 3000; ++i) {
            if (auto what = keeper.asked()) return what;
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        return std::nullopt;
    }
};

/// The end that the services publish for `end`, and the outcome that they write.
struct Published {
    std::optional<HeadDuties::Instead> instead;
    study::EndStudy word;
    std::string tables;
    int results = 0;
};

Published publish(
    Study& study, const study::EndStudy& end, const std::function<void()>& results = [] {}) {
    Published published;
    HeadServices services(
        study.files, study.journal, home, base::Incarnation(1), study.waker, study.log, {},
        [&](const study::EndStudy&) {
            ++published.results;
            results();
        },
        [&](const study::EndStudy& word, const std::string& tables) {
            published.word = word;
            published.tables = tables;
        });
    services.publish(end);
    while (!services.published()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    published.instead = services.instead();
    return published;
}

} // namespace

TEST_CASE("A journal that is gone ends the study as incomplete", "[head]") {
    Study study;
    study.journal.append(a_record());
    CHECK(trouble_with_place(study.files, study.journal, home).empty());
    study.files.remove(storage::segment_path(home, 1));
    const auto asked = study.asked();
    REQUIRE(asked);
    CHECK(asked->at_once);
    CHECK(asked->reason == study::Reason::unsaved);
    CHECK(contains(asked->why, "'/study/journal/000001.h5'"));
    CHECK(contains(asked->why, "removed, moved or replaced"));
    CHECK(contains(asked->why, "--fresh"));
}

TEST_CASE("A lease that is gone is not called another head's", "[head]") {
    Study study;
    study.files.remove(storage::lease_path(home));
    const auto gone = study.asked();
    REQUIRE(gone);
    CHECK(gone->at_once);
    CHECK(contains(gone->why, "the file 'lease' of the study directory is gone"));
    CHECK_FALSE(study.files.exists(storage::lease_path(home)));
    const storage::Lease other = storage::Lease::take(study.files, home, holder("other"), storage::real_wait({}));
    const auto taken = study.asked();
    REQUIRE(taken);
    CHECK(taken->why == "another head has taken the study over");
}

TEST_CASE("The last step before the outcome checks that the journal is there", "[head]") {
    const study::EndStudy complete{StudyOutcome::ok, study::Reason::study_complete, ""};
    {
        Study study;
        study.journal.append(a_record());
        const auto published = publish(study, complete);
        CHECK(published.results == 1);
        CHECK_FALSE(published.instead);
        CHECK(published.word == complete);
    }
    Study study;
    study.journal.append(a_record());
    study.files.remove(storage::segment_path(home, 1));
    const auto published = publish(study, complete);
    CHECK(published.results == 0);
    REQUIRE(published.instead);
    CHECK(published.instead->end.outcome == StudyOutcome::resumable);
    CHECK(published.instead->end.reason == study::Reason::unsaved);
    CHECK(contains(published.instead->end.message, "removed, moved or replaced"));
    CHECK(published.word == published.instead->end);
    CHECK_FALSE(published.instead->tables);
    // An end that says so already is not replaced.
    const study::EndStudy told{StudyOutcome::resumable, study::Reason::unsaved, "told"};
    CHECK(publish(study, told).word == told);
}

TEST_CASE("A study whose records never reached the disk is not complete", "[head]") {
    Study study;
    study.journal.append(a_record());
    study.files.set_fault(
        [](auto kind, const std::string&) { return kind == test::CrashFileSystem::Kind::sync ? EIO : 0; });
    const auto published = publish(study, {});
    REQUIRE(published.instead);
    CHECK(published.instead->end.outcome == StudyOutcome::resumable);
    CHECK(contains(published.instead->end.message, "the journal cannot be written"));
}

TEST_CASE("A study without an older segment, or without its tables, is not complete", "[head]") {
    Study study;
    const auto damaged = publish(study, {}, [] { throw base::FormatError("'000001.h5' is missing"); });
    REQUIRE(damaged.instead);
    CHECK(contains(damaged.instead->end.message, "is missing"));
    const auto no_room = [] {
        throw base::IoError("cannot write", "metrics.h5", std::make_error_code(std::errc::no_space_on_device));
    };
    const auto full = publish(study, {}, no_room);
    REQUIRE(full.instead);
    CHECK(full.instead->end.outcome == StudyOutcome::resumable);
    CHECK(contains(full.tables, "metrics.h5 lacks results: cannot write 'metrics.h5'"));
    CHECK(contains(full.tables, "Make room, and give the same command again"));
    CHECK(full.instead->end.message == full.tables);
    CHECK(full.word == full.instead->end);
    CHECK(full.instead->tables);
    // Other ends stay as they are, and the outcome has the message too.
    const study::EndStudy failed{StudyOutcome::too_many_failures, study::Reason::study_complete, ""};
    const auto both = publish(study, failed, no_room);
    CHECK_FALSE(both.instead);
    CHECK(both.word == failed);
    CHECK(both.tables == full.tables);
    CHECK(publish(study, {}).tables.empty());
}

TEST_CASE("A moved directory is told apart from a moved journal", "[head]") {
    const testing::TemporaryDirectory there;
    auto& files = storage::posix_file_system();
    base::NullLog log;
    const std::string path = there.path() + "/study";
    auto options = journal_options();
    options.directory = path;
    storage::Journal journal(files, options, log);
    CHECK(trouble_with_place(files, journal, path).empty());
    files.rename(path, there.path() + "/elsewhere");
    CHECK(
        contains(trouble_with_place(files, journal, path), "the study directory '" + path + "' was removed or moved"));
    CHECK_THROWS_AS(files.make_below(path, "checkpoints/1"), base::IoError);
    CHECK_FALSE(files.exists(path)); // it was not created again
    files.make_directories(path + "/journal");
    CHECK(contains(trouble_with_place(files, journal, path), path + "/journal/000001.h5"));
    files.remove_all(path);
    files.rename(there.path() + "/elsewhere", path);
    CHECK(trouble_with_place(files, journal, path).empty());
}

TEST_CASE("A publisher that may not write leaves no file", "[head]") {
    test::CrashFileSystem files;
    files.make_directories(home);
    for (const bool allowed : {false, true}) {
        {
            Publisher(files, home + "/status", [allowed] { return allowed; }).publish("text");
        }
        CHECK(files.exists(home + "/status") == allowed);
    }
}

TEST_CASE("A journal that ends before what outcome and status know of is refused, with advice", "[head]") {
    test::CrashFileSystem files;
    const StudyDirectory directory{home};
    files.make_directories(home);
    CHECK(known_extents(files, directory, read_outcome(files, directory)).empty());
    OutcomeFile outcome;
    outcome.start = 2;
    outcome.records = 100;
    publish_text(files, directory.outcome_file(), outcome_text(outcome), false);
    publish_text(files, directory.status_file(),
                 "{\n  \"study\": \"a \\\"start\\\": 9\",\n  \"start\": 2,\n  \"records_synced\": 120\n}\n", false);
    const auto known = known_extents(files, directory, read_outcome(files, directory));
    REQUIRE(known.size() == 2);
    CHECK((known[1].start == 2 && known[1].records == 120 && known[1].file == "status"));
    const auto missing = [&](std::uint32_t start, std::uint64_t records) {
        storage::JournalSummary found;
        found.incarnation = start;
        found.records = records;
        return what_is_missing(known, found, home);
    };
    CHECK(missing(2, 120).empty());
    CHECK(missing(2, 500).empty());
    CHECK(missing(3, 90).empty()); // a later start decides what counts of the earlier ones
    CHECK(contains(missing(2, 119), "but 'status' in that directory says"));
    CHECK(contains(missing(2, 99), "but 'outcome' and 'status' in that directory say"));
    const std::string earlier = missing(1, 500);
    CHECK(contains(earlier, "ends with start 1 and 500 records"));
    CHECK(contains(earlier, "restore '/study/journal' from a backup"));
    CHECK(contains(earlier, "copied while the study ran"));
    CHECK(contains(earlier, "remove 'outcome' and 'status', and the same command goes on"));
    CHECK(contains(earlier, "--fresh"));
    // Half a file, or one of another version, is ignored.
    publish_text(files, directory.status_file(), "{\n  \"start\": 2,\n  \"records_sy", false);
    files.remove(directory.outcome_file());
    CHECK(known_extents(files, directory, read_outcome(files, directory)).empty());
}

} // namespace keeper_test
