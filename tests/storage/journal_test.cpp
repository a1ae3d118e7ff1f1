// SPDX-License-Identifier: Apache-2.0
#include "storage/journal/journal.hpp"

#include <sys/stat.h>

#include "journal_fixture.hpp"
#include "ranktune/base/error.hpp"
#include "storage/journal/segment.hpp"
#include "storage/journal/segment_publisher.hpp"
#include "support/catch.hpp"
#include "support/crash_file_system.hpp"

namespace ranktune::storage {
using namespace test;

TEST_CASE("records come back in order from many segments", "[storage]") {
    const TemporaryDirectory home;
    base::NullLog log;
    FileSystem& files = posix_file_system();
    std::vector<study::Record> written;
    {
        Journal journal(files, options(home.path()), log);
        for (std::uint64_t i = 0; i < 3000; i += 3) {
            const auto batch = reports(i, 3);
            journal.append(batch);
            written.insert(written.end(), batch.begin(), batch.end());
            if (i % 500 == 0) journal.sync();
        }
        journal.close();
    }
    JournalSummary summary;
    CHECK(read_all(files, home.path(), &summary) == written);
    CHECK(summary.segments > 4);
    CHECK(summary.records == 3000);
    CHECK(summary.cut_bytes == 0);
    CHECK(summary.incarnation == 1);
    CHECK(summary.uuid == options("").uuid);
    CHECK(summary.writer == options("").writer);
    CHECK(summary.job == "123456");
}

TEST_CASE("a segment is large enough for the frame that must fit, and segments double up to a limit", "[storage]") {
    ranktune::test::CrashFileSystem files;
    files.make_directories(journal_directory("/study"));
    base::NullLog log;
    JournalOptions o = options("/study"); // 8 to 32 KiB
    SegmentPublisher publisher(files, o, log);
    auto published = [&, number = 0U](std::uint64_t needed) mutable {
        return publisher.publish(++number, 0, {}, {needed})->header.payload_bytes / 1024;
    };
    CHECK(published(0) == 8);
    CHECK(published(0) == 16);
    CHECK(published(0) == 32);
    CHECK(published(100 * 1024) == 128);
    CHECK(published(0) == 32);
    // Doubling stops at the limit, and continues when the limit grows with the snapshots.
    SegmentPublisher slow(files, o, log);
    auto bounded = [&, number = 100U](std::uint64_t most) mutable {
        return slow.publish(++number, 0, {}, {0, most})->header.payload_bytes / 1024;
    };
    CHECK(bounded(16 * 1024) == 8);
    CHECK(bounded(16 * 1024) == 16);
    CHECK(bounded(1024 * 1024) == 16);
    CHECK(bounded(16 * 1024) == 32);
    CHECK(bounded(16 * 1024) == 32);
}

TEST_CASE("what is appended can be read at once, without a sync", "[storage]") {
    const TemporaryDirectory home;
    base::NullLog log;
    Journal journal(posix_file_system(), options(home.path()), log);
    journal.append(reports(0, 5));
    CHECK(read_all(posix_file_system(), home.path()) == reports(0, 5));
    journal.append(reports(5, 1));
    CHECK(read_all(posix_file_system(), home.path()) == reports(0, 6));
}

} // namespace ranktune::storage
