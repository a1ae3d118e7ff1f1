// SPDX-License-Identifier: Apache-2.0
#pragma once
// The journal of a study: records in frames in segments. See docs/developer/durability.md.

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ranktune/base/error.hpp"
#include "ranktune/base/log.hpp"
#include "ranktune/study/codec.hpp"
#include "ranktune/study/record.hpp"
#include "storage/file_system.hpp"
#include "storage/journal/journal_values.hpp"
#include "storage/journal/segment_publisher.hpp"

namespace ranktune::storage {

/// A frame that is not known to be synced; written again, to a new segment, after a failed write or sync.
struct KeptFrame {
    std::uint64_t first_sequence = 0;
    std::uint32_t count = 0;        ///< of records
    std::uint32_t record_bytes = 0; ///< without header and padding
    study::Bytes bytes;             ///< the whole frame, `frame_size(record_bytes)` bytes
};

/// The newest 1024 sync durations in milliseconds.
class CommitTimes {
  public:
    void add(double ms) {
        times_[count_ % times_.size()] = ms;
        ++count_;
    }
    /// Nearest-rank percentile, `share` in [0, 1]; 0 when there are no durations.
    [[nodiscard]] double percentile(double share) const {
        std::vector<double> sorted(times_.begin(), times_.begin() + static_cast<std::ptrdiff_t>(kept()));
        if (sorted.empty()) return 0.0;
        const auto rank = static_cast<std::size_t>(share * static_cast<double>(sorted.size()));
        const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(std::min(rank, sorted.size() - 1));
        std::nth_element(sorted.begin(), at, sorted.end());
        return *at;
    }

  private:
    [[nodiscard]] std::size_t kept() const { return std::min(count_, times_.size()); }

    std::array<double, 1024> times_{};
    std::size_t count_ = 0;
};

/// The single writer of a study's journal. `append` returns when the records are *written*; a background thread makes
/// them *synced* at the latest `commit_interval` later and publishes segments ahead of need. A running sync does not
/// delay `append`.
///
/// Threads: `append` from one thread at a time; the rest from any. The caller of `append` writes (journal.cpp); the
/// journal's own thread does everything that can wait for the disk (journal_thread.cpp). One mutex guards what they
/// share. It is not held during a sync or a publication, except when the journal moves after a failure. A failed write
/// or sync moves the journal to a new segment with everything that was not yet synced; when that fails too, this and
/// every later call throws.
class Journal final : public study::RecordSink {
  public:
    /// Publishes a new segment (the first, or the one after the newest), which seals all earlier ones: their records
    /// are final from then on. Throws base::UsageError when another head published it first, or when the directory
    /// holds another study or a later incarnation; base::FormatError when the journal is damaged.
    Journal(FileSystem& files, JournalOptions options, base::LogSink& log);
    ~Journal() override; ///< closes without sealing or syncing; never throws

    /// Throws base::IoError when the records could not be written: the head must then send nothing that follows from
    /// them. Throws base::UsageError when another head took the study over.
    void append(const std::vector<study::Record>& records) override;
    /// Returns when everything appended so far is synced. Throws as `append`. Not from a `when_synced` callback.
    void sync();
    /// Calls `done` on the journal's thread when everything appended so far is synced (checkpoint deletion, final
    /// results); waits for the next commit and causes none. `done` must not throw, and must not call the journal. Never
    /// called when the journal fails or is destroyed first.
    void when_synced(std::function<void()> done);
    /// Syncs, seals the segment (mode 0444), ends the thread. `append` is an error afterwards. Throws as `append`.
    void close();

    /// Path of the current segment if somebody has removed or moved its file, so that appended records are lost;
    /// otherwise empty. Asks the file system: may block, throws base::IoError.
    [[nodiscard]] std::string displaced() const;

    /// Number of the first record of this incarnation: the count of records from earlier ones.
    [[nodiscard]] std::uint64_t first_record() const { return first_record_; }

    struct Statistics {
        std::uint64_t records = 0; ///< appended by this writer, including snapshots at segment changes
        std::uint64_t bytes = 0;   ///< of their frames
        std::uint64_t synced = 0;  ///< records of all incarnations that are known to be synced
        std::uint64_t syncs = 0;
        std::uint64_t segments = 0; ///< published by this writer
        double commit_p99_ms = 0.0; ///< of the newest 1024 syncs
    };
    [[nodiscard]] Statistics statistics() const;

  private:
    using Clock = std::chrono::steady_clock;
    using Lock = std::unique_lock<std::mutex>;

    // ---- on the caller's thread ----
    [[nodiscard]] JournalPosition take_over();
    [[nodiscard]] JournalPosition find_end();
    void seal_earlier_segments() noexcept;
    void make_room(Lock& lock, std::uint32_t& count);
    void sync(Lock& lock);
    void stop() noexcept;

