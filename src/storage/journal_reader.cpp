// SPDX-License-Identifier: Apache-2.0
#include <span>
#include <type_traits>
#include <variant>

#include "ranktune/base/error.hpp"
#include "ranktune/study/codec.hpp"
#include "storage/journal.hpp"
#include "storage/journal_walk.hpp"

namespace ranktune::storage {

namespace {

[[noreturn]] void too_long() { throw base::FormatError("a frame of the journal holds more than its records"); }

[[noreturn]] void empty_record() { throw base::FormatError("a record of the journal is empty"); }

JournalSummary summary_of(const WalkResult& walk) {
    JournalSummary summary;
    summary.uuid = walk.newest.uuid;
    summary.segments = walk.segments;
    summary.incarnation = walk.newest.incarnation;
    summary.writer = {walk.newest.host, walk.newest.boot_id, walk.newest.pid};
    summary.job = walk.newest.job;
    summary.restart_count = walk.newest.restart_count;
    summary.records = walk.end.sequence;
    summary.cut_bytes = walk.cut_bytes;
    summary.cut_records = walk.cut_records;
    return summary;
}

/// The place of a kind in the variant is its number on disk.
template <class T, std::size_t Kind = 0>
constexpr std::size_t kind_of() {
    if constexpr (std::is_same_v<std::variant_alternative_t<Kind, study::Record>, T>)
        return Kind;
    else
        return kind_of<T, Kind + 1>();
}

/// Collects the newest snapshot, the study file before it, and the records behind it.
class TailCollector {
  public:
    explicit TailCollector(JournalTail& tail) : tail_(tail) {}

    void add(std::span<const std::byte> records, std::uint32_t count) {
        study::Decoder in(records);
        const auto at = [&] { return records.size() - in.left(); };
        std::size_t kept_from = 0;
        for (std::uint32_t i = 0; i < count; ++i) {
            const std::size_t begin = at();
            const auto fields = in.bytes();
            if (fields.empty()) empty_record();
            const auto kind = static_cast<std::size_t>(fields[0]);
            const auto decoded = [&] {
                study::Decoder one(records.subspan(begin, at() - begin));
                return study::decode_record(one);
            };
            if (kind == kind_of<study::Snapshot>()) {
                tail_.snapshot = std::get<study::Snapshot>(decoded());
                tail_.records.clear();
                tail_.spec = newest_spec_;
                kept_from = at();
            } else if (kind == kind_of<study::StudyCreated>()) {
                newest_spec_ = std::get<study::StudyCreated>(decoded()).spec;
                if (tail_.spec.empty()) tail_.spec = newest_spec_;
            } else if (kind == kind_of<study::StudyChanged>()) {
                newest_spec_ = std::get<study::StudyChanged>(decoded()).spec;
            }
        }
        if (!in.empty()) too_long();
        tail_.records.append(records.subspan(kept_from));
    }

  private:
    JournalTail& tail_;
    std::string newest_spec_;
};

} // namespace

JournalSummary read_journal(FileSystem& files, const std::string& directory,
                            const std::function<void(study::Record&&)>& visit) {
    return summary_of(walk_journal(files, directory, [&](const FrameView& frame) {
        study::Decoder in(frame.records);
        for (std::uint32_t i = 0; i < frame.header.count; ++i) visit(study::decode_record(in));
        if (!in.empty()) too_long();
    }));
}

JournalSummary read_history(FileSystem& files, const std::string& directory, std::uint64_t limit,
                            const std::function<void(study::Record&&)>& visit) {
    return summary_of(walk_journal(files, directory, [&](const FrameView& frame) {
        if (frame.header.first_sequence >= limit) return;
        study::Decoder in(frame.records);
        for (std::uint32_t i = 0; i < frame.header.count; ++i) {
            const std::size_t begin = frame.records.size() - in.left();
            const auto fields = in.bytes();
            const std::size_t end = frame.records.size() - in.left();
            if (fields.empty()) empty_record();
            const bool wanted = static_cast<std::size_t>(fields[0]) != kind_of<study::Snapshot>();
            if (!wanted || frame.header.first_sequence + i >= limit) continue;
            study::Decoder one(frame.records.subspan(begin, end - begin));
            visit(study::decode_record(one));
        }
        if (!in.empty()) too_long();
    }));
}

JournalTail read_journal_tail(FileSystem& files, const std::string& directory) {
    JournalTail tail;
    TailCollector collector(tail);
    tail.summary = summary_of(walk_journal(
        files, directory, [&](const FrameView& frame) { collector.add(frame.records, frame.header.count); }));
    return tail;
}

bool has_journal(const FileSystem& files, const std::string& directory) {
    return !list_segments(files, directory).empty();
}

} // namespace ranktune::storage
