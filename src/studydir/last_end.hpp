// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the previous start ended, and whether its trials are suspected for it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ranktune/study/event.hpp"
#include "studydir/open_study.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::studydir {

/// Whoever restarts the study sets this variable to the name of how the previous start ended. `ranktune supervise`
/// does.
inline constexpr const char* last_end_variable = "RANKTUNE_LAST_END";
enum class ToldEnd : std::uint8_t {
    crash,  ///< one of its processes died
    outside ///< a node failed, or a person killed it
};
[[nodiscard]] std::string_view name(ToldEnd end);
/// The value of last_end_variable; nothing: not set, or an unknown word.
[[nodiscard]] std::optional<ToldEnd> told_end();

/// What is known about the previous end.
struct LastEnd {
    bool trials_ran = false;             ///< the journal ends with attempts under way
    bool requeued = false;               ///< Slurm has requeued the job since
    std::optional<ToldEnd> told;         ///< by whoever restarted the study
    std::optional<OutcomeFile> outcome;  ///< written by the head of that start
    std::vector<study::CrashNote> notes; ///< of ranks that ended through their trial's fault
    std::vector<study::CrashNote> sick;  ///< of ranks whose GPU did not answer any more
};

/// The job's death as the core records it; nothing when there was none, or its cause came from outside (a signal, a
/// preemption, a failed node, a full disk).
[[nodiscard]] std::optional<study::JobDeath> death_of_job(const LastEnd& end);

/// Gathers the facts. Throws base::IoError when a file cannot be read.
[[nodiscard]] LastEnd last_end(storage::FileSystem& files, const std::string& directory, const OpenedStudy& opened);

} // namespace ranktune::studydir
