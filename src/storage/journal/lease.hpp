// SPDX-License-Identifier: Apache-2.0
#pragma once
// The lease: who writes to a study directory, as a small file that its holder renews. It keeps a second head from
// starting; what makes a double head harmless is the journal, whose segments only one of them can publish.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ranktune/base/time.hpp"
#include "storage/file_system.hpp"
#include "storage/journal/journal.hpp"

namespace ranktune::storage {

/// The holder renews so often. A lease whose counter stands still for three periods of the *watcher's* clock is stale:
/// clocks and modification times of two nodes are never compared.
inline constexpr base::Duration lease_period = std::chrono::seconds(5);
inline constexpr int lease_periods = 3;

/// What the file says.
struct LeaseHolder {
    WriterIdentity writer;
    std::string pid_namespace;         ///< a pid means something within one only (containers share boot id and host)
    std::uint64_t process_started = 0; ///< clock ticks after the boot: tells a reused pid
    std::string job;                   ///< Slurm job id or empty
    std::uint32_t restart_count = 0;
    std::string nonce; ///< of this one lease
    std::uint64_t counter = 0;
    friend bool operator==(const LeaseHolder&, const LeaseHolder&) = default;
};
/// This process, with a new nonce.
[[nodiscard]] LeaseHolder this_holder(const std::string& job, std::uint32_t restart_count);
/// "host nid0041, pid 4711, job 81234"
[[nodiscard]] std::string describe(const LeaseHolder& holder);
[[nodiscard]] std::string lease_text(const LeaseHolder& holder);
/// Nothing when the text is no lease (half a copy, another format).
[[nodiscard]] std::optional<LeaseHolder> parse_lease(const std::string& text);
[[nodiscard]] std::string lease_path(const std::string& study_directory);
/// The lease on the directory, if there is one that can be read.
[[nodiscard]] std::optional<LeaseHolder> read_lease(FileSystem& files, const std::string& study_directory);

/// What can be said about a holder at once. unknown: only watching its counter will tell.
enum class LeaseState : std::uint8_t { stale, held, unknown };
/// `process` gives the start of a living process of this machine and namespace, nothing when it is dead.
[[nodiscard]] LeaseState judge(const LeaseHolder& holder, const LeaseHolder& me,
                               const std::function<std::optional<std::uint64_t>(std::uint64_t pid)>& process);
/// The real one: from /proc.
[[nodiscard]] std::optional<std::uint64_t> process_start(std::uint64_t pid);

/// How a taker waits and what it says meanwhile; tests give a clock of their own.
struct LeaseWait {
    std::function<base::Duration()> now;         ///< monotonic
    std::function<void(base::Duration)> sleep;   ///< about that long
    std::function<void(const std::string&)> say; ///< one sentence for people, before a wait of seconds; may be empty
};
[[nodiscard]] LeaseWait real_wait(std::function<void(const std::string&)> say);

/// Who holds the lease, unless that is known to be dead: answers at once.
[[nodiscard]] std::optional<LeaseHolder> possible_writer(FileSystem& files, const std::string& study_directory);
/// Whether somebody who lives holds the lease. A holder that only its counter can tell about is watched: up to 15 s.
[[nodiscard]] bool writer_lives(FileSystem& files, const std::string& study_directory, const LeaseWait& wait);

/// What became of a lease when it was to be renewed.
enum class Renewal : std::uint8_t {
    renewed,
    gone, ///< there is none any more, or nothing that is one: somebody removed it, or another head came and went
    taken ///< it is another head's
};

/// A lease that is held. Destroying it leaves the file, as a crash would.
class Lease {
  public:
    /// Waits for as long as the present holder's state is unknown. Throws base::UsageError naming host, pid and job
    /// of a holder that lives, also where this process could not write to the directory in any case.
    [[nodiscard]] static Lease take(FileSystem& files, const std::string& study_directory, const LeaseHolder& me,
                                    const LeaseWait& wait);
    /// Counts on, or writes nothing. Throws base::IoError when the file cannot be read or written now; it may work the
    /// next time.
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
