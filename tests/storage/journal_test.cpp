// SPDX-License-Identifier: Apache-2.0
#include "storage/journal.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <deque>
#include <thread>
#include <utility>

#include "journal_fixture.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/rng.hpp"
#include "storage/segment.hpp"
#include "storage/segment_publisher.hpp"
#include "storage/unsynced_frames.hpp"
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

TEST_CASE("a segment is made large enough for what must and, within the limit, for what should fit", "[storage]") {
    ranktune::test::CrashFileSystem files;
    files.make_directories(journal_directory("/study"));
    base::NullLog log;
    JournalOptions o = options("/study"); // 8 to 32 KiB
    SegmentPublisher publisher(files, o, log);
    auto published = [&, number = 0U](std::uint64_t needed, std::uint64_t expected) mutable {
        return publisher.publish(++number, false, {}, {needed, expected})->header.payload_bytes / 1024;
    };
    CHECK(published(0, 0) == 8);
    CHECK(published(0, 0) == 16);
    CHECK(published(0, 1 << 20) == 32);
    CHECK(published(100 * 1024, 0) == 128);
    CHECK(published(0, 0) == 32);
    SegmentPublisher other(files, o, log);
    CHECK(other.publish(77, false, {}, {0, 30 * 1024})->header.payload_bytes == 32 * 1024);
    CHECK(other.publish(78, false, {}, {0, 0})->header.payload_bytes == 16 * 1024); // a burst is no lasting need
    // Doubling ends where the snapshots are not worth it, and goes on when they are.
    SegmentPublisher slow(files, o, log);
    auto bounded = [&, number = 100U](std::uint64_t most) mutable {
        return slow.publish(++number, false, {}, {0, 0, most})->header.payload_bytes / 1024;
    };
    CHECK(bounded(16 * 1024) == 8);
    CHECK(bounded(16 * 1024) == 16);
    CHECK(bounded(1024 * 1024) == 16);
    CHECK(bounded(16 * 1024) == 32);
    CHECK(bounded(16 * 1024) == 32);
}

TEST_CASE("frames that are not synced are kept in order and forgotten from the beginning", "[storage]") {
    UnsyncedFrames frames;
    base::RngStream rng(5, base::Purpose::fault);
    std::deque<std::pair<std::uint64_t, study::Bytes>> expected;
    std::uint64_t sequence = 0;
    const auto check = [&] {
        std::uint64_t bytes = 0;
        std::size_t at = 0;
        bool same = true;
        frames.for_each([&](const UnsyncedFrames::Frame& frame) {
            same = same && at < expected.size() && frame.first_sequence == expected[at].first &&
                   std::ranges::equal(frame.bytes, expected[at].second);
            bytes += frame.bytes.size();
            ++at;
        });
        REQUIRE(same);
        REQUIRE(at == expected.size());
        REQUIRE(frames.bytes() == bytes);
        REQUIRE(frames.empty() == expected.empty());
    };
    for (int round = 0; round < 60; ++round) {
        for (std::uint64_t i = rng.below(400); i > 0; --i) {
            const auto record_bytes =
                static_cast<std::uint32_t>(rng.below(40) == 0 ? rng.below(200'000) : rng.below(900));
            study::Bytes bytes(frame_size(record_bytes), static_cast<std::byte>(rng.below(256)));
            frames.push({sequence, 3, record_bytes, bytes});
            expected.emplace_back(sequence, std::move(bytes));
            sequence += 3;
        }
        check();
        if (rng.below(12) == 0) {
            frames.clear();
            expected.clear();
        } else if (!expected.empty()) {
            const std::uint64_t below = rng.below(3) == 0 ? sequence : expected[rng.below(expected.size())].first;
            frames.drop_below(below);
            while (!expected.empty() && expected.front().first < below) expected.pop_front();
        }
        check();
    }
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
