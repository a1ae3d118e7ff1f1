// SPDX-License-Identifier: Apache-2.0
// The writer of the journal. Two threads: the caller of `append` writes, the journal's own thread does everything that
// can wait for a disk. What they share is behind one mutex that is never held during a sync.
#include "storage/journal.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>

#include "ranktune/base/error.hpp"
#include "ranktune/study/codec.hpp"
#include "storage/commit_times.hpp"
#include "storage/journal_walk.hpp"
#include "storage/segment_publisher.hpp"

namespace ranktune::storage {
namespace {

using Clock = std::chrono::steady_clock;
using Lock = std::unique_lock<std::mutex>;

/// The records of one frame, kept until they are synced.
struct Unsynced {
    std::uint64_t first_sequence = 0;
    std::uint32_t count = 0;
    study::Bytes frame; ///< as written; the first 32 bytes are its head
    std::uint32_t record_bytes = 0;
};

study::Bytes begin_frame() { return study::Bytes(frame_header_bytes); }

} // namespace

struct Journal::Impl {
    Impl(FileSystem& file_system, JournalOptions journal_options, base::LogSink& sink);

    // ---- on the caller's thread ----
    [[nodiscard]] JournalPosition take_over();
    [[nodiscard]] JournalPosition find_end();
    void append(const std::vector<study::Record>& records);
    void make_room(Lock& lock, study::Bytes& frame, std::uint32_t& count);
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
    void seal(OpenSegment& segment) noexcept;
    void finish(Lock& lock);

    // ---- on either; the lock is held ----
    void write_frame(study::Bytes frame, std::uint32_t count);
    void place(OpenSegment& segment, Unsynced& frame, std::uint64_t synced_below);
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

