// SPDX-License-Identifier: Apache-2.0
#pragma once
// Internals of the journal's writer. Two threads: the caller of `append` writes (journal.cpp); the journal's own thread
// does everything that can wait for the disk (journal_thread.cpp). One mutex guards what they share. It is not held
// during a sync or a publication, except when the journal moves after a failure.

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "ranktune/base/error.hpp"
#include "ranktune/study/codec.hpp"
#include "storage/journal/journal.hpp"
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
    std::condition_variable wake;    ///< wakes the journal's thread
    std::condition_variable changed; ///< wakes waiting callers
    std::shared_ptr<OpenSegment> current;
    std::shared_ptr<OpenSegment> next;                 ///< published ahead, empty
    std::vector<std::shared_ptr<OpenSegment>> retired; ///< full; still to be synced and sealed
    std::uint64_t first_record = 0;                    ///< of this incarnation
    std::uint32_t newest = 0;                          ///< number of the newest published segment
    JournalPosition end;                               ///< after the last frame written
    JournalPosition synced;                            ///< after the last frame known to be synced
    std::deque<KeptFrame> unsynced;                    ///< in order
    Clock::time_point oldest_unsynced;
    Clock::time_point retry_publication; ///< after a failure: no new attempt before this time
    std::vector<std::pair<std::uint64_t, std::function<void()>>> callbacks;
    std::uint64_t frame_wanted = 0;   ///< size needed by a waiting append
    std::uint64_t snapshot_bytes = 0; ///< size of the newest snapshot
    bool append_waits = false;
    bool write_failed = false; ///< an append waits for move_to_new_segment
    bool sync_now = false;
    bool closing = false;
    bool stopping = false;
    bool finished = false;
    std::exception_ptr failure;
    Statistics statistics;
    CommitTimes commits;
    std::thread thread; // last member: starts when all others are constructed
};

} // namespace ranktune::storage
