// SPDX-License-Identifier: Apache-2.0
#pragma once
// The lease: a small file that names the writer of a study directory and that its holder renews. It keeps a second head
// from starting. If two heads run nevertheless, the journal protects the study: only one of them can publish the next
// segment.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ranktune/base/time.hpp"
#include "storage/file_system.hpp"
#include "storage/journal/journal.hpp"

namespace ranktune::storage {

/// Interval of renewals. A lease whose counter does not change for three periods of the *watcher's* clock is stale:
/// clocks and modification times of two nodes are never compared.
inline constexpr base::Duration lease_period = std::chrono::seconds(5);
inline constexpr int lease_periods = 3;

/// Contents of the lease file.
struct LeaseHolder {
    WriterIdentity writer;
    std::string pid_namespace;         ///< a pid is valid only within one (containers share boot id and host)
    std::uint64_t process_started = 0; ///< clock ticks since boot: detects a reused pid
    std::string job;                   ///< Slurm job id or empty
    std::uint32_t restart_count = 0;
    std::string nonce; ///< identifies this lease
    std::uint64_t counter = 0;
    friend bool operator==(const LeaseHolder&, const LeaseHolder&) = default;
};
/// This process, with a new nonce.
[[nodiscard]] LeaseHolder this_holder(const std::string& job, std::uint32_t restart_count);
/// "host nid0041, pid 4711, job 81234"
[[nodiscard]] std::string describe(const LeaseHolder& holder);
[[nodiscard]] std::string lease_text(const LeaseHolder& holder);
/// Nothing when the text is not a lease (incomplete, another format).
[[nodiscard]] std::optional<LeaseHolder> parse_lease(const std::string& text);
[[nodiscard]] std::string lease_path(const std::string& study_directory);
/// The directory's lease; nothing when there is none or it is not valid. Throws base::IoError.
[[nodiscard]] std::optional<LeaseHolder> read_lease(FileSystem& files, const std::string& study_directory);

/// What is known about a holder without waiting. unknown: its counter must be watched.
enum class LeaseState : std::uint8_t { stale, held, unknown };
/// `process` returns the start time of a live process on this machine and in this namespace, nothing when it is dead.
[[nodiscard]] LeaseState judge(const LeaseHolder& holder, const LeaseHolder& me,
                               const std::function<std::optional<std::uint64_t>(std::uint64_t pid)>& process);
/// Reads the start time from /proc.
[[nodiscard]] std::optional<std::uint64_t> process_start(std::uint64_t pid);

/// How to wait for a lease and report it; tests supply their own clock.
struct LeaseWait {
    std::function<base::Duration()> now;         ///< monotonic
    std::function<void(base::Duration)> sleep;   ///< for about this long
    std::function<void(const std::string&)> say; ///< called with one sentence before a wait of seconds; may be empty
};
[[nodiscard]] LeaseWait real_wait(std::function<void(const std::string&)> say);

/// The lease's holder, unless it is known to be dead. Does not wait.
[[nodiscard]] std::optional<LeaseHolder> possible_writer(FileSystem& files, const std::string& study_directory);
/// Whether a live process holds the lease. Watches a holder in state unknown for up to 15 s.
[[nodiscard]] bool writer_lives(FileSystem& files, const std::string& study_directory, const LeaseWait& wait);

/// Outcome of a renewal.
enum class Renewal : std::uint8_t {
    renewed,
    gone, ///< no valid lease file: somebody removed it, or another head took and released it
    taken ///< another head holds the lease
};

/// A held lease. The destructor leaves the file, as a crash would.
class Lease {
  public:
    /// Waits while the present holder's state is unknown. Throws base::UsageError with host, pid and job of a live
    /// holder, even when this process may not write to the directory anyway.
    [[nodiscard]] static Lease take(FileSystem& files, const std::string& study_directory, const LeaseHolder& me,
                                    const LeaseWait& wait);
    /// Increments the counter if the lease is still this holder's; otherwise writes nothing. Throws base::IoError when
    /// the file cannot be read or written; the next call may succeed.
    [[nodiscard]] Renewal renew();
    /// Removes the file if it is still this holder's. Never throws.
    void release() noexcept;
    [[nodiscard]] const LeaseHolder& holder() const { return me_; }

  private:
    Lease(FileSystem& files, std::string path, LeaseHolder me)
        : files_(&files), path_(std::move(path)), me_(std::move(me)) {}

    FileSystem* files_;
    std::string path_;
    LeaseHolder me_;
};

} // namespace ranktune::storage
