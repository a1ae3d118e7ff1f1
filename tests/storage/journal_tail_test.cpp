// SPDX-License-Identifier: Apache-2.0
// What a head reads to continue: the newest snapshot and what follows it.
#include "journal_fixture.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/rng.hpp"
#include "storage/journal/segment.hpp"
#include "support/catch.hpp"
#include "support/crash_file_system.hpp"

namespace ranktune::storage::journal_tail_test {
using namespace test;
using ranktune::test::CrashFileSystem;

namespace {

const std::string home = "/study";

std::vector<study::Record> decoded(const JournalTail& tail) {
    std::vector<study::Record> records;
    study::Decoder in(tail.records);
    while (!in.empty()) records.push_back(study::decode_record(in));
    return records;
}

} // namespace

TEST_CASE("The tail of a journal begins after its newest snapshot", "[storage]") {
    CrashFileSystem files;
    base::NullLog log;
    {
        Journal journal(files, options(home), log);
        CHECK(journal.first_record() == 0);
        journal.append({study::StudyCreated{"u", "first", 1, "v"}, report(1)});
        const auto before = read_journal_tail(files, home, Check::everything);
        CHECK_FALSE(before.snapshot);
        CHECK(decoded(before).size() == 2);
        journal.append({report(2), snapshot(10, 42, "first"), report(3)});
        journal.append({study::StudyChanged{{}, "second", 2, "v"}, report(4)});
    }
    JournalTail tail = read_journal_tail(files, home, Check::everything);
    REQUIRE(tail.snapshot);
    CHECK(tail.snapshot->digest == 42);
    CHECK(tail.snapshot->spec == "first"); // the change comes after the snapshot, among the records
    CHECK(decoded(tail) == std::vector<study::Record>{report(3), study::StudyChanged{{}, "second", 2, "v"}, report(4)});
    CHECK(tail.summary.records == 7);
    std::vector<std::uint64_t> numbers; // the snapshot has number 3
    read_history(files, home, 6, [&](study::Record&&, std::uint64_t number) { numbers.push_back(number); });
    CHECK(numbers == std::vector<std::uint64_t>{0, 1, 2, 4, 5});

    Journal second(files, options(home, 2), log);
    CHECK(second.first_record() == 7);
    second.append({snapshot(10, 43, "second")});
    tail = read_journal_tail(files, home, Check::everything);
    CHECK(tail.snapshot == std::get<study::Snapshot>(snapshot(10, 43, "second")));
    CHECK(tail.records.empty());
    CHECK(tail.summary.incarnation == 2);
}

TEST_CASE("Check::since_snapshot reads nothing before the newest snapshot whose past is synced", "[storage]") {
    CrashFileSystem files;
    base::NullLog log;
    std::uint64_t digest = 0;
    const auto write = [&](std::uint32_t incarnation, int batches) {
        JournalOptions o = options(home, incarnation);
        o.snapshot = [&] { return snapshot(100, ++digest); };
        Journal journal(files, o, log);
        if (incarnation > 1) journal.append({snapshot(100, ++digest)});
        for (int i = 0; i < batches; ++i) {
            journal.append(reports(static_cast<std::uint64_t>(100 * i), 100));
            if (i % 3 == 0) journal.sync();
        }
    };
    write(1, 24);
    REQUIRE(list_segments(files, home).size() >= 4);
    const auto flip = [&](std::uint32_t segment) { // a byte of its first record
        const auto file = files.open(segment_path(home, segment), FileSystem::Open::read_write);
        const std::uint64_t at =
            read_segment_header(*file, "").payload_offset + segment_header_bytes + frame_header_bytes + 2;
        std::vector<std::byte> byte(1);
        REQUIRE(file->read_at(at, byte) == 1);
        byte[0] ^= std::byte{1};
        file->write_at(at, byte);
    };
    const auto bytes_of = [](const JournalTail& tail) {
        const std::span<const std::byte> bytes = tail.records;
        return std::vector<std::byte>(bytes.begin(), bytes.end());
    };
    const JournalTail whole = read_journal_tail(files, home, Check::everything);
    flip(2);
    CHECK_THROWS_AS(read_journal_tail(files, home, Check::everything), base::FormatError);
    const JournalTail seen = read_journal_tail(files, home, Check::since_snapshot);
    CHECK(seen.snapshot == whole.snapshot);
    CHECK(seen.summary.records == whole.summary.records);
    CHECK(bytes_of(seen) == bytes_of(whole));

    // The newest snapshot of any incarnation and what follows it are read; a missing file is always noticed.
    flip(2);
    write(2, 0);
    CHECK(read_journal_tail(files, home, Check::since_snapshot).snapshot->digest == digest);
    const std::uint32_t newest = list_segments(files, home).back();
    flip(newest);
    CHECK(read_journal_tail(files, home, Check::since_snapshot).summary.records == whole.summary.records);
    flip(newest);
    files.remove(segment_path(home, newest - 1));
    CHECK_THROWS_AS(read_journal_tail(files, home, Check::since_snapshot), base::FormatError);
}

TEST_CASE("Check::since_snapshot begins earlier when the past of a snapshot may not be synced", "[storage]") {
    CrashFileSystem files;
    base::NullLog log;
    JournalOptions o = options(home);
    o.snapshot = [] { return snapshot(100); };
    Journal journal(files, o, log);
    std::uint64_t batch = 0;
    while (!read_journal_tail(files, home, Check::since_snapshot).snapshot) // until the second segment begins
        journal.append(reports(100 * batch++, 100));
    // The power fails: a frame of the first segment is lost, the second is there. The journal ends in the first.
    base::RngStream rng(1, base::Purpose::fault);
    std::size_t ended_before = 0;
    for (int i = 0; i < 200; ++i) {
        const auto left = files.after_power_cut(files.operations(), rng);
        const JournalTail head = read_journal_tail(*left, home, Check::everything);
        const JournalTail view = read_journal_tail(*left, home, Check::since_snapshot);
        REQUIRE(view.summary.records == head.summary.records);
        REQUIRE(view.snapshot == head.snapshot);
        if (!head.snapshot && list_segments(*left, home).size() > 1) ++ended_before;
    }
    CHECK(ended_before > 0);
}

namespace {

/// Two records of a first incarnation, as read. The second frame says that the first one was synced.
JournalSummary two_records(CrashFileSystem& files) {
    base::NullLog log;
    Journal journal(files, options(home), log);
    journal.append({report(1)});
    journal.sync();
    journal.append({report(2)});
    journal.close();
    return read_journal_tail(files, home, Check::everything).summary;
}

/// Flips one bit of the first frame.
void damage_the_first_frame(CrashFileSystem& files) {
    const auto file = files.open(segment_path(home, 1), FileSystem::Open::read_write);
    const std::uint64_t at = read_segment_header(*file, "segment").payload_offset + segment_header_bytes + 8;
    std::byte one{};
    REQUIRE(file->read_at(at, {&one, 1}) == 1);
    one ^= std::byte{1};
    file->write_at(at, {&one, 1});
}

} // namespace

TEST_CASE("A head that has read a journal reads only what follows when it takes over", "[storage]") {
    CrashFileSystem files;
    base::NullLog log;
    const JournalSummary read = two_records(files);
    damage_the_first_frame(files);
    JournalOptions second = options(home, 2);
    CHECK_THROWS_AS(Journal(files, second, log), base::FormatError);
    second.read = read;
    Journal journal(files, second, log);
    CHECK(journal.first_record() == 2);
}

TEST_CASE("A head that takes over finds what an older head wrote after the journal was read", "[storage]") {
    CrashFileSystem files;
    base::NullLog log;
    Journal older(files, options(home), log);
    older.append({report(1)});
    JournalOptions second = options(home, 2);
    second.read = read_journal_tail(files, home, Check::everything).summary;
    older.append({report(2), report(3)});
    const Journal journal(files, second, log);
    CHECK(journal.first_record() == 3);
    CHECK(read_all(files, home).size() == 3);
}

TEST_CASE("A journal whose files were replaced since it was read is read from its beginning", "[storage]") {
    CrashFileSystem files;
    base::NullLog log;
    JournalOptions second = options(home, 2);
    second.read = two_records(files);
    second.read->end.segment = 7;
    const Journal journal(files, second, log);
    CHECK(journal.first_record() == 2);
}

} // namespace ranktune::storage::journal_tail_test
