// SPDX-License-Identifier: Apache-2.0
#include "storage/journal/journal_walk.hpp"

#include <algorithm>
#include <limits>

#include "ranktune/base/error.hpp"
#include "storage/journal/journal.hpp"

namespace ranktune::storage {
namespace {

/// A segment of the chain, and its end if a later segment declares one.
struct Planned {
    std::unique_ptr<SegmentView> view;
    std::optional<JournalPosition> end;
};

[[noreturn]] void damaged(const SegmentView& view, std::uint64_t at, std::uint64_t record, const std::string& why) {
    throw base::FormatError("'" + view.path() + "' is damaged at byte " +
                            std::to_string(view.header().payload_offset + at) + ", record " + std::to_string(record) +
                            ": " + why + ". This is not the unfinished end of a crashed run. " + restore_advice);
}

[[noreturn]] void missing(const std::string& path) {
    throw base::FormatError("'" + path + "' is missing, but records of it are needed. " + restore_advice);
}

/// Goes backwards from the newest segment: each header names its predecessor and, after a takeover or a move, its end.
std::vector<Planned> plan(FileSystem& files, const std::string& directory, const std::vector<std::uint32_t>& numbers) {
    std::vector<Planned> planned;
    std::optional<JournalPosition> end;
    auto at = numbers.rbegin();
    while (true) {
        planned.push_back({std::make_unique<SegmentView>(files, directory, *at), end});
        const SegmentHeader& header = planned.back().view->header();
        end.reset();
        if (header.after != 0) {
            at = std::find(at, numbers.rend(), header.after);
            if (at == numbers.rend()) missing(segment_path(directory, header.after));
        } else if (header.ahead) {
            if (++at == numbers.rend()) {
                throw base::FormatError("'" + planned.back().view->path() + "' continues a segment that is missing. " +
                                        restore_advice);
            }
        } else {
            if (header.cut.segment == 0) break;
            // Search strictly before it: a header that names its own segment would loop for ever.
            at = std::find(std::next(at), numbers.rend(), header.cut.segment);
            if (at == numbers.rend()) {
                missing(segment_path(directory, header.cut.segment));
            }
            end = header.cut;
        }
    }
    std::reverse(planned.begin(), planned.end());
    for (const Planned& segment : planned) {
        if (segment.view->header().uuid != planned.back().view->header().uuid) {
            throw base::FormatError("'" + segment.view->path() +
                                    "' belongs to another study: journal files were copied over each other");
        }
    }
    return planned;
}

class Walker {
  public:
    Walker(std::vector<Planned> planned, std::uint32_t files, std::string directory,
           const std::function<void(const FrameView&)>& visit)
        : planned_(std::move(planned)), files_(files), directory_(std::move(directory)), visit_(visit) {
        // `cut` of a segment published ahead says what was synced at that time.
        for (const Planned& segment : planned_)
            if (segment.view->header().ahead)
                synced_below_ = std::max(synced_below_, segment.view->header().cut.sequence);
        enter(0);
    }

    /// Moves to the start of the walk: see walk_journal_from.
    void begin_at(std::uint64_t at_most, const std::function<bool(const FrameView&)>& begins) {
        for (std::size_t i = planned_.size() - 1; i > 0; --i) { // otherwise begin at record 0
            const SegmentHeader& header = planned_[i].view->header();
            const auto frame = first_frame(i, header.cut.sequence);
            if (!frame || frame->header.first_sequence > at_most || frame->header.first_sequence == 0) continue;
            const bool is_next = header.ahead || (frame->header.first_sequence == header.cut.sequence &&
                                                  frame->header.previous == header.cut.chain);
            if (!is_next || !begins(*frame)) continue;
            enter(i);
            begin_ = position_.sequence = frame->header.first_sequence;
            position_.chain = frame->header.previous;
            // A new head syncs all earlier records before it publishes `cut`.
            if (!header.ahead) synced_below_ = std::max(synced_below_, header.cut.sequence);
            return;
        }
    }

