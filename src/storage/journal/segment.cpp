// SPDX-License-Identifier: Apache-2.0
#include "storage/journal/segment.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/number_in.hpp"
#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/study/codec.hpp"
#include "storage/fields.hpp"

namespace ranktune::storage {
namespace {

constexpr char segment_magic[8] = {'R', 'T', 'J', 'O', 'U', 'R', 'N', 'L'};
constexpr std::uint16_t frame_magic = 0x4652; // "RF" on disk
constexpr std::size_t frame_crc_from = 6;
/// Largest value of the field: so many unsynced records or more, so nothing is known to be synced.
constexpr std::uint64_t too_many = max_frame_records - 1;
constexpr std::size_t crc_at = segment_header_bytes - 4;

/// Offsets of the fields in the header page.
enum At : std::size_t {
    at_magic = 0,
    at_major = 8,
    at_minor = 10,
    at_codec_major = 12,
    at_codec_minor = 14,
    at_segment = 16,
    at_incarnation = 20,
    at_payload_offset = 24,
    at_payload_bytes = 32,
    at_ahead = 40,
    at_restart_count = 44,
    at_cut_segment = 48,
    at_cut_chain = 52,
    at_cut_bytes = 56,
    at_cut_sequence = 64,
    at_pid = 72,
    at_uuid = 80,     // 64 bytes
    at_boot_id = 144, // 64
    at_job = 208,     // 64
    at_host = 272,    // 256
    at_after = 528,
};

/// Three bytes, so that a frame with one report fits into 64 bytes.
void put_24(std::span<std::byte> bytes, std::size_t at, std::uint64_t value) {
    std::memcpy(bytes.data() + at, &value, 3);
}

std::uint32_t get_24(std::span<const std::byte> bytes, std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data() + at, 3);
    return value;
}

void put_text(std::vector<std::byte>& page, std::size_t at, std::size_t room, const std::string& text) {
    std::memcpy(page.data() + at, text.data(), std::min(room - 1, text.size()));
}

std::string get_text(std::span<const std::byte> page, std::size_t at, std::size_t room) {
    const auto* text = reinterpret_cast<const char*>(page.data() + at);
    return {text, ::strnlen(text, room)};
}

} // namespace

std::vector<std::byte> encode_segment_header(SegmentHeader& header) {
    if (header.uuid.size() > 63) throw base::UsageError("the study's uuid is longer than 63 characters");
    std::vector<std::byte> page(segment_header_bytes);
    std::memcpy(page.data() + at_magic, segment_magic, sizeof segment_magic);
    put(page, at_major, journal_major);
    put(page, at_minor, journal_minor);
    put(page, at_codec_major, study::codec_major);
    put(page, at_codec_minor, study::codec_minor);
    put(page, at_segment, header.segment);
    put(page, at_incarnation, header.incarnation);
    put(page, at_payload_offset, header.payload_offset);
    put(page, at_payload_bytes, header.payload_bytes);
    put(page, at_ahead, static_cast<std::uint32_t>(header.ahead ? 1 : 0));
    put(page, at_restart_count, header.restart_count);
    put(page, at_cut_segment, header.cut.segment);
    put(page, at_cut_chain, header.cut.chain);
    put(page, at_cut_bytes, header.cut.bytes);
    put(page, at_cut_sequence, header.cut.sequence);
    put(page, at_pid, header.pid);
    put_text(page, at_uuid, 64, header.uuid);
    put_text(page, at_boot_id, 64, header.boot_id);
    put_text(page, at_job, 64, header.job);
    put_text(page, at_host, 256, header.host);
    put(page, at_after, header.after);
    header.crc = base::crc32c(std::span(page).first(crc_at));
    put(page, crc_at, header.crc);
    return page;
}

