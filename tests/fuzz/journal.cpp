// SPDX-License-Identifier: Apache-2.0
// Random bytes would never pass the checksums of a journal. So the fuzzer's bytes are instructions that build valid
// segments with chosen faults in headers, chains and frames, and damage single bytes at the end.
#include <map>
#include <string>
#include <vector>

#include "fuzz/input.hpp"
#include "fuzz/targets.hpp"
#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"
#include "storage/journal/journal.hpp"
#include "storage/journal/segment.hpp"

namespace ranktune::fuzz {
namespace {

using Bytes = std::vector<std::byte>;
const std::string home = "/s";

[[noreturn]] void refuse(const std::string& path) {
    throw base::IoError("cannot do this to", path, std::make_error_code(std::errc::read_only_file_system));
}

class MemoryFile final : public storage::File {
  public:
    explicit MemoryFile(const Bytes& bytes) : bytes_(bytes) {}
    std::size_t read_at(std::uint64_t offset, std::span<std::byte> into) override {
        if (offset >= bytes_.size()) return 0;
        const std::size_t count = std::min<std::size_t>(into.size(), bytes_.size() - offset);
        std::memcpy(into.data(), bytes_.data() + offset, count);
        return count;
    }
    [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
    [[nodiscard]] storage::FileIdentity identity() const override { return {}; }
    void write_at(std::uint64_t, std::span<const std::byte>) override { refuse(""); }
    void sync() override { refuse(""); }
    bool reserve(std::uint64_t) override { refuse(""); }
    void truncate(std::uint64_t) override { refuse(""); }

  private:
    const Bytes& bytes_;
};

/// The files of one directory, read-only.
class MemoryFiles final : public storage::FileSystem {
  public:
    std::map<std::string, Bytes> files;

