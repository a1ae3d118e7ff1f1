// SPDX-License-Identifier: Apache-2.0
// What a head reads to go on: the newest snapshot and what follows it.
#include "journal_fixture.hpp"
#include "support/catch.hpp"
#include "support/crash_file_system.hpp"

namespace ranktune::storage {
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

TEST_CASE("The tail of a journal begins behind its newest snapshot", "[storage]") {
    CrashFileSystem files;
    base::NullLog log;
    {
        Journal journal(files, options(home), log);
        CHECK(journal.first_record() == 0);
        journal.append({study::StudyCreated{"u", "first", 1, "v"}, report(1)});
        const auto before = read_journal_tail(files, home);
        CHECK_FALSE(before.snapshot);
        CHECK(before.spec == "first");
        CHECK(decoded(before).size() == 2);
        journal.append({report(2), snapshot(10, 42), report(3)});
        journal.append({study::StudyChanged{{}, "second", 2, "v"}, report(4)});
    }
    JournalTail tail = read_journal_tail(files, home);
    CHECK(tail.spec == "first"); // the change comes behind the snapshot, among the records
    REQUIRE(tail.snapshot);
    CHECK(tail.snapshot->digest == 42);
    CHECK(decoded(tail) == std::vector<study::Record>{report(3), study::StudyChanged{{}, "second", 2, "v"}, report(4)});
    CHECK(tail.summary.records == 7);

    Journal second(files, options(home, 2), log);
    CHECK(second.first_record() == 7);
    second.append({snapshot(10, 43)});
    tail = read_journal_tail(files, home);
    CHECK(tail.spec == "second");
    CHECK(tail.records.empty());
    CHECK(tail.summary.incarnation == 2);
}

} // namespace ranktune::storage
