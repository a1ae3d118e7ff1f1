// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the start before ended: whether that death of the job speaks against the trials that ran.

#include <optional>
#include <string>

#include "ranktune/study/event.hpp"
#include "studydir/open_study.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::studydir {

/// By this variable whoever starts the study again says how the start before ended: `crash` (a process of it died) or
/// `outside` (a node failed, somebody killed it on purpose). `ranktune supervise` sets it.
inline constexpr const char* last_end_variable = "RANKTUNE_LAST_END";

/// What is known about it.
struct LastEnd {
    bool trials_ran = false;            ///< the journal ends with attempts under way
    bool requeued = false;              ///< Slurm has started the job again by itself since
    std::string told;                   ///< value of last_end_variable
    std::optional<OutcomeFile> outcome; ///< the head of that start left it
    std::vector<study::CrashNote> notes;
};

/// Nothing: no death, or one that came from outside (a signal, a preemption, a failed node, a full disk).
[[nodiscard]] std::optional<study::JobDeath> death_of_job(const LastEnd& end);

/// Gathers the facts. Throws base::IoError when the files that tell them cannot be read.
[[nodiscard]] LastEnd last_end(storage::FileSystem& files, const std::string& directory, const OpenedStudy& opened);

} // namespace ranktune::studydir
