// SPDX-License-Identifier: Apache-2.0
#pragma once
// Inside of the journal's writer. Two threads: the caller of `append` writes (journal.cpp), the journal's own thread
// does everything that can wait for a disk (journal_thread.cpp). What they share is behind one mutex that is never held
// during a sync or a publication, except when the journal moves after a failure.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "ranktune/base/error.hpp"
#include "ranktune/study/codec.hpp"
#include "storage/checkpoints/commit_times.hpp"
#include "storage/journal/journal.hpp"
#include "storage/journal/segment_publisher.hpp"

namespace ranktune::storage {

/// A frame that is not known to be synced. After a failed write or sync it is written again, to a new segment.
struct KeptFrame {
    std::uint64_t first_sequence = 0;
    std::uint32_t count = 0;        ///< of records
    std::uint32_t record_bytes = 0; ///< without head and padding
    study::Bytes bytes;             ///< the whole frame, `frame_size(record_bytes)` bytes
};

struct Journal::Impl {
    using Clock = std::chrono::steady_clock;
    using Lock = std::unique_lock<std::mutex>;

    Impl(FileSystem& file_system, JournalOptions journal_options, base::LogSink& sink);

    // ---- on the caller's thread ----
    [[nodiscard]] JournalPosition take_over();
    [[nodiscard]] JournalPosition find_end();
    void seal_earlier_segments() noexcept;
    void append(const std::vector<study::Record>& records);
    void make_room(Lock& lock, std::uint32_t& count);
    void sync(Lock& lock);
    void when_synced(std::function<void()> done);
    void close();
    void stop() noexcept;

    // ---- on the journal's thread; each takes the lock held and gives it back held ----
    void main() noexcept;
    void commit(Lock& lock);
    void publish_ahead(Lock& lock);
    void move_to_new_segment(Lock& lock);
    void run_callbacks(Lock& lock);
    void finish(Lock& lock);

    // ---- on either ----
    void seal(const std::string& path) noexcept;

    // ---- on either; the lock is held ----
    void write_frame(std::uint32_t count);
    void place(OpenSegment& segment, KeptFrame& frame, std::uint64_t synced_below);
    [[nodiscard]] std::uint64_t largest_usual() const;
    void fail(std::exception_ptr why) noexcept;
    void rethrow() const {
        if (failure) std::rethrow_exception(failure);
    }
    [[nodiscard]] bool has_unsynced() const { return !unsynced.empty(); }
    [[nodiscard]] bool wants_next() const {
        const std::uint64_t room = current->header.payload_bytes - segment_header_bytes;
        return !next && !closing && (append_waits || current->room() < room / 2);
    }
    [[nodiscard]] base::UsageError taken(std::uint32_t number) const;

    FileSystem& files;
    const JournalOptions options;
    base::LogSink& log;
    SegmentPublisher publisher;

    study::Bytes frame; ///< scratch memory of `append`, on the caller's thread

    mutable std::mutex mutex;
    std::condition_variable wake;    ///< for the journal's thread: there is something to do
    std::condition_variable changed; ///< for callers: something was done
    std::shared_ptr<OpenSegment> current;
    std::shared_ptr<OpenSegment> next;                 ///< published ahead, empty
    std::vector<std::shared_ptr<OpenSegment>> retired; ///< full, to be synced and sealed
    std::uint64_t first_record = 0;                    ///< of this life
    std::uint32_t newest = 0;                          ///< number of the newest published segment
    JournalPosition end;                               ///< behind the last frame written
    JournalPosition synced;                            ///< behind the last frame known to be on the disk
    std::deque<KeptFrame> unsynced;                    ///< in order
    Clock::time_point oldest_unsynced;
    Clock::time_point retry_publication; ///< after a failure: not before
    std::vector<std::pair<std::uint64_t, std::function<void()>>> callbacks;
    std::uint64_t frame_wanted = 0;   ///< by an append that waits
    std::uint64_t snapshot_bytes = 0; ///< of the newest one that joined a segment
    bool append_waits = false;
    bool write_failed = false; ///< an append waits for move_to_new_segment
    bool sync_now = false;
    bool closing = false;
    bool stopping = false;
    bool finished = false;
    std::exception_ptr failure;
    Statistics statistics;
    CommitTimes commits;
    std::thread thread; // last: starts when everything above is there
};

} // namespace ranktune::storage
