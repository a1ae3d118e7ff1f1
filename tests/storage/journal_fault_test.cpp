// SPDX-License-Identifier: Apache-2.0
// Failing and full disks, two heads at once, and the journal's two threads.
#include <atomic>
#include <thread>

#include "journal_fixture.hpp"
#include "ranktune/base/error.hpp"
#include "storage/journal/segment.hpp"
#include "support/catch.hpp"
#include "support/crash_file_system.hpp"
#include "support/hooked_file_system.hpp"

namespace ranktune::storage::journal_fault_test {
using namespace test;
using ranktune::test::CrashFileSystem;
using ranktune::test::HookedFileSystem;
using Kind = CrashFileSystem::Kind;

namespace {

const std::string home = "/study";

bool is_segment(const std::string& path) { return path.ends_with(".tmp") || path.ends_with(".h5"); }

/// Lets `skip` operations of one kind on segments succeed, then fails `fail` of them.
void fail_some(CrashFileSystem& files, Kind kind, int skip, int fail, int error) {
    files.set_fault([kind, skip, fail, error](Kind k, const std::string& path) mutable {
        if (k != kind || !is_segment(path)) return 0;
        if (skip-- > 0) return 0;
        return fail-- > 0 ? error : 0;
    });
}

} // namespace

TEST_CASE("a failed write moves the journal to a new segment, without a gap", "[storage]") {
    for (const int error : {ENOSPC, EDQUOT, EIO}) {
        CrashFileSystem files;
        RecordingLog log;
        Journal journal(files, options(home), log);
        journal.append(reports(0, 3));
        journal.sync();
        journal.append(reports(3, 3));
        fail_some(files, Kind::write, 0, 1, error);
        journal.append(reports(6, 3));
        journal.append(reports(9, 3));
        CHECK(log.has("journal-moved"));
        CHECK(read_all(files, home) == reports(0, 12));
        CHECK(list_segments(files, home).size() == 2);
        journal.close();
        CHECK(read_all(files, home) == reports(0, 12));
    }
}

TEST_CASE("after a failed sync the records go to a new segment and survive a loss of power", "[storage]") {
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
        CrashFileSystem files;
        RecordingLog log;
        Journal journal(files, options(home), log);
        journal.append(reports(0, 3));
        journal.sync();
        journal.append(reports(3, 3));
        fail_some(files, Kind::sync, 0, 1, EIO);
        journal.sync();
        CHECK(log.has("journal-moved"));
        base::RngStream rng(3, base::Purpose::fault, seed);
        const auto left = files.after_power_cut(files.operations(), rng);
        REQUIRE(read_all(*left, home) == reports(0, 6));
        journal.append(reports(6, 1));
        journal.sync();
        REQUIRE(read_all(*files.after_power_cut(files.operations(), rng), home) == reports(0, 7));
    }
}

TEST_CASE("a failed sync across a change of segment keeps every record", "[storage]") {
    CrashFileSystem files;
    RecordingLog log;
    Journal journal(files, options(home), log);
    std::uint64_t next = 0;
    while (list_segments(files, home).size() < 2 || next < 100) journal.append(reports(next++, 1));
    fail_some(files, Kind::sync, 0, 1, EIO);
    // A publication ahead may hit the fault first; it is repeated, and the commit succeeds.
    while (!log.has("journal-moved") && !log.has("journal-no-room")) {
        journal.append(reports(next++, 1));
        journal.sync();
    }
    for (int i = 0; i < 300; ++i) journal.append(reports(next++, 1));
    journal.close();
    CHECK(read_all(files, home) == reports(0, next));
}

TEST_CASE("when the new segment fails too, append and sync throw and keep throwing", "[storage]") {
    for (const Kind kind : {Kind::write, Kind::sync}) {
        CrashFileSystem files;
        RecordingLog log;
        Journal journal(files, options(home), log);
        journal.append(reports(0, 3));
        journal.sync();
        fail_some(files, kind, 0, 1000, ENOSPC);
        std::errc code{};
        try {
            journal.append(reports(3, 3));
            journal.sync();
        } catch (const base::IoError& error) {
            code = static_cast<std::errc>(error.code().value());
        }
        CHECK(code == std::errc::no_space_on_device);
        CHECK_THROWS_AS(journal.append(reports(6, 1)), base::IoError);
        CHECK_THROWS_AS(journal.sync(), base::IoError);
        CHECK_THROWS_AS(journal.close(), base::IoError);
        CHECK(log.has("journal-failed"));
        files.set_fault({});
        // The next incarnation finds at least what was synced.
        const auto left = read_all(files, home);
        CHECK(left.size() >= 3);
        CHECK(std::equal(left.begin(), left.end(), reports(0, 9).begin()));
        Journal again(files, options(home, 2), log);
        again.append(reports(100, 1));
        CHECK(read_all(files, home).size() == left.size() + 1);
    }
}

