// SPDX-License-Identifier: Apache-2.0
// The journal's writer: the caller's thread.
#include "storage/journal/journal.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "storage/journal/journal_walk.hpp"

namespace ranktune::storage {
namespace {

/// A buffer larger than this (after a snapshot) is freed after the append.
constexpr std::size_t kept_frame_bytes = std::size_t{256} * 1024;

} // namespace

Journal::Journal(FileSystem& files, JournalOptions options, base::LogSink& log)
    : files_(files), options_(std::move(options)), log_(log), publisher_(files_, options_, log_) {
    files_.make_directories(journal_directory(options_.directory));
    const JournalPosition cut = take_over();
    publisher_.remove_leftovers();
    seal_earlier_segments();
    statistics_.segments = 1;
    end_ = {newest_, cut.chain, segment_header_bytes, cut.sequence};
    synced_ = end_;
    first_record_ = cut.sequence;
    thread_ = std::thread([this] { main(); });
}

Journal::~Journal() { stop(); }

/// Publishes the first segment of this incarnation. Returns where the records of earlier ones end.
JournalPosition Journal::take_over() {
    for (int attempt = 0; attempt < 16; ++attempt) {
        const JournalPosition cut = find_end();
        // The new segment declares which earlier records are valid: these must be synced before it is published.
        sync_segments(files_, options_.directory);
        current_ = publisher_.publish(newest_ + 1, 0, cut, {});
        if (current_) {
            ++newest_;
            return cut;
        }
        // An older head has just published ahead: look again. (If it was another new head, its incarnation shows that.)
    }
    throw taken(newest_ + 1);
}

JournalPosition Journal::find_end() {
    if (!has_journal(files_, options_.directory)) return {};
    const WalkResult walk =
        options_.read ? walk_journal_behind(files_, options_.directory, options_.read->end, options_.read->synced_below)
                      : walk_journal(files_, options_.directory, nullptr);
    if (walk.newest.uuid != options_.uuid) {
        throw base::UsageError("'" + options_.directory + "' holds the journal of another study");
    }
    if (walk.newest.incarnation >= options_.incarnation) {
        throw base::UsageError("another head took over the study in '" + options_.directory + "': incarnation " +
                               std::to_string(walk.newest.incarnation) + " on host " + walk.newest.host + ", pid " +
                               std::to_string(walk.newest.pid));
    }
    if (walk.cut_bytes != 0) {
        log_.write(base::LogLevel::warning, "journal-cut",
                   {{"bytes", std::to_string(walk.cut_bytes)},
                    {"record", std::to_string(walk.end.sequence)},
                    {"lost", std::to_string(walk.cut_records)}});
    }
    newest_ = walk.newest.segment;
    return walk.end;
}

/// Segments of earlier incarnations are never written again.
void Journal::seal_earlier_segments() noexcept {
    try {
        for (const std::uint32_t number : list_segments(files_, options_.directory))
            if (number < newest_) seal(segment_path(options_.directory, number));
    } catch (const base::IoError& error) { // as in seal()
        log_.write(base::LogLevel::debug, "journal-seal", {{"error", error.what()}});
    }
}

base::UsageError Journal::taken(std::uint32_t number) const {
    return base::UsageError("another head published journal segment " + std::to_string(number) + " of '" +
                            options_.directory + "' first: the study is its own now");
}

// ---- the caller's thread ----

void Journal::append(const std::vector<study::Record>& records) {
    if (records.empty()) return;
    if (records.size() + 1 >= max_frame_records) throw base::UsageError("a batch of journal records is too large");
    frame_.resize(frame_header_bytes);
    study::encode(records, frame_);
    auto count = static_cast<std::uint32_t>(records.size());
    Lock lock(mutex_);
    rethrow();
    if (closing_) throw std::logic_error("append to a closed journal");
    make_room(lock, count);
    write_frame(count);
    if (frame_.capacity() > kept_frame_bytes) study::Bytes().swap(frame_);
    if (!write_failed_) return;
    wake_.notify_one();
    changed_.wait(lock, [&] { return !write_failed_ || failure_; });
    rethrow();
}

/// Makes `current_` a segment with room for the frame. At a change of segment the snapshot is added to the frame.
void Journal::make_room(Lock& lock, std::uint32_t& count) {
    const auto size = [&] { return frame_size(frame_.size() - frame_header_bytes); };
    if (current_->room() >= size()) return;
    if (options_.snapshot) {
        lock.unlock(); // the callback may take long
        const std::size_t before = frame_.size();
        study::encode(options_.snapshot(), frame_);
        ++count;
        lock.lock();
        snapshot_bytes_ = frame_.size() - before;
        rethrow();
    }
    if (frame_.size() > std::numeric_limits<std::uint32_t>::max() / 2) {
        throw base::UsageError("a batch of journal records is larger than 2 GiB");
    }
    while (current_->room() < size()) {
        if (!next_ || next_->room() < size()) {
            frame_wanted_ = size();
            append_waits_ = true;
            wake_.notify_one();
            changed_.wait(lock, [&] { return !append_waits_ || failure_; });
            rethrow();
            continue; // the journal may have moved meanwhile
        }
        retired_.push_back(std::move(current_));
        current_ = std::move(next_);
        end_.segment = current_->header.segment;
        end_.bytes = current_->used;
    }
}

void Journal::sync(Lock& lock) {
    rethrow();
    const std::uint64_t target = end_.sequence;
    if (synced_.sequence < target) {
        sync_now_ = true;
        wake_.notify_one();
        changed_.wait(lock, [&] { return synced_.sequence >= target || failure_; });
    }
    rethrow();
}

void Journal::when_synced(std::function<void()> done) {
    const Lock lock(mutex_);
    rethrow();
    callbacks_.emplace_back(end_.sequence, std::move(done));
    wake_.notify_one();
}

void Journal::close() {
    {
        Lock lock(mutex_);
        if (finished_) return;
        closing_ = true;
        sync_now_ = true;
        wake_.notify_one();
        changed_.wait(lock, [&] { return finished_ || failure_; });
    }
    stop();
    rethrow();
}

void Journal::stop() noexcept {
    {
        const Lock lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
}

// ---- either thread ----

/// Writes the frame at the end of the current segment and keeps a copy. The journal's thread handles a failure.
void Journal::write_frame(std::uint32_t count) {
    const auto record_bytes = static_cast<std::uint32_t>(frame_.size() - frame_header_bytes);
    frame_.resize(frame_size(record_bytes));
    if (unsynced_.empty()) oldest_unsynced_ = Clock::now();
    if (unsynced_.empty() || wants_next()) wake_.notify_one();
    unsynced_.push_back({end_.sequence, count, record_bytes, frame_});
    try {
        place(*current_, unsynced_.back(), synced_.sequence);
    } catch (const base::IoError& error) {
        log_.write(base::LogLevel::warning, "journal-write", {{"error", error.what()}});
        write_failed_ = true;
        end_.sequence += count;
    }
    statistics_.records += count;
    statistics_.bytes += frame_.size();
}

/// Chains the frame to the end of the journal and writes it.
void Journal::place(OpenSegment& segment, KeptFrame& entry, std::uint64_t synced_below) {
    FrameHeader header;
    header.bytes = entry.record_bytes;
    header.previous = end_.chain;
    header.first_sequence = entry.first_sequence;
    header.count = entry.count;
    header.unsynced = entry.first_sequence - synced_below;
    seal_frame(entry.bytes, header, segment.header.crc);
    segment.file->write_at(segment.header.payload_offset + segment.used, entry.bytes);
    segment.used += entry.bytes.size();
    end_ = {segment.header.segment, header.crc, segment.used, entry.first_sequence + entry.count};
}

void Journal::fail(std::exception_ptr why) noexcept {
    if (!failure_) failure_ = std::move(why);
    changed_.notify_all();
}

void Journal::sync() {
    Lock lock(mutex_);
    sync(lock);
}

std::string Journal::displaced() const {
    std::shared_ptr<OpenSegment> segment;
    {
        const Lock lock(mutex_);
        segment = current_;
    }
    return files_.identity(segment->path) == segment->file->identity() ? std::string() : segment->path;
}

Journal::Statistics Journal::statistics() const {
    const Lock lock(mutex_);
    Statistics result = statistics_;
    result.synced = synced_.sequence;
    result.commit_p99_ms = commits_.percentile(0.99);
    return result;
}

} // namespace ranktune::storage