    /// Moves to the end of an earlier walk. False: the segment in which it ended is missing.
    [[nodiscard]] bool go_on(const JournalPosition& end, std::uint64_t synced_below) {
        const auto in_it = [&](const Planned& segment) { return segment.view->header().segment == end.segment; };
        const auto found = std::ranges::find_if(planned_, in_it);
        if (found == planned_.end()) return false;
        enter(static_cast<std::size_t>(found - planned_.begin()));
        position_ = end;
        begin_ = end.sequence;
        synced_below_ = std::max(synced_below_, synced_below);
        return true;
    }

    /// Throws when the file at the position has lost what was read of it.
    void require_what_was_read() const {
        const SegmentView& view = *planned_[current_].view;
        if (view.payload_size() < position_.bytes)
            damaged(view, view.payload_size(), position_.sequence, "it was longer before: records of it are gone");
    }

    [[nodiscard]] const std::string& uuid() const { return planned_.back().view->header().uuid; }
    [[nodiscard]] std::uint32_t newest_start() const { return planned_.back().view->header().incarnation; }
    /// Whether a later segment says that its valid records end before the position.
    [[nodiscard]] bool is_cut_before_position() const {
        const auto& end = planned_[current_].end;
        return end && end->sequence < position_.sequence;
    }

    WalkResult walk() {
        advance();
        // A live writer may have been in the middle of a write: read again before judging.
        while (true) {
            const SegmentView::Rest behind = rest();
            if (synced_below_ <= position_.sequence) {
                WalkResult result;
                result.newest = planned_.back().view->header();
                result.end = position_;
                result.cut_bytes = behind.bytes;
                result.cut_records = std::max(behind.end, position_.sequence) - position_.sequence;
                result.segments = files_;
                result.begin = begin_;
                result.synced_below = synced_below_;
                return result;
            }
            const std::uint64_t before = position_.sequence;
            advance();
            if (position_.sequence == before) {
                refuse_gap();
                damaged(*planned_[current_].view, position_.bytes, position_.sequence,
                        "a frame is not valid, although records behind it were written after it was safely on disk");
            }
        }
    }

  private:
    void enter(std::size_t index) {
        planned_[current_].view->release();
        current_ = index;
        position_.segment = planned_[index].view->header().segment;
        position_.bytes = segment_header_bytes;
    }

    [[nodiscard]] std::optional<FrameView> first_frame(std::size_t index, std::uint64_t near) {
        const std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
        return planned_[index].view->frame_at(segment_header_bytes,
                                              planned_[index].end ? planned_[index].end->bytes : all, near);
    }

    [[nodiscard]] bool continues(const FrameView& frame) const {
        return frame.header.first_sequence == position_.sequence && frame.header.previous == position_.chain;
    }

    /// Reads from the present position while frames continue each other.
    void advance() {
        for (const Planned& segment : planned_) segment.view->forget();
        while (true) {
            read_segment();
            const Planned& segment = planned_[current_];
            if (segment.end) {
                if (position_ != *segment.end) {
                    damaged(*segment.view, position_.bytes, position_.sequence,
                            "it ends before the place where the next head went on");
                }
                enter(current_ + 1); // a segment with a known end has a successor
            } else if (!enter_continuation()) {
                if (sealed_later()) {
                    refuse_gap();
                    damaged(*segment.view, position_.bytes, position_.sequence,
                            "the head that took over had read further");
                }
                return;
            }
        }
    }

    void read_segment() {
        SegmentView& view = *planned_[current_].view;
        const std::uint64_t limit =
            planned_[current_].end ? planned_[current_].end->bytes : view.header().payload_bytes;
        while (const auto frame = view.frame_at(position_.bytes, limit, position_.sequence)) {
            if (!continues(*frame)) return;
            synced_below_ = std::max(synced_below_, frame->header.synced_below());
            position_.chain = frame->header.crc;
            position_.bytes += frame->size;
            position_.sequence += frame->header.count;
            if (visit_) visit_(*frame);
        }
    }

    /// Enters the segment whose first frame follows. Segments in between were published ahead and never used.
    bool enter_continuation() {
        for (std::size_t next = current_ + 1; next < planned_.size() && planned_[next].view->header().ahead; ++next) {
            const auto frame = first_frame(next, position_.sequence);
            if (frame && continues(*frame)) {
                enter(next);
                return true;
            }
        }
        return false;
    }

