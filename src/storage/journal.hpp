// SPDX-License-Identifier: Apache-2.0
#pragma once
// The journal: segments of frames of records, as described in docs/developer/durability.md.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ranktune/base/log.hpp"
#include "ranktune/base/time.hpp"
#include "ranktune/study/record.hpp"
#include "storage/file_system.hpp"

namespace ranktune::storage {

struct JournalOptions {
    std::string directory; ///< of the study; segments lie in `<directory>/journal/`
    std::string uuid;
    std::uint32_t incarnation = 1;
    std::string job;                                ///< Slurm job id or empty, for the header
    std::uint64_t first_segment_bytes = 256 * 1024; ///< payload; doubles with every segment up to the limit
    std::uint64_t max_segment_bytes = 64 * 1024 * 1024;
    base::Duration commit_interval = std::chrono::seconds(1);
};

/// The single writer of a study's journal. `append` returns when the records are *written*; a thread of its own makes
/// them *synced* at the latest `commit_interval` later, publishes segments ahead of need, and never holds up `append`
/// while the disk syncs.
class Journal final : public study::RecordSink {
  public:
    /// Publishes a new segment (the first, or the one after the newest). Throws base::UsageError when another head
    /// published it first.
    Journal(FileSystem& files, JournalOptions options, base::LogSink& log);
    ~Journal() override; ///< closes without sealing; never throws

    void append(const std::vector<study::Record>& records) override;
    /// Returns when everything appended so far is synced. Throws base::IoError.
    void sync();
    /// Calls `done` on the journal's thread when everything appended so far is synced (checkpoint deletion, final
    /// results).
    void when_synced(std::function<void()> done);
    /// Syncs, seals the segment (mode 0444), ends the thread.
    void close();

    struct Statistics {
        std::uint64_t records = 0;
        std::uint64_t bytes = 0;
        std::uint64_t syncs = 0;
        double commit_p99_ms = 0.0;
    };
    [[nodiscard]] Statistics statistics() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// What reading a journal found.
struct JournalSummary {
    std::string uuid;
    std::uint32_t segments = 0;
    std::uint32_t incarnation = 0; ///< newest
    std::uint64_t records = 0;
    std::uint64_t cut_bytes = 0; ///< of an unfinished frame at the end
};

/// Reads all records in order, from record 0, by plain reads (no lock, no mmap): safe while a head writes. Snapshots
/// are passed on like any record. A torn tail ends the reading and is told in the summary; a damaged middle throws
/// base::FormatError with advice; so does a newer format. Throws base::UsageError when there is no journal.
JournalSummary read_journal(FileSystem& files, const std::string& directory,
                            const std::function<void(study::Record&&)>& visit);

[[nodiscard]] bool has_journal(const FileSystem& files, const std::string& directory);

} // namespace ranktune::storage
