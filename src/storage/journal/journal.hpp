// SPDX-License-Identifier: Apache-2.0
#pragma once
// The journal of a study: records in frames in segments. See docs/developer/durability.md.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ranktune/base/log.hpp"
#include "ranktune/base/time.hpp"
#include "ranktune/study/codec.hpp"
#include "ranktune/study/record.hpp"
#include "storage/file_system.hpp"

namespace ranktune::storage {

/// The process that writes; goes into segment headers, the lease and messages.
struct WriterIdentity {
    std::string host;
    std::string boot_id; ///< changes with every boot, so a pid from before a reboot is recognised
    std::uint64_t pid = 0;
    friend bool operator==(const WriterIdentity&, const WriterIdentity&) = default;
};
/// Identity of this process.
[[nodiscard]] WriterIdentity this_writer();

/// A position between two frames, and the state of the checksum chain there.
struct JournalPosition {
    std::uint32_t segment = 0;  ///< 0: before the first
    std::uint32_t chain = 0;    ///< CRC of the frame before, 0 at the beginning
    std::uint64_t bytes = 0;    ///< offset in the segment's payload, header included
    std::uint64_t sequence = 0; ///< number of the next record, counted from 0
    friend bool operator==(const JournalPosition&, const JournalPosition&) = default;
};

/// Result of reading a journal.
struct JournalSummary {
    std::string uuid;
    std::uint32_t segments = 0;
    std::uint32_t incarnation = 0; ///< newest
    WriterIdentity writer;         ///< of the newest segment
    std::string job;
    std::uint32_t restart_count = 0; ///< of that job
    std::uint64_t records = 0;
    std::uint64_t cut_bytes = 0; ///< unusable bytes at the end
    std::uint64_t cut_records =
        0;               ///< complete records that are lost with cut_bytes; 0: only an unfinished frame was cut
    JournalPosition end; ///< after the last record
    std::uint64_t synced_below = 0; ///< records below this number are known to have been synced
};

struct JournalOptions {
    std::string directory; ///< study directory; segments lie in `<directory>/journal/`
    std::string uuid;      ///< at most 63 characters
    /// Must be larger than in every earlier segment.
    std::uint32_t incarnation = 1;
    WriterIdentity writer = this_writer();
    /// What this head has read already: taking over then reads only what follows. Nothing: reads the whole journal.
    std::optional<JournalSummary> read;
    std::string job; ///< Slurm job id or empty, for the header
    std::uint32_t restart_count = 0;
    std::uint64_t first_segment_bytes =
        std::uint64_t{256} * 1024; ///< payload; doubles with every segment up to the limit
    std::uint64_t max_segment_bytes = std::uint64_t{64} * 1024 * 1024;
    base::Duration commit_interval = std::chrono::seconds(1);
    /// Called at every change of segment, during `append` and on its thread, for the whole state. The snapshot is
    /// written right after the records of that call, so the state must include exactly these records. May be empty.
    std::function<study::Record()> snapshot;
};

/// The single writer of a study's journal. `append` returns when the records are *written*; a background thread makes
/// them *synced* at the latest `commit_interval` later and publishes segments ahead of need. A running sync does not
/// delay `append`.
///
/// Threads: `append` from one thread at a time; the rest from any. A failed write or sync moves the journal to a new
/// segment with everything that was not yet synced; when that fails too, this and every later call throws.
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
    [[nodiscard]] std::uint64_t first_record() const;

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
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Reads all records in order, from record 0, by plain reads (no lock, no mmap): safe while a head writes. Snapshots
/// are visited like any record. A torn tail ends the reading and shows in the summary; a damaged middle throws
/// base::FormatError with advice; so does a newer format. Throws base::UsageError when there is no journal.
JournalSummary read_journal(FileSystem& files, const std::string& directory,
                            const std::function<void(study::Record&&)>& visit);

/// The same without snapshots (each may be as large as the study's state), for the records below number `limit`.
JournalSummary read_history(FileSystem& files, const std::string& directory, std::uint64_t limit,
                            const std::function<void(study::Record&&)>& visit);

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

} // namespace ranktune::storage