    [[nodiscard]] std::unique_ptr<storage::File> open(const std::string& path, Open) override {
        const auto found = files.find(path);
        if (found == files.end())
            throw base::IoError("cannot open", path, std::make_error_code(std::errc::no_such_file_or_directory));
        return std::make_unique<MemoryFile>(found->second);
    }
    [[nodiscard]] bool exists(const std::string& path) const override { return files.contains(path); }
    [[nodiscard]] Kind kind(const std::string& path) const override {
        return exists(path) ? Kind::file : Kind::missing;
    }
    [[nodiscard]] std::optional<storage::FileIdentity> identity(const std::string&) const override { return {}; }
    [[nodiscard]] std::vector<std::string> list(const std::string& path) const override {
        std::vector<std::string> names;
        for (const auto& [name, bytes] : files)
            if (name.starts_with(path + "/")) names.push_back(name.substr(path.size() + 1));
        return names;
    }
    void make_directories(const std::string& path) override { refuse(path); }
    bool link(const std::string&, const std::string& to) override { refuse(to); }
    void rename(const std::string&, const std::string& to) override { refuse(to); }
    void remove(const std::string& path) override { refuse(path); }
    void sync_directory(const std::string& path) override { refuse(path); }
    void set_read_only(const std::string& path) override { refuse(path); }
};

/// State of the journal that is being built.
struct Maker {
    storage::JournalPosition at;
    std::uint32_t segment_crc = 0;
    bool forged = false; ///< has frames or cuts that no crash of a writer could leave
};

Bytes records_of(Input& in, std::uint8_t how, std::uint32_t& count) {
    Bytes bytes;
    count = 1;
    switch (how % 6) {
        case 0:
            study::encode(study::StudyCreated{"u", "first", 1, "v"}, bytes);
            break;
        case 1:
            study::encode(study::Snapshot{7, "state", "spec"}, bytes);
            break;
        case 2:
            study::encode(study::StudyChanged{{}, "second", 2, "v"}, bytes);
            break;
        case 3:
            count = in.u8() % 4;
            for (std::uint32_t i = 0; i < count; ++i) study::encode(study::DeadlineSet{}, bytes);
            break;
        default: {
            const auto raw = in.take(in.u8());
            bytes.assign(raw.begin(), raw.end());
            if (how % 6 == 5) { // one record of these bytes
                Bytes framed;
                study::Encoder(framed).bytes(bytes);
                bytes = framed;
            }
        }
    }
    return bytes;
}

void add_frame(Input& in, Maker& maker, Bytes& payload) {
    const std::uint8_t faults = in.u8();
    storage::FrameHeader header;
    constexpr std::uint8_t other_place = 1U | 2U | 8U | 64U;
    maker.forged |= (faults & other_place) != 0;
    const Bytes records = records_of(in, in.u8(), header.count);
    header.previous = (faults & 1U) != 0 ? in.number<std::uint32_t>() : maker.at.chain;
    header.first_sequence = (faults & 2U) != 0 ? maker.at.sequence + in.u8() : maker.at.sequence;
    header.unsynced = (faults & 4U) != 0 ? in.u8() : header.first_sequence;
    if ((faults & 8U) != 0) header.count = in.number<std::uint16_t>();
    header.bytes = static_cast<std::uint32_t>(records.size());
    Bytes frame(storage::frame_size(header.bytes));
    std::copy(records.begin(), records.end(), frame.begin() + static_cast<std::ptrdiff_t>(storage::frame_header_bytes));
    storage::seal_frame(frame, header, maker.segment_crc);
    payload.insert(payload.end(), frame.begin(), frame.end());
    if ((faults & 32U) != 0) payload.resize(payload.size() + in.u8() * storage::frame_alignment);
    if ((faults & 64U) != 0) return; // the next frame is chained as if this one did not exist
    maker.at.chain = header.crc;
    maker.at.sequence = header.first_sequence + header.count;
    maker.at.bytes = storage::segment_header_bytes + payload.size();
}

Bytes segment(Input& in, Maker& maker, std::uint32_t number) {
    const std::uint8_t faults = in.u8();
    constexpr std::uint8_t other_cut = 1U | 8U | 16U | 32U;
    maker.forged |= (faults & other_cut) != 0;
    storage::SegmentHeader header;
    header.segment = (faults & 1U) != 0 ? in.u8() : number;
    header.incarnation = number;
    header.uuid = (faults & 2U) != 0 ? "other" : "study";
    header.ahead = (faults & 4U) != 0;
    header.cut = maker.at;
    if ((faults & 8U) != 0) header.cut.sequence += in.u8();
    if ((faults & 16U) != 0) header.cut.bytes = in.number<std::uint16_t>();
    if ((faults & 32U) != 0) header.cut.segment = in.u8() % 5;
    header.payload_offset = (faults & 64U) != 0 ? storage::segment_header_bytes : 0;
    const std::uint64_t frames = in.u8() % 8;
    constexpr std::uint64_t room = 4096;
    header.payload_bytes = storage::segment_header_bytes + room;
    if ((faults & 128U) != 0) header.payload_bytes = in.number<std::uint64_t>();
    Bytes file(header.payload_offset);
    const Bytes page = storage::encode_segment_header(header);
    file.insert(file.end(), page.begin(), page.end());
    maker.segment_crc = header.crc;
    maker.at.segment = number;
    maker.at.bytes = storage::segment_header_bytes;
    Bytes payload;
    for (std::uint64_t i = 0; i < frames && payload.size() < room; ++i) add_frame(in, maker, payload);
    payload.resize(room);
    file.insert(file.end(), payload.begin(), payload.end());
    return file;
}

MemoryFiles made_from(Input in, bool& forged) {
    MemoryFiles made;
    const std::uint8_t head = in.u8();
    if (head >= 0xF0) { // use the bytes unchanged
        const auto raw = in.take(in.left());
        made.files[storage::segment_path(home, 1)] = Bytes(raw.begin(), raw.end());
        return made;
    }
    Maker maker;
    const std::uint32_t segments = 1 + head % 4;
    for (std::uint32_t number = 1; number <= segments; ++number)
        made.files[storage::segment_path(home, number)] = segment(in, maker, number);
    forged = maker.forged;
    if ((head & 4U) != 0) made.files.erase(storage::segment_path(home, 1 + in.u8() % segments));
    while (in.left() >= 4 && !made.files.empty()) {
        auto at = made.files.begin();
        std::advance(at, in.u8() % made.files.size());
        const auto place = in.number<std::uint16_t>();
        const auto change = static_cast<std::byte>(in.u8());
        if (change == std::byte{0})
            at->second.resize(std::min<std::size_t>(place, at->second.size()));
        else if (!at->second.empty())
            at->second[place % at->second.size()] ^= change;
    }
    return made;
}

} // namespace

int journal(const std::uint8_t* data, std::size_t size) {
    bool forged = false;
    MemoryFiles files = made_from(Input(data, size), forged);
    std::uint64_t records = 0;
    bool refused = false;
    storage::JournalSummary summary;
    try {
        summary = storage::read_journal(files, home, [&](study::Record&&) { ++records; });
        require(records == summary.records, "a journal has as many records as its summary says");
    } catch (const base::Error&) {
        refused = true;
    }
    storage::JournalTail tail;
    bool resumable = true;
    try {
        tail = storage::read_journal_tail(files, home, storage::Check::everything);
        require(refused || tail.summary.records == summary.records, "both ways of reading end at the same record");
    } catch (const base::Error&) {
        require(refused, "a journal that can be read from the start can be resumed");
        resumable = false;
    }
    try {
        const auto seen = storage::read_journal_tail(files, home, storage::Check::since_snapshot);
        if (resumable && !forged) {
            const std::span<const std::byte> all = tail.records;
            const std::span<const std::byte> part = seen.records;
            require(seen.summary.records == tail.summary.records && seen.snapshot == tail.snapshot &&
                        std::equal(all.begin(), all.end(), part.begin(), part.end()),
                    "a view and a resumed head see the same state");
        }
    } catch (const base::Error&) {
        require(!resumable || forged, "a journal that can be resumed can be viewed");
    }
    return 0;
}

} // namespace ranktune::fuzz
