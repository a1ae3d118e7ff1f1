// SPDX-License-Identifier: Apache-2.0
// Following a journal that grows, is torn, damaged, taken over or replaced.
#include "storage/journal/journal_follower.hpp"

#include "journal_fixture.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/rng.hpp"
#include "storage/journal/segment.hpp"
#include "support/catch.hpp"
#include "support/crash_file_system.hpp"

namespace ranktune::storage::journal_follower_test {
using namespace test;
using ranktune::test::CrashFileSystem;

namespace {

const std::string home = "/study";

/// A reader that remembers what it was shown.
class Reader {
  public:
    explicit Reader(FileSystem& files) : follower_(files, home, begun(files)) {}

    Followed look() {
        return follower_.look([this](study::Record&& record, std::uint64_t number) { see(std::move(record), number); });
    }
    std::vector<study::Record> seen;
    std::vector<std::uint64_t> numbers; ///< of those

  private:
    JournalSummary begun(FileSystem& files) {
        return read_history(files, home, UINT64_MAX,
                            [this](study::Record&& r, std::uint64_t number) { see(std::move(r), number); });
    }
    void see(study::Record&& record, std::uint64_t number) {
        seen.push_back(std::move(record));
        numbers.push_back(number);
    }
    JournalFollower follower_;
};

std::vector<study::Record> history(FileSystem& files) {
    std::vector<study::Record> records;
    read_history(files, home, UINT64_MAX, [&](study::Record&& record, auto) { records.push_back(std::move(record)); });
    return records;
}

/// Direct access to the payload of a segment, which has `used` bytes of frames and its header.
struct SegmentBytes {
    SegmentBytes(FileSystem& files, std::uint32_t number)
        : file(files.open(segment_path(home, number), FileSystem::Open::read_write)),
          header(read_segment_header(*file, "segment")) {}

    [[nodiscard]] std::vector<std::byte> read(std::uint64_t at, std::uint64_t size) const {
        std::vector<std::byte> bytes(size);
        bytes.resize(file->read_at(header.payload_offset + at, bytes));
        return bytes;
    }
    void write(std::uint64_t at, std::span<const std::byte> bytes) const {
        file->write_at(header.payload_offset + at, bytes);
    }
    void flip(std::uint64_t at) const {
        auto byte = read(at, 1);
        byte[0] ^= std::byte{0x10};
        write(at, byte);
    }
    [[nodiscard]] std::vector<std::uint64_t> frames() const {
        std::vector<std::uint64_t> starts = {segment_header_bytes};
        while (const auto size =
                   sound_frame_size(read(starts.back(), frame_header_bytes), header.payload_bytes - starts.back()))
            starts.push_back(starts.back() + size);
        return starts;
    }
    std::unique_ptr<File> file;
    SegmentHeader header;
};

} // namespace

TEST_CASE("A follower sees every record of a growing journal once, over segments and heads", "[storage]") {
    CrashFileSystem files;
    base::NullLog log;
    std::uint64_t written = 0;
    std::optional<Reader> reader;
    for (std::uint32_t incarnation = 1; incarnation <= 3; ++incarnation) {
        JournalOptions o = options(home, incarnation);
        o.snapshot = [] { return snapshot(100); };
        Journal journal(files, o, log);
        for (int batch = 0; batch < 20; ++batch) {
            journal.append(reports(written, 30));
            written += 30;
            if (!reader) reader.emplace(files);
            if (batch % 3 == 2) continue; // several batches at once
            const bool first = incarnation == 1 && batch == 0;
            CHECK(reader->look() == (first ? Followed::nothing : Followed::grown));
            CHECK(reader->look() == Followed::nothing);
            CHECK(reader->seen.size() == written);
        }
        if (incarnation == 2) journal.close();
    }
    (void)reader->look();
    CHECK(list_segments(files, home).size() > 5);
    CHECK(reader->seen == reports(0, written));
}

TEST_CASE("What was read is not read again: damage there is not seen", "[storage]") {
    CrashFileSystem files;
    base::NullLog log;
    Journal journal(files, options(home), log);
    journal.append(reports(0, 10));
    journal.append(reports(10, 10));
    journal.sync();
    Reader reader(files);
    const SegmentBytes bytes(files, 1);
    bytes.flip(bytes.frames().front() + frame_header_bytes + 2);
    journal.append(reports(20, 10));
    CHECK(reader.look() == Followed::grown);
    CHECK(reader.seen == reports(0, 30));
    CHECK(reader.numbers.size() == 30);
    CHECK(reader.numbers.back() == 29);
    CHECK_THROWS_AS(history(files), base::FormatError);
}

TEST_CASE("A journal that has become shorter than what was read of it is damaged, unless that was a moment's view",
          "[storage]") {
    CrashFileSystem files;
    base::NullLog log;
    Journal(files, options(home), log).append(reports(0, 50));
    Reader reader(files);
    const SegmentBytes bytes(files, 1);
    const std::uint64_t size = bytes.file->size();
    const auto whole = bytes.read(segment_header_bytes, size);
    const std::uint64_t kept = bytes.header.payload_offset + bytes.frames().back() - 8;
    bytes.file->truncate(kept);
    for (int i = 1; i < JournalFollower::patience; ++i) CHECK(reader.look() == Followed::nothing);
    bytes.write(segment_header_bytes, whole);
    CHECK(reader.look() == Followed::nothing);
    bytes.file->truncate(kept);
    for (int i = 1; i < JournalFollower::patience; ++i) CHECK(reader.look() == Followed::nothing);
    CHECK_THROWS_AS(reader.look(), base::FormatError);
    CHECK(reader.seen == reports(0, 50));
}

TEST_CASE("However the bytes of a journal arrive, a follower sees a prefix of its records, and all in the end",
          "[storage]") {
    CrashFileSystem files;
    base::NullLog log;
    JournalOptions o = options(home);
    o.first_segment_bytes = o.max_segment_bytes = 64 * 1024;
    {
        Journal journal(files, o, log);
        for (std::uint64_t i = 0; i < 40; ++i) journal.append(reports(i * 5, 5));
    }
    const std::vector<study::Record> all = history(files);
    const SegmentBytes bytes(files, 1);
    const std::uint64_t begin = segment_header_bytes;
    const std::uint64_t end = bytes.frames().back();
    const auto whole = bytes.read(begin, end - begin);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        base::RngStream random(seed, base::Purpose::fault);
        bytes.write(begin, std::vector<std::byte>(whole.size()));
        Reader reader(files);
        REQUIRE(reader.seen.empty());
        std::uint64_t at = 0;
        while (at < whole.size()) {
            const std::uint64_t step = std::min<std::uint64_t>(whole.size() - at, 1 + random.below(2000));
            const auto part = std::span(whole).subspan(at, step);
            const bool late = step > 200 && random.below(3) == 0; // the end of a part arrives before its beginning
            if (late) {
                bytes.write(begin + at + step / 2, part.subspan(step / 2));
                (void)reader.look();
                bytes.write(begin + at, part.first(step / 2));
            } else {
                bytes.write(begin + at, part);
            }
            at += step;
            (void)reader.look();
            REQUIRE(reader.seen.size() <= all.size());
            REQUIRE(std::equal(reader.seen.begin(), reader.seen.end(), all.begin()));
        }
        CHECK(reader.seen.size() == all.size());
    }
}