std::optional<SegmentHeader> decode_segment_header(std::span<const std::byte> page, std::uint64_t offset) {
    if (page.size() < segment_header_bytes) return {};
    if (std::memcmp(page.data() + at_magic, segment_magic, sizeof segment_magic) != 0) return {};
    SegmentHeader header;
    header.crc = get<std::uint32_t>(page, crc_at);
    if (header.crc != base::crc32c(page.first(crc_at))) return {};
    const auto major = get<std::uint16_t>(page, at_major);
    const auto codec = get<std::uint16_t>(page, at_codec_major);
    if (major != journal_major || codec != study::codec_major) {
        const bool newer = major > journal_major || codec > study::codec_major;
        throw base::FormatError("this journal was written by " + std::string(newer ? "a newer" : "an earlier") +
                                " ranktune (journal format " + std::to_string(major) + ", records " +
                                std::to_string(codec) + "; this program reads " + std::to_string(journal_major) +
                                " and " + std::to_string(study::codec_major) + "): use that version" +
                                (newer ? " or a later one" : ", or begin the study again in a new directory"));
    }
    header.segment = get<std::uint32_t>(page, at_segment);
    header.incarnation = get<std::uint32_t>(page, at_incarnation);
    header.payload_offset = get<std::uint64_t>(page, at_payload_offset);
    header.payload_bytes = get<std::uint64_t>(page, at_payload_bytes);
    header.after = get<std::uint32_t>(page, at_after);
    header.ahead = get<std::uint32_t>(page, at_ahead) != 0;
    header.restart_count = get<std::uint32_t>(page, at_restart_count);
    header.cut.segment = get<std::uint32_t>(page, at_cut_segment);
    header.cut.chain = get<std::uint32_t>(page, at_cut_chain);
    header.cut.bytes = get<std::uint64_t>(page, at_cut_bytes);
    header.cut.sequence = get<std::uint64_t>(page, at_cut_sequence);
    header.pid = get<std::uint64_t>(page, at_pid);
    header.uuid = get_text(page, at_uuid, 64);
    header.boot_id = get_text(page, at_boot_id, 64);
    header.job = get_text(page, at_job, 64);
    header.host = get_text(page, at_host, 256);
    if (header.payload_offset != offset) return {};
    if (header.payload_bytes > std::numeric_limits<std::uint64_t>::max() - offset) return {}; // no file is that large
    return header;
}

SegmentHeader read_segment_header(File& file, const std::string& path) {
    std::vector<std::byte> start(segment_search_bytes + segment_header_bytes);
    const std::span<const std::byte> found(start.data(), file.read_at(0, start));
    for (std::uint64_t at = 0; at + segment_header_bytes <= found.size(); at += segment_header_bytes) {
        if (auto header = decode_segment_header(found.subspan(at, segment_header_bytes), at)) return *header;
    }
    throw base::FormatError("'" + path + "' has no valid journal header: it is damaged, or not a journal segment. " +
                            "Restore it from a backup or a snapshot of the file system; without one, begin again "
                            "with the study file (not the directory) and --fresh");
}

void seal_frame(std::span<std::byte> frame, FrameHeader& header, std::uint32_t segment_crc) {
    put(frame, 0, frame_magic);
    put_24(frame, 6, header.count);
    put_24(frame, 9, std::min(header.unsynced, too_many));
    put(frame, 12, header.bytes);
    put(frame, 16, header.previous);
    put(frame, 20, static_cast<std::uint32_t>(header.first_sequence));
    header.crc = base::crc32c(frame.subspan(frame_crc_from), segment_crc);
    put(frame, 2, header.crc);
}

std::uint64_t sound_frame_size(std::span<const std::byte> head, std::uint64_t room) {
    if (head.size() < frame_header_bytes || room < frame_header_bytes) return 0;
    if (get<std::uint16_t>(head, 0) != frame_magic) return 0;
    const std::uint64_t size = frame_size(get<std::uint32_t>(head, 12));
    return size <= room ? size : 0;
}

std::optional<FrameHeader> decode_frame(std::span<const std::byte> frame, std::uint32_t segment_crc,
                                        std::uint64_t near) {
    FrameHeader header;
    header.crc = get<std::uint32_t>(frame, 2);
    if (header.crc != base::crc32c(frame.subspan(frame_crc_from), segment_crc)) return {};
    header.count = get_24(frame, 6);
    header.unsynced = get_24(frame, 9);
    header.bytes = get<std::uint32_t>(frame, 12);
    header.previous = get<std::uint32_t>(frame, 16);
    const std::uint32_t distance = get<std::uint32_t>(frame, 20) - static_cast<std::uint32_t>(near);
    header.first_sequence = near + static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(distance)});
    if (header.unsynced == too_many) header.unsynced = header.first_sequence;
    if (header.unsynced > header.first_sequence) return {};
    return header;
}

std::string journal_directory(const std::string& study_directory) { return study_directory + "/journal"; }

std::string segment_path(const std::string& study_directory, std::uint32_t segment) {
    std::string number = std::to_string(segment);
    if (number.size() < 6) number.insert(0, 6 - number.size(), '0');
    return journal_directory(study_directory) + "/" + number + ".h5";
}

std::vector<std::uint32_t> list_segments(const FileSystem& files, const std::string& study_directory) {
    std::vector<std::uint32_t> numbers;
    for (const std::string& name : files.list(journal_directory(study_directory))) {
        if (name.size() < 9 || !name.ends_with(".h5")) continue;
        const auto number = base::number_in<std::uint32_t>(std::string_view(name).substr(0, name.size() - 3));
        if (number.value_or(0) != 0) numbers.push_back(*number);
    }
    std::sort(numbers.begin(), numbers.end());
    return numbers;
}

void sync_segments(FileSystem& files, const std::string& study_directory) {
    for (const std::uint32_t number : list_segments(files, study_directory))
        files.open(segment_path(study_directory, number), FileSystem::Open::read)->sync();
    files.sync_directory(journal_directory(study_directory));
}

} // namespace ranktune::storage
