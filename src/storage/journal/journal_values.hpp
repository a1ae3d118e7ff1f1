// SPDX-License-Identifier: Apache-2.0
#pragma once
// Values of a journal: who writes it, positions in it, what was read.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "ranktune/base/time.hpp"
#include "ranktune/study/record.hpp"

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

} // namespace ranktune::storage
