// SPDX-License-Identifier: Apache-2.0
// The journal's writer: what happens on its own thread.
#include <algorithm>

#include "storage/journal_impl.hpp"

namespace ranktune::storage {

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
            } else if (unsynced.wants_spare()) {
                make_memory_ready(lock);
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

/// Syncs everything written so far. A failure moves the journal on: the kernel may have dropped what it could not
/// write, and a second sync of the same file would then report success.
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
        for (const auto& segment : full) seal(*segment);
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
    unsynced.drop_below(synced.sequence);
    oldest_unsynced = began; // of what came during the sync, at the earliest
    changed.notify_all();
}

/// What the next segment should hold so that half of it lasts for eight publications, at the rate at which the current
/// one was filled: appends that come by the million must not wait for a disk that syncs, and now and then takes several
/// times as long.
std::uint64_t Journal::Impl::expected_bytes() const {
    const std::chrono::duration<double> open = Clock::now() - current_since;
    const double bytes = static_cast<double>(current->used - segment_header_bytes);
    const double expected = open.count() > 0.0 ? 16.0 * bytes * (publication / open) : 0.0;
    return static_cast<std::uint64_t>(std::min(expected, static_cast<double>(options.max_segment_bytes)));
}

/// Publishes the next segment before it is needed, or because an append waits for a larger one.
void Journal::Impl::publish_ahead(Lock& lock) {
    const std::uint32_t number = newest + 1;
    const JournalPosition cut = synced;
    const SegmentPublisher::Room room{append_waits ? frame_wanted : 0, expected_bytes()};
    const std::shared_ptr<OpenSegment> too_small = std::move(next);
    next.reset();
    std::shared_ptr<OpenSegment> segment;
    lock.unlock();
    const auto began = Clock::now();
    try {
        segment = publisher.publish(number, true, cut, room);
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
    publication = std::max<std::chrono::duration<double>>(Clock::now() - began, publication / 2);
    newest = number;
    ++statistics.segments;
    next = std::move(segment);
    append_waits = false;
    changed.notify_all();
}

/// The kernel clears every page that it gives: better here than in the middle of an append.
void Journal::Impl::make_memory_ready(Lock& lock) {
    lock.unlock();
    UnsyncedFrames::Piece piece = UnsyncedFrames::make_spare();
    lock.lock();
    unsynced.add_spare(std::move(piece));
}

/// After a failed write or sync: everything that is not known to be on the disk goes to a new segment, whose header
/// voids what lies behind the last good sync.
void Journal::Impl::move_to_new_segment(Lock& lock) {
    const std::uint32_t number = newest + 1;
    std::shared_ptr<OpenSegment> segment = publisher.publish(number, false, synced, {unsynced.bytes(), 0});
    if (!segment) throw taken(number);
    newest = number;
    ++statistics.segments;
    end = {number, synced.chain, segment->used, synced.sequence};
    unsynced.for_each([&](const UnsyncedFrames::Frame& entry) { place(*segment, entry, synced.sequence); });
    segment->file->sync();
    ++statistics.syncs;
    if (next) files.remove(next->path);
    next.reset();
    retired.clear();
    current = std::move(segment);
    current_since = Clock::now();
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

void Journal::Impl::seal(OpenSegment& segment) noexcept {
    try {
        files.set_read_only(segment.path);
    } catch (const base::IoError& error) { // a courtesy to people: nothing depends on it
        log.write(base::LogLevel::debug, "journal-seal", {{"error", error.what()}});
    }
}

/// Everything is synced and nothing more will come.
void Journal::Impl::finish(Lock& lock) {
    lock.unlock();
    for (const auto& segment : retired) seal(*segment);
    seal(*current);
    if (next) files.remove(next->path);
    lock.lock();
    finished = true;
    changed.notify_all();
}

} // namespace ranktune::storage
