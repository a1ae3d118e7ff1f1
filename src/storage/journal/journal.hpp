// SPDX-License-Identifier: Apache-2.0
#pragma once
// The journal: segments of frames of records, as described in docs/developer/durability.md.

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

/// Who writes: for the segment's header, the lease and messages about them.
struct WriterIdentity {
    std::string host;
    std::string boot_id; ///< changes with every boot of the host: tells a dead pid from one of before a reboot
    std::uint64_t pid = 0;
    friend bool operator==(const WriterIdentity&, const WriterIdentity&) = default;
};
/// Of this process.
[[nodiscard]] WriterIdentity this_writer();

/// A place in the journal between two frames, and the state of the chain there.
struct JournalPosition {
    std::uint32_t segment = 0;  ///< 0: before the first
    std::uint32_t chain = 0;    ///< CRC of the frame before, 0 at the beginning
    std::uint64_t bytes = 0;    ///< of the segment's payload that lie before it, its header included
    std::uint64_t sequence = 0; ///< number of the next record, counted from 0
    friend bool operator==(const JournalPosition&, const JournalPosition&) = default;
};

/// What reading a journal found.
struct JournalSummary {
    std::string uuid;
    std::uint32_t segments = 0;
    std::uint32_t incarnation = 0; ///< newest
    WriterIdentity writer;         ///< of the newest segment
    std::string job;
    std::uint32_t restart_count = 0; ///< of that job
    std::uint64_t records = 0;
    std::uint64_t cut_bytes = 0;    ///< at the end, of frames that cannot be used
    std::uint64_t cut_records = 0;  ///< that were written whole once, and are lost with them; 0: one that never was
    JournalPosition end;            ///< behind the last record
    std::uint64_t synced_below = 0; ///< records below this number are known to have been on the disk
};

struct JournalOptions {
    std::string directory; ///< of the study; segments lie in `<directory>/journal/`
    std::string uuid;      ///< at most 63 characters
    /// Larger than that of every earlier segment.
    std::uint32_t incarnation = 1;
    WriterIdentity writer = this_writer();
    /// What this head has read of the journal: only what follows is read when it takes over. Nothing: all of it.
    std::optional<JournalSummary> read;
    std::string job; ///< Slurm job id or empty, for the header
    std::uint32_t restart_count = 0;
    std::uint64_t first_segment_bytes =
        std::uint64_t{256} * 1024; ///< payload; doubles with every segment up to the limit
    std::uint64_t max_segment_bytes = std::uint64_t{64} * 1024 * 1024;
    base::Duration commit_interval = std::chrono::seconds(1);
    /// Asked for the whole state at every change of segment, on the thread that appends, during `append`: it is written
    /// right behind the records of that call, so the state must have them applied and nothing more. May be empty.
    std::function<study::Record()> snapshot;
};

/// The single writer of a study's journal. `append` returns when the records are *written*; a thread of its own makes
/// them *synced* at the latest `commit_interval` later, publishes segments ahead of need, and never holds up `append`
/// while the disk syncs.
///
/// Threads: `append` from one thread at a time; the rest from any. A failed write or sync moves the journal to a new
/// segment with everything that was not yet synced; when that fails too, this and every later call throws.
class Journal final : public study::RecordSink {
  public:
    /// Publishes a new segment (the first, or the one after the newest), which seals all earlier ones: what
    /// `read_journal` gives afterwards is final. Throws base::UsageError when another head published it first, or when
    /// the directory holds another study or a later incarnation; base::FormatError when the journal is damaged.
    Journal(FileSystem& files, JournalOptions options, base::LogSink& log);
    ~Journal() override; ///< closes without sealing or syncing; never throws

    /// Throws base::IoError when the records could not be written: nothing that follows from them may leave the head.
    /// Throws base::UsageError when another head took the study over.
    void append(const std::vector<study::Record>& records) override;
    /// Returns when everything appended so far is synced. Throws as `append`. Not from a `when_synced` callback.
    void sync();
    /// Calls `done` on the journal's thread when everything appended so far is synced (checkpoint deletion, final
    /// results); waits for the next commit and causes none. `done` must not throw, and must not call the journal.
    /// Never called when the journal fails or is destroyed before.
    void when_synced(std::function<void()> done);
    /// Syncs, seals the segment (mode 0444), ends the thread. Nothing can be appended afterwards. Throws as `append`.
    void close();

    /// Path of the segment that is written, when its file does not lie there any more: somebody has removed or moved
    /// it, and what is appended is lost. Empty: all is well. Asks the file system, so it may block; throws
    /// base::IoError when that cannot say.
    [[nodiscard]] std::string displaced() const;

    /// Number of the first record of this life: how many earlier lives left behind.
    [[nodiscard]] std::uint64_t first_record() const;

    struct Statistics {
        std::uint64_t records = 0; ///< appended by this writer, snapshots at segment changes included
        std::uint64_t bytes = 0;   ///< of their frames
        std::uint64_t synced = 0;  ///< records of all lives that are known to be on the disk
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
/// are passed on like any record. A torn tail ends the reading and is told in the summary; a damaged middle throws
/// base::FormatError with advice; so does a newer format. Throws base::UsageError when there is no journal.
JournalSummary read_journal(FileSystem& files, const std::string& directory,
                            const std::function<void(study::Record&&)>& visit);

/// The same without the snapshots, which may each be as large as the study's state, and behind record `limit` nothing.
JournalSummary read_history(FileSystem& files, const std::string& directory, std::uint64_t limit,
                            const std::function<void(study::Record&&)>& visit);

/// What a head needs to go on: the newest snapshot and what follows it, without decoding what lies before.
struct JournalTail {
    JournalSummary summary;
    std::optional<study::Snapshot> snapshot; ///< none: `records` begin with record 0
    study::Bytes records;                    ///< encoded one after the other, those behind the snapshot
};
/// Which frames are read and checked.
enum class Check {
    everything,     ///< all, as `read_journal` does: for whoever goes on with a study
    since_snapshot, ///< for whoever only looks: those from the newest snapshot on before which every record is known to
                    ///< be synced. A damaged frame before it goes unnoticed, a missing segment does not.
};
/// Ends at the same record with either check, and throws as `read_journal` does.
[[nodiscard]] JournalTail read_journal_tail(FileSystem& files, const std::string& directory, Check check);

[[nodiscard]] bool has_journal(const FileSystem& files, const std::string& directory);

} // namespace ranktune::storage
