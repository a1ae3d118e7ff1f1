// SPDX-License-Identifier: Apache-2.0
// Reading journals that are unfinished, damaged, foreign or newer.
#include <limits>
#include <thread>

#include "journal_fixture.hpp"
#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"
#include "storage/journal/segment.hpp"
#include "support/catch.hpp"
#include "support/crash_file_system.hpp"
#include "support/error_of.hpp"

namespace ranktune::storage::journal_damage_test {
using namespace test;
using ranktune::test::CrashFileSystem;

namespace {

const std::string home = "/study";

/// Direct access to the payload of a segment.
class Payload {
  public:
    Payload(FileSystem& files, std::uint32_t segment)
        : file_(files.open(segment_path(home, segment), FileSystem::Open::read_write)),
          header_(read_segment_header(*file_, "segment")) {}

    [[nodiscard]] std::vector<std::byte> read(std::uint64_t at, std::uint64_t size) {
        std::vector<std::byte> bytes(size);
        bytes.resize(file_->read_at(header_.payload_offset + at, bytes));
        return bytes;
    }
    void write(std::uint64_t at, std::span<const std::byte> bytes) {
        file_->write_at(header_.payload_offset + at, bytes);
    }
    void flip(std::uint64_t at) {
        auto byte = read(at, 1);
        byte[0] ^= std::byte{0x10};
        write(at, byte);
    }
    /// Offsets of the frames, and the end of the last one.
    [[nodiscard]] std::vector<std::uint64_t> frames() {
        std::vector<std::uint64_t> starts = {segment_header_bytes};
        while (true) {
            const auto head = read(starts.back(), frame_header_bytes);
            const std::uint64_t size = sound_frame_size(head, header_.payload_bytes - starts.back());
            if (size == 0) return starts;
            starts.push_back(starts.back() + size);
        }
    }
    [[nodiscard]] const SegmentHeader& header() const { return header_; }