TEST_CASE("no room for the next segment is logged early and is an error only when the current one is full",
          "[storage]") {
    CrashFileSystem files;
    RecordingLog log;
    Journal journal(files, options(home), log);
    files.set_fault([](Kind kind, const std::string&) { return kind == Kind::create ? ENOSPC : 0; });
    std::uint64_t next = 0;
    const auto fill = [&] {
        while (next < 10000) journal.append(reports(next++, 1));
    };
    CHECK_THROWS_AS(fill(), base::IoError);
    CHECK(next > 20);
    files.set_fault({});
    CHECK(read_all(files, home) == reports(0, next - 1));
}

TEST_CASE("records larger than a segment get one that holds them", "[storage]") {
    CrashFileSystem files;
    base::NullLog log;
    std::vector<study::Record> written;
    Journal journal(files, options(home), log);
    for (const std::size_t size : {10u, 200000u, 10u, 40000u, 7000u, 7000u, 7000u, 1000000u}) {
        journal.append({snapshot(size)});
        written.push_back(snapshot(size));
    }
    journal.close();
    CHECK(read_all(files, home) == written);
}

TEST_CASE("a snapshot is asked for at every change of segment and follows the records of that call", "[storage]") {
    CrashFileSystem files;
    base::NullLog log;
    std::uint64_t next = 0;
    std::uint64_t asked = 0;
    JournalOptions o = options(home);
    o.snapshot = [&] {
        ++asked;
        return snapshot(100, next);
    };
    Journal journal(files, o, log);
    while (asked < 5) {
        next += 2; // the batch is applied to the state before it is appended
        journal.append(reports(next - 2, 2));
    }
    journal.close();
    CHECK(list_segments(files, home).size() == 6);
    std::uint64_t seen = 0;
    std::uint64_t snapshots = 0;
    for (const study::Record& record : read_all(files, home)) {
        if (const auto* s = std::get_if<study::Snapshot>(&record)) {
            CHECK(s->digest == seen);
            ++snapshots;
        } else {
            ++seen;
        }
    }
    CHECK(snapshots == 5);
    CHECK(seen == next);
}

TEST_CASE("of two heads the one that publishes the next segment first owns the study", "[storage]") {
    CrashFileSystem files;
    base::NullLog log;
    Journal old_head(files, options(home), log);
    old_head.append(reports(0, 5));
    CHECK_THROWS_AS(Journal(files, options(home), log), base::UsageError); // the same incarnation again
    Journal new_head(files, options(home, 2), log);
    old_head.append(reports(500, 3)); // still in its own segment: ignored
    new_head.append(reports(5, 2));
    CHECK(read_all(files, home) == reports(0, 7));
    std::uint64_t appended = 0;
    const auto until_it_notices = [&] {
        for (; appended < 10000; ++appended) old_head.append(reports(600, 1));
    };
    CHECK_THROWS_AS(until_it_notices(), base::UsageError);
    CHECK(appended < 200); // one segment
    CHECK_THROWS_AS(old_head.sync(), base::UsageError);
    new_head.close();
    CHECK(read_all(files, home) == reports(0, 7));
}

TEST_CASE("a new head takes over although an old one publishes ahead at the same moment", "[storage]") {
    CrashFileSystem files;
    base::NullLog log;
    Journal old_head(files, options(home), log);
    old_head.append(reports(0, 5));
    // From here on the old head acts while the new one is between reading and publishing.
    const auto interfere = std::make_shared<bool>(true);
    CrashFileSystem* const shared = &files;
    HookedFileSystem between(files, [&old_head, interfere, shared](HookedFileSystem::Call call, const std::string&) {
        if (call != HookedFileSystem::Call::link || !*interfere) return;
        *interfere = false;
        std::uint64_t next = 5;
        while (list_segments(*shared, home).size() < 2) old_head.append(reports(next++, 1));
    });
    Journal new_head(between, options(home, 2), log);
    CHECK_FALSE(*interfere);
    CHECK(list_segments(files, home).size() == 3);
    const auto left = read_all(files, home);
    CHECK(left.size() > 5);
    CHECK(left == reports(0, left.size()));
}