    mutable std::mutex mutex;
    std::condition_variable wake;    ///< for the journal's thread: there is something to do
    std::condition_variable changed; ///< for callers: something was done
    std::shared_ptr<OpenSegment> current;
    std::shared_ptr<OpenSegment> next;                 ///< published ahead, empty
    std::vector<std::shared_ptr<OpenSegment>> retired; ///< full, to be synced and sealed
    std::uint32_t newest = 0;                          ///< number of the newest published segment
    JournalPosition end;                               ///< behind the last frame written
    JournalPosition synced;                            ///< behind the last frame known to be on the disk
    std::deque<Unsynced> unsynced;
    Clock::time_point oldest_unsynced;
    Clock::time_point retry_publication; ///< after a failure: not before
    std::vector<std::pair<std::uint64_t, std::function<void()>>> callbacks;
    std::uint64_t frame_wanted = 0; ///< by an append that waits
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

Journal::Impl::Impl(FileSystem& file_system, JournalOptions journal_options, base::LogSink& sink)
    : files(file_system), options(std::move(journal_options)), log(sink), publisher(files, options, log) {
    files.make_directories(journal_directory(options.directory));
    const JournalPosition cut = take_over();
    publisher.remove_leftovers();
    statistics.segments = 1;
    end = {newest, cut.chain, segment_header_bytes, cut.sequence};
    synced = end;
    thread = std::thread([this] { main(); });
}

/// Publishes the first segment of this life. Returns where the records of earlier lives end.
JournalPosition Journal::Impl::take_over() {
    for (int attempt = 0; attempt < 16; ++attempt) {
        const JournalPosition cut = find_end();
        current = publisher.publish(newest + 1, false, cut, 0);
        if (current) {
            ++newest;
            return cut;
        }
        // An older head, not yet aware of this one, has just published ahead: look again. (Or another new head did;
        // then its incarnation shows.)
    }
    throw taken(newest + 1);
}

JournalPosition Journal::Impl::find_end() {
    if (!has_journal(files, options.directory)) return {};
    const WalkResult walk = walk_journal(files, options.directory, nullptr);
    if (walk.newest.uuid != options.uuid) {
        throw base::UsageError("'" + options.directory + "' holds the journal of another study");
    }
    if (walk.newest.incarnation >= options.incarnation) {
        throw base::UsageError("another head took over the study in '" + options.directory + "': incarnation " +
                               std::to_string(walk.newest.incarnation) + " on host " + walk.newest.host + ", pid " +
                               std::to_string(walk.newest.pid));
    }
    if (walk.cut_bytes != 0) {
        log.write(base::LogLevel::warning, "journal-cut",
                  {{"bytes", std::to_string(walk.cut_bytes)}, {"record", std::to_string(walk.end.sequence)}});
    }
    newest = walk.newest.segment;
    return walk.end;
}

base::UsageError Journal::Impl::taken(std::uint32_t number) const {
    return base::UsageError("another head published journal segment " + std::to_string(number) + " of '" +
                            options.directory + "' first: the study is its own now");
}

// ---- the caller's thread ----

void Journal::Impl::append(const std::vector<study::Record>& records) {
    if (records.empty()) return;
    study::Bytes frame = begin_frame();
    for (const study::Record& record : records) study::encode(record, frame);
    auto count = static_cast<std::uint32_t>(records.size());
    Lock lock(mutex);
    rethrow();
    if (closing) throw std::logic_error("append to a closed journal");
    make_room(lock, frame, count);
    write_frame(std::move(frame), count);
    if (!write_failed) return;
    wake.notify_one();
    changed.wait(lock, [&] { return !write_failed || failure; });
    rethrow();
}

/// Makes `current` a segment that holds the frame. At a change of segment the snapshot joins it.
void Journal::Impl::make_room(Lock& lock, study::Bytes& frame, std::uint32_t& count) {
    const auto size = [&] { return frame_size(frame.size() - frame_header_bytes); };
    if (current->room() >= size()) return;
    if (options.snapshot) {
        lock.unlock(); // foreign code, and it may take long
        study::encode(options.snapshot(), frame);
        ++count;
        lock.lock();
        rethrow();
    }
    if (frame.size() > std::numeric_limits<std::uint32_t>::max() / 2) {
        throw base::UsageError("a batch of journal records is larger than 2 GiB");
    }
    while (current->room() < size()) {
        if (!next || next->room() < size()) {
            frame_wanted = size();
            append_waits = true;
            wake.notify_one();
            changed.wait(lock, [&] { return !append_waits || failure; });
            rethrow();
            continue; // a move to a new segment may have come between
        }
        retired.push_back(std::move(current));
        current = std::move(next);
        end.segment = current->header.segment;
        end.bytes = current->used;
    }
}

void Journal::Impl::sync(Lock& lock) {
    rethrow();
    const std::uint64_t target = end.sequence;
    if (synced.sequence < target) {
        sync_now = true;
        wake.notify_one();
        changed.wait(lock, [&] { return synced.sequence >= target || failure; });
    }
    rethrow();
}

void Journal::Impl::when_synced(std::function<void()> done) {
    const Lock lock(mutex);
    rethrow();
    callbacks.emplace_back(end.sequence, std::move(done));
    wake.notify_one();
}

void Journal::Impl::close() {
    {
        Lock lock(mutex);
        if (finished) return;
        closing = true;
        sync_now = true;
        wake.notify_one();
        changed.wait(lock, [&] { return finished || failure; });
    }
    stop();
    rethrow();
}

void Journal::Impl::stop() noexcept {
    {
        const Lock lock(mutex);
        stopping = true;
    }
    wake.notify_one();
    if (thread.joinable()) thread.join();
}

// ---- either thread ----

/// Writes the frame at the end of the current segment and keeps it. A failure is left for the journal's thread.
void Journal::Impl::write_frame(study::Bytes frame, std::uint32_t count) {
    Unsynced entry{end.sequence, count, std::move(frame), 0};
    entry.record_bytes = static_cast<std::uint32_t>(entry.frame.size() - frame_header_bytes);
    if (unsynced.empty()) {
        oldest_unsynced = Clock::now();
        wake.notify_one();
    } else if (wants_next()) {
        wake.notify_one();
    }
    unsynced.push_back(std::move(entry));
    try {
        place(*current, unsynced.back(), synced.sequence);
    } catch (const base::IoError& error) {
        log.write(base::LogLevel::warning, "journal-write", {{"error", error.what()}});
        write_failed = true;
        end.sequence += count;
    }
    statistics.records += count;
    statistics.bytes += unsynced.back().frame.size();
}

/// Chains the frame to the end of the journal and writes it.
void Journal::Impl::place(OpenSegment& segment, Unsynced& entry, std::uint64_t synced_below) {
    FrameHeader header;
    header.previous = end.chain;
    header.first_sequence = entry.first_sequence;
    header.count = entry.count;
    header.unsynced = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(entry.first_sequence - synced_below, std::numeric_limits<std::uint32_t>::max()));
    entry.frame.resize(frame_header_bytes + entry.record_bytes);
    seal_frame(entry.frame, header, segment.header.crc);
    segment.file->write_at(segment.header.payload_offset + segment.used, entry.frame);
    segment.used += entry.frame.size();
    end = {segment.header.segment, header.crc, segment.used, entry.first_sequence + entry.count};
}

void Journal::Impl::fail(std::exception_ptr why) noexcept {
    if (!failure) failure = std::move(why);
    changed.notify_all();
}

// ---- the journal's thread ----

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
    while (has_unsynced() && unsynced.front().first_sequence < synced.sequence) unsynced.pop_front();
    oldest_unsynced = began; // of what came during the sync, at the earliest
    changed.notify_all();
}