  private:
    std::unique_ptr<File> file_;
    SegmentHeader header_;
};

/// Changes a field of a header page and updates its checksum.
template <class T>
void set_in_header(FileSystem& files, std::uint32_t segment, std::uint64_t at, T value) {
    Payload payload(files, segment);
    auto page = payload.read(0, segment_header_bytes);
    std::memcpy(page.data() + at, &value, sizeof value);
    const std::uint32_t crc = base::crc32c(std::span(page).first(segment_header_bytes - 4));
    std::memcpy(page.data() + segment_header_bytes - 4, &crc, sizeof crc);
    payload.write(0, page);
}

std::string message_of(FileSystem& files) {
    return ranktune::testing::error_of<base::FormatError>([&] { return read_all(files, home); });
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Frames of three reports each in one segment; later frames record that the first `synced` frames were synced.
void write_frames(FileSystem& files, std::uint64_t frames, std::uint64_t synced, std::uint32_t incarnation = 1) {
    base::NullLog log;
    JournalOptions o = options(home, incarnation);
    o.first_segment_bytes = 32 * 1024;
    Journal journal(files, o, log);
    for (std::uint64_t i = 0; i < frames; ++i) {
        if (i == synced && i != 0) journal.sync();
        journal.append(reports(3 * i, 3));
    }
}

} // namespace

TEST_CASE("an unfinished last frame is cut at every byte, and the next life goes on before it", "[storage]") {
    CrashFileSystem files;
    write_frames(files, 6, 0);
    const std::size_t last = files.operations() - 1;
    const auto starts = Payload(files, 1).frames();
    auto frame = Payload(files, 1).read(starts[5], starts[6] - starts[5]);
    while (frame.back() == std::byte{0}) frame.pop_back(); // without its trailing zeros the frame is still whole
    const std::uint64_t size = frame.size();
    for (std::uint64_t torn = 0; torn < size; ++torn) {
        const auto left = files.after_kill(last, torn);
        JournalSummary summary;
        REQUIRE(read_all(*left, home, &summary) == reports(0, 15));
        REQUIRE(summary.cut_bytes <= (torn + 7) / 8 * 8); // the last words may be zeros
        REQUIRE((summary.cut_bytes > 0) == (torn > 0));
        REQUIRE(summary.cut_records == 0);
        if (torn % 29 != 0) continue;
        base::NullLog log;
        Journal journal(*left, options(home, 2), log);
        journal.append(reports(15, 2));
        REQUIRE(read_all(*left, home, &summary) == reports(0, 17));
        REQUIRE(summary.cut_bytes == 0);
        REQUIRE(summary.incarnation == 2);
    }
}

TEST_CASE("damage to records that were synced is refused with advice, at every byte", "[storage]") {
    CrashFileSystem files;
    write_frames(files, 5, 3);
    const auto starts = Payload(files, 1).frames();
    const std::size_t end = files.operations();
    for (std::uint64_t at = starts[0]; at < starts[3]; ++at) {
        const auto left = files.after_kill(end);
        Payload(*left, 1).flip(at);
        const std::string message = message_of(*left);
        REQUIRE(contains(message, "is damaged at byte"));
        REQUIRE(contains(message, "backup"));
        base::NullLog log;
        if (at % 50 == 0) REQUIRE_THROWS_AS(Journal(*left, options(home, 2), log), base::FormatError);
    }
}

TEST_CASE("damage to records not known to be synced ends the journal there", "[storage]") {
    CrashFileSystem files;
    write_frames(files, 5, 3);
    const auto starts = Payload(files, 1).frames();
    Payload(files, 1).flip(starts[3] + 40);
    JournalSummary summary;
    CHECK(read_all(files, home, &summary) == reports(0, 9));
    CHECK(summary.cut_bytes == starts[5] - starts[3]);
    CHECK(summary.cut_records == 6); // those of the damaged frame and of the whole one after it
}

TEST_CASE("losing records that a later incarnation built on is a damaged middle", "[storage]") {
    CrashFileSystem files;
    write_frames(files, 4, 0);
    write_frames(files, 1, 0, 2);
    REQUIRE(read_all(files, home).size() == 15);
    const std::size_t end = files.operations();
    const auto starts = Payload(files, 1).frames();
    for (std::uint64_t at = starts[0]; at < starts[4]; at += 13) {
        const auto left = files.after_kill(end);
        Payload(*left, 1).flip(at);
        REQUIRE(contains(message_of(*left), "is damaged at byte"));
    }
    const auto left = files.after_kill(end);
    left->remove(segment_path(home, 1));
    CHECK(contains(message_of(*left), "is missing"));
}

TEST_CASE("a missing segment in the middle of an incarnation is noticed", "[storage]") {
    CrashFileSystem files;
    base::NullLog log;
    {
        Journal journal(files, options(home), log);
        for (std::uint64_t i = 0; i < 600; ++i) {
            journal.append(reports(i, 1));
            if (i % 50 == 0) journal.sync();
        }
    }
    REQUIRE(list_segments(files, home).size() > 3);
    files.remove(segment_path(home, 2));
    CHECK(contains(message_of(files), "'" + segment_path(home, 2) + "' is missing"));
    files.remove(segment_path(home, 1));
    CHECK(contains(message_of(files), "'" + segment_path(home, 2) + "' is missing"));
}

namespace {

/// Appends until segment `newest` is half full, and waits for the next one, which is empty then.
std::uint64_t fill_half(CrashFileSystem& files, Journal& journal, std::uint32_t newest, std::uint64_t number) {
    Payload payload(files, newest);
    const std::uint64_t half = (segment_header_bytes + payload.header().payload_bytes) / 2;
    while (payload.frames().back() < half) journal.append(reports(number++, 1));
    for (int i = 0; i < 2; ++i) journal.append(reports(number++, 1)); // passing the half asks for the next segment
    while (list_segments(files, home).size() == newest) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return number;
}

/// Two segments with records and an empty third one, published ahead, whose header says that some records of the second
/// were synced.
void write_until_a_third_segment(CrashFileSystem& files) {
    base::NullLog log;
    Journal journal(files, options(home), log);
    std::uint64_t number = fill_half(files, journal, 1, 0);
    Payload second(files, 2);
    while (second.frames().size() < 3) journal.append(reports(number++, 1));
    journal.sync();
    fill_half(files, journal, 2, number);
}

} // namespace

TEST_CASE("a segment that is missing before one that was published ahead is noticed", "[storage]") {
    CrashFileSystem files;
    write_until_a_third_segment(files);
    REQUIRE(Payload(files, 3).frames().size() == 1);
    set_in_header(files, 3, 64, std::uint64_t{0}); // no evidence that records of the second segment were synced
    const std::uint64_t all = read_all(files, home).size();
    const auto left = files.after_kill(files.operations());
    left->remove(segment_path(home, 2));
    CHECK(contains(message_of(*left), "'" + segment_path(home, 2) + "' is missing"));
    base::NullLog log;
    CHECK_THROWS_AS(Journal(*left, options(home, 2), log), base::FormatError);
    CHECK(read_all(files, home).size() == all);
}

TEST_CASE("records that a segment published ahead knows to be synced cannot be missing silently", "[storage]") {
    CrashFileSystem files;
    write_until_a_third_segment(files);
    REQUIRE(Payload(files, 3).frames().size() == 1);
    set_in_header(files, 3, 528, std::uint32_t{0}); // as journal format 2.0 wrote it
    const std::uint64_t all = read_all(files, home).size();
    const auto left = files.after_kill(files.operations());
    left->remove(segment_path(home, 2));
    CHECK(contains(message_of(*left), "'" + segment_path(home, 2) + "' is missing"));
    CHECK(read_all(files, home).size() == all);
}

TEST_CASE("a segment that was too small for a frame may be missing", "[storage]") {
    CrashFileSystem files;
    base::NullLog log;
    {
        Journal journal(files, options(home), log);
        fill_half(files, journal, 1, 0);
        journal.append({snapshot(100'000)}); // the second segment is removed, the third takes this frame
    }
    REQUIRE(list_segments(files, home) == std::vector<std::uint32_t>{1, 3});
    const std::uint64_t all = read_all(files, home).size();
    // Killed before the large frame was written.
    auto left = files.after_kill(files.operations());
    Payload third(*left, 3);
    third.write(segment_header_bytes, std::vector<std::byte>(third.frames().back() - segment_header_bytes));
    CHECK(read_all(*left, home).size() == all - 1);
}

TEST_CASE("a segment shorter than its header says is damaged, not an unfinished end", "[storage]") {
    CrashFileSystem files;
    write_frames(files, 5, 0); // no evidence that these records were synced
    const std::size_t end = files.operations();
    const Payload payload(files, 1);
    const std::uint64_t all = payload.header().payload_offset + payload.header().payload_bytes;
    const auto cut_to = [&](std::uint64_t size) {
        auto left = files.after_kill(end);
        left->open(segment_path(home, 1), FileSystem::Open::read_write)->truncate(size);
        return left;
    };
    for (const std::uint64_t size : {all - 1, all / 2, payload.header().payload_offset + segment_header_bytes + 100}) {
        const auto left = cut_to(size);
        const std::string message = message_of(*left);
        CHECK(contains(message, "is cut short: " + std::to_string(size) + " of " + std::to_string(all)));
        CHECK(contains(message, "from a backup"));
        base::NullLog log;
        CHECK_THROWS_AS(Journal(*left, options(home, 2), log), base::FormatError);
    }
    CHECK(read_all(*cut_to(all), home).size() == 15);
    CHECK(contains(message_of(*cut_to(1000)), "no valid journal header"));
}

TEST_CASE("a damaged header page is refused", "[storage]") {
    CrashFileSystem files;
    write_frames(files, 2, 0);
    const std::size_t end = files.operations();
    for (std::uint64_t at = 0; at < segment_header_bytes; at += 61) {
        const auto left = files.after_kill(end);
        Payload(*left, 1).flip(at);
        REQUIRE(contains(message_of(*left), "no valid journal header"));
        REQUIRE(contains(message_of(*left), "and --fresh"));
    }
}

TEST_CASE("a segment that claims to follow itself is refused, not walked for ever", "[storage]") {
    CrashFileSystem files;
    write_frames(files, 2, 0);
    constexpr std::uint64_t at_cut_segment = 48;
    set_in_header(files, 1, at_cut_segment, std::uint32_t{1});
    CHECK(contains(message_of(files), "is missing"));
}

TEST_CASE("a payload size beyond the largest possible file makes a header invalid", "[storage]") {
    CrashFileSystem files;
    write_frames(files, 2, 0);
    constexpr std::uint64_t at_payload_bytes = 32;
    set_in_header(files, 1, at_payload_bytes, std::numeric_limits<std::uint64_t>::max() - 100);
    CHECK(contains(message_of(files), "no valid journal header"));
}

TEST_CASE("a newer format is refused by name, a newer minor version is read", "[storage]") {
    CrashFileSystem files;
    write_frames(files, 2, 0);
    const std::size_t end = files.operations();
    const auto newer = files.after_kill(end);
    set_in_header<std::uint16_t>(*newer, 1, 8, journal_major + 1);
    CHECK(contains(message_of(*newer), "newer ranktune (journal format 3"));
    const auto codec = files.after_kill(end);
    set_in_header<std::uint16_t>(*codec, 1, 12, 9);
    CHECK(contains(message_of(*codec), "records 9"));

    // The header's checksum seeds those of the frames, so the journal is written with this header from the start.
    SegmentHeader header;
    header.segment = 3;
    auto page = encode_segment_header(header);
    page[10] = std::byte{7};
    const std::uint32_t crc = base::crc32c(std::span(page).first(segment_header_bytes - 4));
    std::memcpy(page.data() + segment_header_bytes - 4, &crc, sizeof crc);
    const auto read = decode_segment_header(page, 0);
    REQUIRE(read.has_value());
    CHECK(read->segment == 3);
}

TEST_CASE("frames of another incarnation in the same place are never read", "[storage]") {
    // Two incarnations write the same records to the same segment number at the same place.
    CrashFileSystem one;
    CrashFileSystem other;
    write_frames(one, 4, 0);
    base::NullLog log;
    JournalOptions o = options(home);
    o.first_segment_bytes = 32 * 1024;
    o.writer.pid += 1;
    {
        Journal journal(other, o, log);
        journal.append(reports(0, 3));
        journal.append(reports(3, 3));
    }
    Payload from(one, 1);
    const auto starts = from.frames();
    REQUIRE(Payload(other, 1).frames().size() == 3);
    // As if old disk blocks came back after a loss of power.
    Payload(other, 1).write(starts[2], from.read(starts[2], starts[4] - starts[2]));
    REQUIRE(Payload(other, 1).frames() == starts);
    JournalSummary summary;
    CHECK(read_all(other, home, &summary) == reports(0, 6));
    CHECK(summary.cut_bytes == starts[4] - starts[2]);
}

TEST_CASE("a segment of a copy of the study that diverged does not continue this one", "[storage]") {
    // The same number and sizes of records, with other contents.
    CrashFileSystem one;
    CrashFileSystem other;
    base::NullLog log;
    {
        Journal a(one, options(home), log);
        Journal b(other, options(home), log);
        for (std::uint64_t i = 128; i < 420; ++i) { // more than two segments hold
            a.append(reports(i, 1));
            b.append(reports(i + 1000, 1));
        }
    }
    REQUIRE(list_segments(one, home).size() > 2);
    const std::uint64_t first = Payload(one, 1).frames().size() - 1;
    REQUIRE(Payload(other, 1).frames().size() - 1 == first);
    const auto file = other.open(segment_path(home, 2), FileSystem::Open::read);
    std::vector<std::byte> bytes(file->size());
    file->read_at(0, bytes);
    one.remove(segment_path(home, 2));
    one.publish(segment_path(home, 2), bytes);
    JournalSummary summary;
    CHECK(read_all(one, home, &summary) == reports(128, first));
    CHECK(summary.cut_bytes > 0);
}

TEST_CASE("segments that were renamed or come from another study are refused", "[storage]") {
    CrashFileSystem files;
    write_frames(files, 2, 0);
    write_frames(files, 2, 0, 2);
    const std::size_t end = files.operations();
    const auto swapped = files.after_kill(end);
    swapped->rename(segment_path(home, 1), segment_path(home, 2));
    CHECK(contains(message_of(*swapped), "under another number"));

    CrashFileSystem foreign;
    JournalOptions o = options(home);
    o.uuid = "another";
    base::NullLog log;
    { Journal(foreign, o, log).append(reports(0, 2)); }
    CHECK_THROWS_AS(Journal(foreign, options(home, 2), log), base::UsageError);
}

TEST_CASE("reading without a journal is an error", "[storage]") {
    CrashFileSystem files;
    CHECK_FALSE(has_journal(files, home));
    CHECK_THROWS_AS(read_all(files, home), base::UsageError);
    files.make_directories(home + "/journal");
    files.publish(home + "/journal/notes.txt", {});
    files.publish(home + "/journal/1-1-host-1.tmp", {});
    CHECK_FALSE(has_journal(files, home));
}

} // namespace ranktune::storage::journal_damage_test
