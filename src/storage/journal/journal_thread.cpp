// SPDX-License-Identifier: Apache-2.0
// The journal's writer: its own thread.
#include <algorithm>

#include "storage/journal/journal.hpp"

namespace ranktune::storage {
namespace {

constexpr std::uint64_t smallest_usual = std::uint64_t{8} * 1024 * 1024;
constexpr std::uint64_t snapshots_per_segment = 16;
constexpr std::uint64_t segments_of_a_long_life = 16;

} // namespace

void Journal::main() noexcept {
    Lock lock(mutex_);
    while (!stopping_) {
        try {
            if (failure_ || finished_) {
                wake_.wait(lock, [&] { return stopping_; });
            } else if (write_failed_) {
                move_to_new_segment(lock);
            } else if (has_unsynced() && (sync_now_ || Clock::now() >= oldest_unsynced_ + options_.commit_interval)) {
                commit(lock);
            } else if (!callbacks_.empty() && callbacks_.front().first <= synced_.sequence) {
                run_callbacks(lock);
            } else if (append_waits_ || (wants_next() && Clock::now() >= retry_publication_)) {
                publish_ahead(lock);
            } else if (closing_) {
                finish(lock);
            } else if (has_unsynced() || wants_next()) {
                auto until = Clock::time_point::max();
                if (has_unsynced()) until = oldest_unsynced_ + options_.commit_interval;
                if (wants_next()) until = std::min(until, retry_publication_);
                wake_.wait_until(lock, until);
            } else {
                wake_.wait(lock);
            }
        } catch (const std::exception& error) {
            log_.write(base::LogLevel::error, "journal-failed", {{"error", error.what()}});
            if (!lock.owns_lock()) lock.lock();
            fail(std::current_exception());
        }
    }
}

/// Syncs everything written so far. After a failure the journal moves to a new segment: the kernel may have dropped the
/// pages it could not write, and a second sync of the same file would then report success.
void Journal::commit(Lock& lock) {
    const std::vector<std::shared_ptr<OpenSegment>> full = retired_;
    const std::shared_ptr<OpenSegment> last = current_;
    const JournalPosition target = end_;
    sync_now_ = false;
    lock.unlock();
    const auto began = Clock::now();
    bool good = true;
    try {
        for (const auto& segment : full) segment->file->sync();
        last->file->sync();
    } catch (const base::IoError& error) {
        log_.write(base::LogLevel::warning, "journal-sync", {{"error", error.what()}});
        good = false;
    }
    const auto took = Clock::now() - began;
    if (good) {
        for (const auto& segment : full) seal(segment->path);
    }
    lock.lock();
    if (!good) {
        move_to_new_segment(lock);
        return;
    }
    ++statistics_.syncs;
    commits_.add(std::chrono::duration<double, std::milli>(took).count());
    retired_.erase(retired_.begin(), retired_.begin() + static_cast<std::ptrdiff_t>(full.size()));
    synced_ = target;
    while (!unsynced_.empty() && unsynced_.front().first_sequence < synced_.sequence) unsynced_.pop_front();
    oldest_unsynced_ = began; // lower bound for the frames appended during the sync
    changed_.notify_all();
}

/// The size up to which segments double. A reader applies the records after the newest snapshot one by one, and each
/// segment has a snapshot. Segments therefore stay small unless the snapshot or this incarnation's journal is large.
std::uint64_t Journal::largest_usual() const {
    if (!options_.snapshot) return options_.max_segment_bytes;
    return std::max(
        {smallest_usual, snapshots_per_segment * snapshot_bytes_, statistics_.bytes / segments_of_a_long_life});
}

/// Publishes the next segment before it is needed, or because an append waits for a larger one.
void Journal::publish_ahead(Lock& lock) {
    const std::uint32_t number = newest_ + 1;
    const JournalPosition cut = synced_;
    const std::uint32_t after = current_->header.segment; // `current_` does not change before there is a next segment
    const SegmentPublisher::Room room{append_waits_ ? frame_wanted_ : 0, largest_usual()};
    const std::shared_ptr<OpenSegment> too_small = std::move(next_);
    next_.reset();
    std::shared_ptr<OpenSegment> segment;
    lock.unlock();
    try {
        segment = publisher_.publish(number, after, cut, room);
        if (too_small) files_.remove(too_small->path);
    } catch (const base::IoError& error) {
        lock.lock();
        if (append_waits_) throw;
        log_.write(base::LogLevel::warning, "journal-no-room", {{"error", error.what()}});
        retry_publication_ =
            Clock::now() + std::max<Clock::duration>(options_.commit_interval, std::chrono::seconds(1));
        return;
    }
    lock.lock();
    if (!segment) throw taken(number);
    newest_ = number;
    ++statistics_.segments;
    next_ = std::move(segment);
    append_waits_ = false;
    changed_.notify_all();
}

/// After a failed write or sync: writes everything that is not known to be synced to a new segment. Its header
/// invalidates what follows the last good sync in the old ones.
void Journal::move_to_new_segment(Lock& lock) {
    const std::uint32_t number = newest_ + 1;
    std::uint64_t bytes = 0;
    for (const KeptFrame& kept : unsynced_) bytes += kept.bytes.size();
    std::shared_ptr<OpenSegment> segment = publisher_.publish(number, 0, synced_, {bytes, largest_usual()});
    if (!segment) throw taken(number);
    newest_ = number;
    ++statistics_.segments;
    end_ = {number, synced_.chain, segment->used, synced_.sequence};
    for (KeptFrame& kept : unsynced_) place(*segment, kept, synced_.sequence);
    segment->file->sync();
    ++statistics_.syncs;
    if (next_) files_.remove(next_->path);
    next_.reset();
    retired_.clear();
    current_ = std::move(segment);
    synced_ = end_;
    unsynced_.clear();
    write_failed_ = false;
    append_waits_ = false;
    log_.write(base::LogLevel::warning, "journal-moved", {{"path", current_->path}});
    changed_.notify_all();
    run_callbacks(lock);
}

void Journal::run_callbacks(Lock& lock) {
    std::vector<std::function<void()>> due;
    auto rest = callbacks_.begin();
    for (; rest != callbacks_.end() && rest->first <= synced_.sequence; ++rest) due.push_back(std::move(rest->second));
    callbacks_.erase(callbacks_.begin(), rest);
    lock.unlock();
    for (const auto& done : due) {
        try {
            done();
        } catch (const std::exception& error) {
            log_.write(base::LogLevel::error, "journal-callback", {{"error", error.what()}});
        }
    }
    lock.lock();
}

void Journal::seal(const std::string& path) noexcept {
    try {
        files_.set_read_only(path);
    } catch (const base::IoError& error) { // the mode is a hint for users; nothing depends on it
        log_.write(base::LogLevel::debug, "journal-seal", {{"error", error.what()}});
    }
}

/// Everything is synced, and no more appends come.
void Journal::finish(Lock& lock) {
    lock.unlock();
    for (const auto& segment : retired_) seal(segment->path);
    seal(current_->path);
    if (next_) files_.remove(next_->path);
    lock.lock();
    finished_ = true;
    changed_.notify_all();
}

} // namespace ranktune::storage
