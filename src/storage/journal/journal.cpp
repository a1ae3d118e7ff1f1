// SPDX-License-Identifier: Apache-2.0 The journal's writer: the caller's thread.
#include "storage/journal/journal.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "storage/journal/journal_impl.hpp"
#include "storage/journal/journal_walk.hpp"

namespace ranktune::storage {
namespace {

/// A buffer larger than this (after a snapshot) is freed after the append.
constexpr std::size_t kept_frame_bytes = std::size_t{256} * 1024;

} // namespace

Journal::Impl::Impl(FileSystem& file_system, JournalOptions journal_options, base::LogSink& sink)
    : files(file_system), options(std::move(journal_options)), log(sink), publisher(files, options, log) {
    files.make_directories(journal_directory(options.directory));
    const JournalPosition cut = take_over();
    publisher.remove_leftovers();
    seal_earlier_segments();
    statistics.segments = 1;
    end = {newest, cut.chain, segment_header_bytes, cut.sequence};
    synced = end;
    first_record = cut.sequence;
    thread = std::thread([this] { main(); });
}

/// Publishes the first segment of this incarnation. Returns where the records of earlier ones end.
JournalPosition Journal::Impl::take_over() {
    for (int attempt = 0; attempt < 16; ++attempt) {
        const JournalPosition cut = find_end();
        // The new segment declares which earlier records are valid: these must be synced before it is published.
        sync_segments(files, options.directory);
        current = publisher.publish(newest + 1, 0, cut, {});
        if (current) {
            ++newest;
            return cut;
        }
        // An older head has just published ahead: look again. (If it was another new head, its incarnation shows that.)
    }
    throw taken(newest + 1);
}

JournalPosition Journal::Impl::find_end() {
    if (!has_journal(files, options.directory)) return {};
    const WalkResult walk =
        options.read ? walk_journal_behind(files, options.directory, options.read->end, options.read->synced_below)
                     : walk_journal(files, options.directory, nullptr);
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
                  {{"bytes", std::to_string(walk.cut_bytes)},
                   {"record", std::to_string(walk.end.sequence)},
                   {"lost", std::to_string(walk.cut_records)}});
    }
    newest = walk.newest.segment;
    return walk.end;
}

/// Segments of earlier incarnations are never written again.
void Journal::Impl::seal_earlier_segments() noexcept {
    try {
        for (const std::uint32_t number : list_segments(files, options.directory))
            if (number < newest) seal(segment_path(options.directory, number));
    } catch (const base::IoError& error) { // as in seal()
        log.write(base::LogLevel::debug, "journal-seal", {{"error", error.what()}});
    }
}

base::UsageError Journal::Impl::taken(std::uint32_t number) const {
    return base::UsageError("another head published journal segment " + std::to_string(number) + " of '" +
                            options.directory + "' first: the study is its own now");
}

// ---- the caller's thread ----

void Journal::Impl::append(const std::vector<study::Record>& records) {
    if (records.empty()) return;
    if (records.size() + 1 >= max_frame_records) throw base::UsageError("a batch of journal records is too large");
    frame.resize(frame_header_bytes);
    study::encode(records, frame);
    auto count = static_cast<std::uint32_t>(records.size());
    Lock lock(mutex);
    rethrow();
    if (closing) throw std::logic_error("append to a closed journal");
    make_room(lock, count);
    write_frame(count);
    if (frame.capacity() > kept_frame_bytes) study::Bytes().swap(frame);
    if (!write_failed) return;
    wake.notify_one();
    changed.wait(lock, [&] { return !write_failed || failure; });
    rethrow();
}

/// Makes `current` a segment with room for the frame. At a change of segment the snapshot is added to the frame.
void Journal::Impl::make_room(Lock& lock, std::uint32_t& count) {
    const auto size = [&] { return frame_size(frame.size() - frame_header_bytes); };
    if (current->room() >= size()) return;
    if (options.snapshot) {
        lock.unlock(); // the callback may take long
        const std::size_t before = frame.size();
        study::encode(options.snapshot(), frame);
        ++count;
        lock.lock();
        snapshot_bytes = frame.size() - before;
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
            continue; // the journal may have moved meanwhile
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

/// Writes the frame at the end of the current segment and keeps a copy. The journal's thread handles a failure.
void Journal::Impl::write_frame(std::uint32_t count) {
    const auto record_bytes = static_cast<std::uint32_t>(frame.size() - frame_header_bytes);
    frame.resize(frame_size(record_bytes));
    if (unsynced.empty()) oldest_unsynced = Clock::now();
    if (unsynced.empty() || wants_next()) wake.notify_one();
    unsynced.push_back({end.sequence, count, record_bytes, frame});
    try {
        place(*current, unsynced.back(), synced.sequence);
    } catch (const base::IoError& error) {
        log.write(base::LogLevel::warning, "journal-write", {{"error", error.what()}});
        write_failed = true;
        end.sequence += count;
    }
    statistics.records += count;
    statistics.bytes += frame.size();
}

/// Chains the frame to the end of the journal and writes it.
void Journal::Impl::place(OpenSegment& segment, KeptFrame& entry, std::uint64_t synced_below) {
    FrameHeader header;
    header.bytes = entry.record_bytes;
    header.previous = end.chain;
    header.first_sequence = entry.first_sequence;
    header.count = entry.count;
    header.unsynced = entry.first_sequence - synced_below;
    seal_frame(entry.bytes, header, segment.header.crc);
    segment.file->write_at(segment.header.payload_offset + segment.used, entry.bytes);
    segment.used += entry.bytes.size();
    end = {segment.header.segment, header.crc, segment.used, entry.first_sequence + entry.count};
}

void Journal::Impl::fail(std::exception_ptr why) noexcept {
    if (!failure) failure = std::move(why);
    changed.notify_all();
}

// ---- the public class ----

Journal::Journal(FileSystem& files, JournalOptions options, base::LogSink& log)
    : impl_(std::make_unique<Impl>(files, std::move(options), log)) {}

Journal::~Journal() { impl_->stop(); }

void Journal::append(const std::vector<study::Record>& records) { impl_->append(records); }

void Journal::sync() {
    Impl::Lock lock(impl_->mutex);
    impl_->sync(lock);
}

void Journal::when_synced(std::function<void()> done) { impl_->when_synced(std::move(done)); }

void Journal::close() { impl_->close(); }

std::string Journal::displaced() const {
    std::shared_ptr<OpenSegment> segment;
    {
        const Impl::Lock lock(impl_->mutex);
        segment = impl_->current;
    }
    return impl_->files.identity(segment->path) == segment->file->identity() ? std::string() : segment->path;
}

std::uint64_t Journal::first_record() const { return impl_->first_record; }

Journal::Statistics Journal::statistics() const {
    const Impl::Lock lock(impl_->mutex);
    Statistics result = impl_->statistics;
    result.synced = impl_->synced.sequence;
    result.commit_p99_ms = impl_->commits.percentile(0.99);
    return result;
}

} // namespace ranktune::storage