TEST_CASE("Damage that goes away was a write under way; damage that stays is an error", "[storage]") {
    CrashFileSystem files;
    base::NullLog log;
    Journal journal(files, options(home), log);
    journal.append(reports(0, 5));
    Reader reader(files);
    journal.append(reports(5, 5));
    journal.sync();
    journal.append(reports(10, 5)); // which says that the frame before is synced
    const SegmentBytes bytes(files, 1);
    const std::uint64_t at = bytes.frames().at(1) + frame_header_bytes + 2;
    bytes.flip(at);
    for (int look = 0; look + 1 < JournalFollower::patience; ++look) CHECK(reader.look() == Followed::nothing);
    bytes.flip(at);
    CHECK(reader.look() == Followed::grown);
    CHECK(reader.seen == reports(0, 15));

    journal.append(reports(15, 5));
    journal.sync();
    journal.append(reports(20, 5));
    bytes.flip(bytes.frames().at(3) + frame_header_bytes + 2);
    for (int look = 0; look + 1 < JournalFollower::patience; ++look) CHECK(reader.look() == Followed::nothing);
    CHECK_THROWS_AS(reader.look(), base::FormatError);
    CHECK(reader.seen == reports(0, 15));
}

TEST_CASE("A head that goes on before what was read asks for a rebuild", "[storage]") {
    CrashFileSystem files;
    base::NullLog log;
    {
        Journal journal(files, options(home), log);
        journal.append(reports(0, 5));
        journal.append(reports(5, 5));
    }
    Reader ahead(files);
    const SegmentBytes bytes(files, 1);
    const auto frames = bytes.frames();
    bytes.write(frames.at(1), std::vector<std::byte>(frames.at(2) - frames.at(1))); // the power was lost
    Reader behind(files);
    CHECK(behind.seen.size() == 5);
    Journal second(files, options(home, 2), log);
    second.append(reports(100, 5));
    CHECK(ahead.look() == Followed::rebuild);
    CHECK(behind.look() == Followed::grown);
    CHECK(behind.seen == history(files));
}

TEST_CASE("Another study in the same directory asks for a rebuild", "[storage]") {
    CrashFileSystem files;
    base::NullLog log;
    {
        Journal journal(files, options(home), log);
        journal.append(reports(0, 5));
    }
    Reader reader(files);
    CHECK(reader.look() == Followed::nothing);
    for (const std::uint32_t number : list_segments(files, home)) files.remove(segment_path(home, number));
    CHECK(reader.look() == Followed::rebuild); // no journal: renamed by --fresh
    JournalOptions o = options(home);
    o.uuid = "another";
    Journal journal(files, o, log);
    journal.append(reports(0, 50));
    Reader fresh(files);
    CHECK(fresh.look() == Followed::nothing);
    CHECK(reader.look() == Followed::rebuild);
}

} // namespace ranktune::storage::journal_follower_test