TEST_CASE("closing a journal seals its segments and leaves no temporary files", "[storage]") {
    CrashFileSystem files;
    files.make_directories(home + "/journal");
    files.publish(home + "/journal/2-1-dead-77.tmp", {}); // left by a head that died while publishing
    files.rename(home + "/journal/2-1-dead-77.tmp", home + "/journal/3-1-dead-77.tmp");
    base::NullLog log;
    Journal journal(files, options(home), log);
    std::uint64_t next = 0;
    while (list_segments(files, home).size() < 3) journal.append(reports(next++, 1));
    journal.close();
    journal.close();
    CHECK_THROWS_AS(journal.append(reports(0, 1)), std::logic_error);
    for (const std::uint32_t segment : list_segments(files, home)) {
        CHECK(files.is_read_only(segment_path(home, segment)));
    }
    for (const std::string& name : files.list(home + "/journal")) CHECK(name.ends_with(".h5"));
    CHECK(read_all(files, home) == reports(0, next));
}

TEST_CASE("segments of a head that was killed are sealed by the next one", "[storage]") {
    CrashFileSystem files;
    base::NullLog log;
    {
        Journal journal(files, options(home), log);
        for (std::uint64_t i = 0; i < 300; ++i) journal.append(reports(i, 1));
    } // not closed
    const auto before = list_segments(files, home);
    REQUIRE(before.size() > 1);
    CHECK_FALSE(files.is_read_only(segment_path(home, before.back())));
    Journal journal(files, options(home, 2), log);
    for (const std::uint32_t number : before) CHECK(files.is_read_only(segment_path(home, number)));
    CHECK_FALSE(files.is_read_only(segment_path(home, before.back() + 1)));
    journal.append(reports(300, 1));
}

TEST_CASE("a writer notices that its segment was removed, moved or replaced", "[storage]") {
    CrashFileSystem files;
    base::NullLog log;
    Journal journal(files, options(home), log);
    journal.append(reports(0, 3));
    CHECK(journal.displaced().empty());
    const std::string path = segment_path(home, 1);
    files.rename(path, home + "/journal/elsewhere.h5");
    CHECK(journal.displaced() == path);
    journal.append(reports(3, 3)); // goes to the renamed file
    journal.sync();
    files.publish(path, {}); // another file of the same name
    CHECK(journal.displaced() == path);
    files.rename(home + "/journal/elsewhere.h5", path);
    CHECK(journal.displaced().empty());
    files.remove(path);
    CHECK(journal.displaced() == path);
}

TEST_CASE("the count of synced records is what a loss of power leaves", "[storage]") {
    CrashFileSystem files;
    base::NullLog log;
    {
        Journal journal(files, options(home), log);
        CHECK(journal.statistics().synced == 0);
        journal.append(reports(0, 3));
        CHECK(journal.statistics().synced == 0);
        journal.sync();
        journal.append(reports(3, 3));
        CHECK(journal.statistics().synced == 3);
    }
    Journal journal(files, options(home, 2), log); // the constructor has synced what it found
    CHECK(journal.statistics().synced == 6);
}

TEST_CASE("callbacks run when what was appended before them is synced, and not earlier", "[storage]") {
    CrashFileSystem files;
    base::NullLog log;
    Journal journal(files, options(home), log);
    std::atomic<int> done{0};
    journal.append(reports(0, 1));
    journal.when_synced([&] { done = 1; });
    CHECK(done == 0);
    journal.append(reports(1, 1));
    journal.when_synced([&] { throw std::runtime_error("ignored"); });
    journal.when_synced([&] { done = 2; });
    journal.close();
    CHECK(done == 2);
}

TEST_CASE("one thread appends while the journal syncs and others ask", "[storage]") {
    const TemporaryDirectory folder;
    base::NullLog log;
    JournalOptions o = options(folder.path());
    o.commit_interval = base::Duration::zero();
    std::atomic<std::uint64_t> called{0};
    std::atomic<bool> over{false};
    std::atomic<bool> in_bounds{true}; // Catch2's macros belong to one thread
    {
        Journal journal(posix_file_system(), o, log);
        std::thread other([&] {
            while (!over) {
                journal.sync();
                journal.when_synced([&] { ++called; });
                if (journal.statistics().records > 2000) in_bounds = false;
            }
        });
        for (std::uint64_t i = 0; i < 2000; ++i) journal.append(reports(i, 1));
        over = true;
        other.join();
        journal.close();
        CHECK(journal.statistics().records == 2000);
        CHECK(journal.statistics().syncs > 0);
    }
    CHECK(called > 0);
    CHECK(in_bounds);
    CHECK(read_all(posix_file_system(), folder.path()) == reports(0, 2000));
}

} // namespace ranktune::storage::journal_fault_test
