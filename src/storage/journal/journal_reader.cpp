// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>

#include "ranktune/base/error.hpp"
#include "ranktune/study/codec.hpp"
#include "storage/journal/journal.hpp"
#include "storage/journal/journal_follower.hpp"
#include "storage/journal/journal_walk.hpp"

namespace ranktune::storage {

namespace {

[[noreturn]] void too_long() { throw base::FormatError("a frame of the journal holds more than its records"); }

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
    summary.end = walk.end;
    summary.synced_below = walk.synced_below;
    return summary;
}

/// A record kind's index in the variant is its number on disk.
template <class T, std::size_t Kind = 0>
constexpr std::size_t kind_of() {
    if constexpr (std::is_same_v<std::variant_alternative_t<Kind, study::Record>, T>)
        return Kind;
    else
        return kind_of<T, Kind + 1>();
}

/// Calls `visit(kind, record)` with the bytes of each record of a frame.
template <class Visit>
void split(const FrameView& frame, Visit visit) {
    study::Decoder in(frame.records);
    for (std::uint32_t i = 0; i < frame.header.count; ++i) {
        const std::size_t begin = frame.records.size() - in.left();
        const auto fields = in.bytes();
        if (fields.empty()) throw base::FormatError("a record of the journal is empty");
        visit(static_cast<std::size_t>(fields[0]),
              frame.records.subspan(begin, frame.records.size() - in.left() - begin));
    }
    if (!in.empty()) too_long();
}

study::Record decoded(std::span<const std::byte> record) {
    study::Decoder in(record);
    return study::decode_record(in);
}

/// Whether a reader may begin at this frame. A malformed frame is not an error here: it may turn out not to be valid.
bool has_snapshot(const FrameView& frame) {
    bool found = false;
    try {
        split(frame, [&](std::size_t kind, auto) { found |= kind == kind_of<study::Snapshot>(); });
    } catch (const base::FormatError&) {
        return false;
    }
    return found;
}

/// The newest snapshot in the frame; `end` is set to where its bytes end.
std::optional<study::Snapshot> snapshot_in(const FrameView& frame, std::size_t& end) {
    std::optional<study::Snapshot> newest;
    split(frame, [&](std::size_t kind, std::span<const std::byte> record) {
        if (kind != kind_of<study::Snapshot>()) return;
        newest = std::get<study::Snapshot>(decoded(record));
        end = static_cast<std::size_t>(record.data() + record.size() - frame.records.data());
    });
    return newest;
}

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
                            const VisitNumbered& visit) {
    return summary_of(walk_journal(files, directory, [&](const FrameView& frame) {
        std::uint64_t sequence = frame.header.first_sequence;
        if (sequence >= limit) return;
        split(frame, [&](std::size_t kind, std::span<const std::byte> record) {
            const std::uint64_t number = sequence++;
            if (number < limit && kind != kind_of<study::Snapshot>()) visit(decoded(record), number);
        });
    }));
}

JournalTail read_journal_tail(FileSystem& files, const std::string& directory, Check check) {
    JournalTail tail;
    const auto collect = [&](const FrameView& frame) {
        std::size_t kept_from = 0;
        if (auto snapshot = snapshot_in(frame, kept_from)) {
            tail.snapshot = std::move(snapshot);
            tail.records.clear();
        }
        const auto kept = frame.records.subspan(kept_from);
        tail.records.insert(tail.records.end(), kept.begin(), kept.end());
    };
    // 0: the walk begins at record 0.
    std::uint64_t at_most = check == Check::everything ? 0 : std::numeric_limits<std::uint64_t>::max();
    while (true) {
        const WalkResult walk = walk_journal_from(files, directory, at_most, has_snapshot, collect);
        tail.summary = summary_of(walk);
        const bool can_begin_there = walk.begin == 0 || tail.snapshot;
        if (can_begin_there && walk.begin <= walk.synced_below) return tail;
        at_most = can_begin_there ? walk.synced_below : 0;
        tail = {};
    }
}

Followed JournalFollower::look(const VisitNumbered& visit) {
    std::vector<std::pair<study::Record, std::uint64_t>>
        records; // visited only when the walk is good: a reader cannot take a record back
    std::optional<WalkResult> walk;
    try {
        walk =
            walk_journal_on(files_, directory_, read_.uuid, read_.end, read_.synced_below, [&](const FrameView& frame) {
                std::uint64_t number = frame.header.first_sequence;
                split(frame, [&](std::size_t kind, std::span<const std::byte> record) {
                    if (kind != kind_of<study::Snapshot>()) records.emplace_back(decoded(record), number);
                    ++number;
                });
            });
    } catch (const base::FormatError&) {
        if (++failures_ >= patience) throw;
        return Followed::nothing;
    } catch (const base::UsageError&) { // there is no journal: the directory was renamed or removed
        return Followed::rebuild;
    }
    failures_ = 0;
    if (!walk) return Followed::rebuild;
    const bool grown = walk->end.sequence != read_.records;
    read_ = summary_of(*walk);
    for (auto& [record, number] : records) visit(std::move(record), number);
    return grown ? Followed::grown : Followed::nothing;
}

bool has_journal(const FileSystem& files, const std::string& directory) {
    return !list_segments(files, directory).empty();
}

} // namespace ranktune::storage
