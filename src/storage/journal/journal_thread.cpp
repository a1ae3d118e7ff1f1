// SPDX-License-Identifier: Apache-2.0 The journal's writer: its own thread.
#include <algorithm>

#include "storage/journal/journal_impl.hpp"

namespace ranktune::storage {
namespace {

constexpr std::uint64_t smallest_usual = std::uint64_t{8} * 1024 * 1024;
constexpr std::uint64_t snapshots_per_segment = 16;
constexpr std::uint64_t segments_of_a_long_life = 16;

} // namespace

void Journal::Impl::main() noexcept {
    Lock lock(mutex);
    while (!stopping) {
        try {
            if (failure || finished) {
                wake.wait(lock, [&] { return stopping; });
            } else if (write_failed) {
                move_to_new_segment(lock);
            } else if (has_unsynced() && (sync_now || Clock::now() >= oldest_unsynced + options.commit_interval)) {
                commit(lock);
            } else if (!callbacks.empty() && callbacks.front().first <= synced.sequence) {
                run_callbacks(lock);
            } else if (append_waits || (wants_next() && Clock::now() >= retry_publication)) {
                publish_ahead(lock);
            } else if (closing) {
                finish(lock);
            } else if (has_unsynced() || wants_next()) {
                auto until = Clock::time_point::max();
                if (has_unsynced()) until = oldest_unsynced + options.commit_interval;
                if (wants_next()) until = std::min(until, retry_publication);
                wake.wait_until(lock, until);
            } else {
                wake.wait(lock);
            }
        } catch (const std::exception& error) {
            log.write(base::LogLevel::error, "journal-failed", {{"error", error.what()}});
            if (!lock.owns_lock()) lock.lock();
            fail(std::current_exception());
        }
    }
}

/// Syncs everything written so far. After a failure the journal moves to a new segment: the kernel may have dropped the
/// pages it could not write, and a second sync of the same file would then report success.
void Journal::Impl::commit(Lock& lock) {
    const std::vector<std::shared_ptr<OpenSegment>> full = retired;
    const std::shared_ptr<OpenSegment> last = current;
    const JournalPosition target = end;
    sync_now = false;
    lock.unlock();
    const auto began = Clock::now();
    bool good = true;
    try {
        for (const auto& segment : full) segment->file->sync();
        last->file->sync();
    } catch (const base::IoError& error) {
        log.write(base::LogLevel::warning, "journal-sync", {{"error", error.what()}});
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
    ++statistics.syncs;
    commits.add(std::chrono::duration<double, std::milli>(took).count());
    retired.erase(retired.begin(), retired.begin() + static_cast<std::ptrdiff_t>(full.size()));
    synced = target;
    while (!unsynced.empty() && unsynced.front().first_sequence < synced.sequence) unsynced.pop_front();
    oldest_unsynced = began; // lower bound for the frames appended during the sync
    changed.notify_all();
}

/// The size up to which segments double. A reader applies the records after the newest snapshot one by one, and each
/// segment has a snapshot. Segments therefore stay small unless the snapshot or this incarnation's journal is large.
std::uint64_t Journal::Impl::largest_usual() const {
    if (!options.snapshot) return options.max_segment_bytes;
    return std::max(
        {smallest_usual, snapshots_per_segment * snapshot_bytes, statistics.bytes / segments_of_a_long_life});
}

/// Publishes the next segment before it is needed, or because an append waits for a larger one.
void Journal::Impl::publish_ahead(Lock& lock) {
    const std::uint32_t number = newest + 1;
    const JournalPosition cut = synced;
    const std::uint32_t after = current->header.segment; // `current` does not change before there is a next segment
    const SegmentPublisher::Room room{append_waits ? frame_wanted : 0, largest_usual()};
    const std::shared_ptr<OpenSegment> too_small = std::move(next);
    next.reset();
    std::shared_ptr<OpenSegment> segment;
    lock.unlock();
    try {
        segment = publisher.publish(number, after, cut, room);
        if (too_small) files.remove(too_small->path);
    } catch (const base::IoError& error) {
        lock.lock();
        if (append_waits) throw;
        log.write(base::LogLevel::warning, "journal-no-room", {{"error", error.what()}});
        retry_publication = Clock::now() + std::max<Clock::duration>(options.commit_interval, std::chrono::seconds(1));
        return;
    }
    lock.lock();
    if (!segment) throw taken(number);
    newest = number;
    ++statistics.segments;
    next = std::move(segment);
    append_waits = false;
    changed.notify_all();
}

/// After a failed write or sync: writes everything that is not known to be synced to a new segment. Its header
/// invalidates what follows the last good sync in the old ones.
void Journal::Impl::move_to_new_segment(Lock& lock) {
    const std::uint32_t number = newest + 1;
    std::uint64_t bytes = 0;
    for (const KeptFrame& kept : unsynced) bytes += kept.bytes.size();
    std::shared_ptr<OpenSegment> segment = publisher.publish(number, 0, synced, {bytes, largest_usual()});
    if (!segment) throw taken(number);
    newest = number;
    ++statistics.segments;
    end = {number, synced.chain, segment->used, synced.sequence};
    for (KeptFrame& kept : unsynced) place(*segment, kept, synced.sequence);
    segment->file->sync();
    ++statistics.syncs;
    if (next) files.remove(next->path);
    next.reset();
    retired.clear();
    current = std::move(segment);
    synced = end;
    unsynced.clear();
    write_failed = false;
    append_waits = false;
    log.write(base::LogLevel::warning, "journal-moved", {{"path", current->path}});
    changed.notify_all();
    run_callbacks(lock);
}

void Journal::Impl::run_callbacks(Lock& lock) {
    std::vector<std::function<void()>> due;
    auto rest = callbacks.begin();
    for (; rest != callbacks.end() && rest->first <= synced.sequence; ++rest) due.push_back(std::move(rest->second));
    callbacks.erase(callbacks.begin(), rest);
    lock.unlock();
    for (const auto& done : due) {
        try {
            done();
        } catch (const std::exception& error) {
            log.write(base::LogLevel::error, "journal-callback", {{"error", error.what()}});
        }
    }
    lock.lock();
}

void Journal::Impl::seal(const std::string& path) noexcept {
    try {
        files.set_read_only(path);
    } catch (const base::IoError& error) { // the mode is a hint for users; nothing depends on it
        log.write(base::LogLevel::debug, "journal-seal", {{"error", error.what()}});
    }
}

/// Everything is synced, and no more appends come.
void Journal::Impl::finish(Lock& lock) {
    lock.unlock();
    for (const auto& segment : retired) seal(segment->path);
    seal(current->path);
    if (next) files.remove(next->path);
    lock.lock();
    finished = true;
    changed.notify_all();
}

} // namespace ranktune::storage