    // ---- on the journal's thread; the lock is held at entry and at return ----
    void main() noexcept;
    void commit(Lock& lock);
    void publish_ahead(Lock& lock);
    void move_to_new_segment(Lock& lock);
    void run_callbacks(Lock& lock);
    void finish(Lock& lock);

    // ---- on either thread ----
    void seal(const std::string& path) noexcept;

    // ---- on either thread; the lock is held ----
    void write_frame(std::uint32_t count);
    void place(OpenSegment& segment, KeptFrame& frame, std::uint64_t synced_below);
    [[nodiscard]] std::uint64_t largest_usual() const;
    void fail(std::exception_ptr why) noexcept;
    void rethrow() const {
        if (failure_) std::rethrow_exception(failure_);
    }
    [[nodiscard]] bool has_unsynced() const { return !unsynced_.empty(); }
    [[nodiscard]] bool wants_next() const {
        const std::uint64_t room = current_->header.payload_bytes - segment_header_bytes;
        return !next_ && !closing_ && (append_waits_ || current_->room() < room / 2);
    }
    [[nodiscard]] base::UsageError taken(std::uint32_t number) const;

    FileSystem& files_;
    const JournalOptions options_;
    base::LogSink& log_;
    SegmentPublisher publisher_;

    study::Bytes frame_; ///< scratch memory of `append`, on the caller's thread

    mutable std::mutex mutex_;
    std::condition_variable wake_;    ///< wakes the journal's thread
    std::condition_variable changed_; ///< wakes waiting callers
    std::shared_ptr<OpenSegment> current_;
    std::shared_ptr<OpenSegment> next_;                 ///< published ahead, empty
    std::vector<std::shared_ptr<OpenSegment>> retired_; ///< full; still to be synced and sealed
    std::uint64_t first_record_ = 0;                    ///< of this incarnation
    std::uint32_t newest_ = 0;                          ///< number of the newest published segment
    JournalPosition end_;                               ///< after the last frame written
    JournalPosition synced_;                            ///< after the last frame known to be synced
    std::deque<KeptFrame> unsynced_;                    ///< in order
    Clock::time_point oldest_unsynced_;
    Clock::time_point retry_publication_; ///< after a failure: no new attempt before this time
    std::vector<std::pair<std::uint64_t, std::function<void()>>> callbacks_;
    std::uint64_t frame_wanted_ = 0;   ///< size needed by a waiting append
    std::uint64_t snapshot_bytes_ = 0; ///< size of the newest snapshot
    bool append_waits_ = false;
    bool write_failed_ = false; ///< an append waits for move_to_new_segment
    bool sync_now_ = false;
    bool closing_ = false;
    bool stopping_ = false;
    bool finished_ = false;
    std::exception_ptr failure_;
    Statistics statistics_;
    CommitTimes commits_;
    std::thread thread_; // last member: starts when all others are constructed
};

/// Reads all records in order, from record 0, by plain reads (no lock, no mmap): safe while a head writes. Snapshots
/// are visited like any record. A torn tail ends the reading and shows in the summary; a damaged middle throws
/// base::FormatError with advice; so does a newer format. Throws base::UsageError when there is no journal.
JournalSummary read_journal(FileSystem& files, const std::string& directory,
                            const std::function<void(study::Record&&)>& visit);

/// Gets a record and its number: the first of the journal has 0, and snapshots count.
using VisitNumbered = std::function<void(study::Record&&, std::uint64_t number)>;

/// As read_journal, without snapshots (each may be as large as the study's state), for the records below number
/// `limit`.
JournalSummary read_history(FileSystem& files, const std::string& directory, std::uint64_t limit,
                            const VisitNumbered& visit);

/// What a head needs to continue: the newest snapshot and the records after it. Earlier records are not decoded.
struct JournalTail {
    JournalSummary summary;
    std::optional<study::Snapshot> snapshot; ///< none: `records` begin with record 0
    study::Bytes records;                    ///< those after the snapshot, encoded one after the other
};
/// Which frames are read and checked.
enum class Check {
    /// All, as `read_journal` does: for a head that continues the study.
    everything,
    /// For readers that only look: from the newest snapshot before which every record is known to be synced. Misses a
    /// damaged frame before it, but not a missing segment.
    since_snapshot,
};
/// Ends at the same record with either check, and throws as `read_journal` does.
[[nodiscard]] JournalTail read_journal_tail(FileSystem& files, const std::string& directory, Check check);

[[nodiscard]] bool has_journal(const FileSystem& files, const std::string& directory);
/// Number of the newest start that has a segment. Of each segment only the size and the first page are read: throws as
/// `read_journal` where one is missing, cut short or none.
[[nodiscard]] std::uint32_t newest_start(FileSystem& files, const std::string& directory);

} // namespace ranktune::storage