    /// Throws when the segment at the position is complete and the next number is missing: the lost records were in
    /// that file. (A number may also be missing because its segment was too small for a frame and was removed unused.)
    void refuse_gap() {
        if (current_ + 1 == planned_.size()) return;
        const std::uint32_t next = position_.segment + 1;
        if (planned_[current_ + 1].view->header().segment == next) return;
        if (planned_[current_].view->scan(position_.bytes, position_.sequence).bytes == 0)
            missing(segment_path(directory_, next));
    }

    /// True when another head took over after the position: then an unfinished end cannot be the reason.
    [[nodiscard]] bool sealed_later() const {
        return std::any_of(planned_.begin() + static_cast<std::ptrdiff_t>(current_), planned_.end(),
                           [](const Planned& segment) { return segment.end.has_value(); });
    }

    /// Scans everything after the position for frames that prove a loss. Returns what it found.
    SegmentView::Rest rest() {
        SegmentView::Rest all;
        for (std::size_t i = current_; i < planned_.size(); ++i) {
            const auto found =
                planned_[i].view->scan(i == current_ ? position_.bytes : segment_header_bytes, position_.sequence);
            all.bytes += found.bytes;
            all.end = std::max(all.end, found.end);
            synced_below_ = std::max(synced_below_, found.synced_below);
        }
        return all;
    }

    std::vector<Planned> planned_;
    std::uint32_t files_; ///< existing segments, unused ones included
    std::string directory_;
    const std::function<void(const FrameView&)>& visit_;
    std::size_t current_ = 0;
    JournalPosition position_;
    std::uint64_t begin_ = 0;
    std::uint64_t synced_below_ = 0;
};

Walker walker_of(FileSystem& files, const std::string& study_directory,
                 const std::function<void(const FrameView&)>& visit) {
    for (int attempt = 0;; ++attempt) {
        const auto numbers = list_segments(files, study_directory);
        if (numbers.empty()) throw base::UsageError("there is no journal in '" + study_directory + "'");
        try {
            return {plan(files, study_directory, numbers), static_cast<std::uint32_t>(numbers.size()), study_directory,
                    visit};
        } catch (const base::IoError& error) {
            // A head that ends removes the unused segment that it had published ahead.
            if (error.code() != std::errc::no_such_file_or_directory || attempt == 3) throw;
        }
    }
}

} // namespace

std::uint32_t newest_start(FileSystem& files, const std::string& directory) {
    const std::function<void(const FrameView&)> nobody;
    return walker_of(files, directory, nobody).newest_start();
}

WalkResult walk_journal(FileSystem& files, const std::string& study_directory,
                        const std::function<void(const FrameView&)>& visit) {
    return walker_of(files, study_directory, visit).walk();
}

WalkResult walk_journal_from(FileSystem& files, const std::string& study_directory, std::uint64_t at_most,
                             const std::function<bool(const FrameView&)>& begins,
                             const std::function<void(const FrameView&)>& visit) {
    Walker walker = walker_of(files, study_directory, visit);
    walker.begin_at(at_most, begins);
    return walker.walk();
}

WalkResult walk_journal_behind(FileSystem& files, const std::string& study_directory, const JournalPosition& end,
                               std::uint64_t synced_below) {
    const std::function<void(const FrameView&)> nobody;
    Walker walker = walker_of(files, study_directory, nobody);
    return walker.go_on(end, synced_below) ? walker.walk() : walk_journal(files, study_directory, nobody);
}

std::optional<WalkResult> walk_journal_on(FileSystem& files, const std::string& study_directory,
                                          const std::string& uuid, const JournalPosition& end,
                                          std::uint64_t synced_below,
                                          const std::function<void(const FrameView&)>& visit) {
    Walker walker = walker_of(files, study_directory, visit);
    if (walker.uuid() != uuid || !walker.go_on(end, synced_below) || walker.is_cut_before_position())
        return std::nullopt;
    walker.require_what_was_read();
    return walker.walk();
}

} // namespace ranktune::storage