/// Publishes the next segment before it is needed, or because an append waits for a larger one.
void Journal::Impl::publish_ahead(Lock& lock) {
    const std::uint32_t number = newest + 1;
    const JournalPosition cut = synced;
    const std::uint64_t wanted = append_waits ? frame_wanted : 0;
    const std::shared_ptr<OpenSegment> too_small = std::move(next);
    next.reset();
    std::shared_ptr<OpenSegment> segment;
    lock.unlock();
    try {
        segment = publisher.publish(number, true, cut, wanted);
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

/// After a failed write or sync: everything that is not known to be on the disk goes to a new segment, whose header
/// voids what lies behind the last good sync.
void Journal::Impl::move_to_new_segment(Lock& lock) {
    std::uint64_t bytes = 0;
    for (const Unsynced& entry : unsynced) bytes += frame_size(entry.record_bytes);
    const std::uint32_t number = newest + 1;
    std::shared_ptr<OpenSegment> segment = publisher.publish(number, false, synced, bytes);
    if (!segment) throw taken(number);
    newest = number;
    ++statistics.segments;
    end = {number, synced.chain, segment->used, synced.sequence};
    for (Unsynced& entry : unsynced) place(*segment, entry, synced.sequence);
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

// ---- the public face ----

Journal::Journal(FileSystem& files, JournalOptions options, base::LogSink& log)
    : impl_(std::make_unique<Impl>(files, std::move(options), log)) {}

Journal::~Journal() { impl_->stop(); }

void Journal::append(const std::vector<study::Record>& records) { impl_->append(records); }

void Journal::sync() {
    Lock lock(impl_->mutex);
    impl_->sync(lock);
}

void Journal::when_synced(std::function<void()> done) { impl_->when_synced(std::move(done)); }

void Journal::close() { impl_->close(); }

Journal::Statistics Journal::statistics() const {
    const Lock lock(impl_->mutex);
    Statistics result = impl_->statistics;
    result.commit_p99_ms = impl_->commits.percentile(0.99);
    result.commit_max_ms = impl_->commits.largest();
    return result;
}

} // namespace ranktune::storage
