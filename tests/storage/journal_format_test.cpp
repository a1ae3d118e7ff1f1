// SPDX-License-Identifier: Apache-2.0
// The bytes of a frame, and a journal of an earlier format.
#include <cstring>

#include "journal_fixture.hpp"
#include "ranktune/base/digest.hpp"
#include "storage/journal/segment.hpp"
#include "support/catch.hpp"
#include "support/crash_file_system.hpp"

namespace ranktune::storage::journal_format_test {
using namespace test;
using ranktune::test::CrashFileSystem;

namespace {

const std::string home = "/study";

template <class T>
void put(study::Bytes& bytes, std::size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
}

void pad_and_seal(study::Bytes& frame, FrameHeader& header) {
    header.bytes = static_cast<std::uint32_t>(frame.size() - frame_header_bytes);
    frame.resize(frame_size(header.bytes));
    seal_frame(frame, header, 42);
}

/// A study of an older program: a segment with that version in its header.
void write_old_journal(FileSystem& files) {
    base::NullLog log;
    { const Journal journal(files, options(home), log); }
    const auto file = files.open(segment_path(home, 1), FileSystem::Open::read_write);
    const SegmentHeader header = read_segment_header(*file, "segment");
    std::vector<std::byte> page(segment_header_bytes);
    static_cast<void>(file->read_at(header.payload_offset, page));
    put(page, 8, std::uint16_t{1});
    put(page, segment_header_bytes - 4, base::crc32c(std::span(page).first(segment_header_bytes - 4)));
    file->write_at(header.payload_offset, page);
}

} // namespace

TEST_CASE("a journal of format 1 is refused with a sentence", "[storage]") {
    CrashFileSystem files;
    write_old_journal(files);
    CHECK_THROWS_WITH(read_all(files, home),
                      Catch::Contains("by an earlier ranktune (journal format 1, records ") &&
                          Catch::Contains("use that version, or begin the study again in a new directory"));
    base::NullLog log;
    CHECK_THROWS_AS(Journal(files, options(home, 2), log), base::FormatError);
    CHECK(files.list(home + "/journal").size() == 1); // nothing was changed
}

TEST_CASE("a report of one metric takes at most 64 bytes, alone in its frame, with its decision", "[storage]") {
    study::Reported r;
    r.trial = base::TrialId(999'999);
    r.attempt = base::AttemptId(3);
    r.at = base::from_ns(std::int64_t{300} * 3600 * 1'000'000'000);
    r.iteration = 16'000;
    r.seconds = 1e6;
    r.metrics = {{base::MetricId(2), 0.97}};
    r.verdict = {study::Verb::pause, study::Reason::rung, 729.0, 16'000.0};
    study::Bytes one;
    study::encode(study::Record(r), one);
    CHECK(frame_size(one.size()) <= 64);
    r.metrics.push_back({base::MetricId(3), 0.5});
    study::Bytes two;
    study::encode(study::Record(r), two);
    CHECK(two.size() - one.size() <= 9);
}

TEST_CASE("a frame stores the lower half of its record number, and the reader adds the upper half", "[storage]") {
    for (const std::uint64_t first : {0ULL, 5ULL, 0xFFFF'FFF0ULL, 0x1'0000'0010ULL, 0x7'8000'0000ULL}) {
        study::Bytes frame(frame_header_bytes);
        study::encode(report(7), frame);
        FrameHeader header;
        header.first_sequence = first;
        header.count = 1;
        header.unsynced = std::min<std::uint64_t>(first, 3);
        header.previous = 77;
        pad_and_seal(frame, header);
        REQUIRE(sound_frame_size(frame, 1000) == frame.size());
        for (const std::uint64_t near : {first, first + 100, first < 100 ? 0 : first - 100}) {
            const auto read = decode_frame(frame, 42, near);
            REQUIRE(read);
            CHECK(read->first_sequence == first);
            CHECK(read->count == 1);
            CHECK(read->previous == 77);
            CHECK(read->synced_below() == first - header.unsynced);
        }
        CHECK_FALSE(decode_frame(frame, 43, first));
    }
}

TEST_CASE("when the number of unsynced records overflows, none is known to be synced", "[storage]") {
    study::Bytes frame(frame_header_bytes);
    study::encode(report(7), frame);
    FrameHeader header;
    header.first_sequence = 1ULL << 30U;
    header.count = 1;
    header.unsynced = 1ULL << 29U;
    pad_and_seal(frame, header);
    const auto read = decode_frame(frame, 42, 1ULL << 30U);
    REQUIRE(read);
    CHECK(read->synced_below() == 0);
}

} // namespace ranktune::storage::journal_format_test
