// SPDX-License-Identifier: Apache-2.0
#pragma once
// Side tasks: commands of the user beside the trials ([before], [after_trial], [after] of the study file). Each takes
// one rank. Neither schedulers nor searchers hear of them.

#include <cstdint>
#include <optional>
#include <string>

#include "ranktune/study/vocabulary.hpp"

namespace ranktune::study {

struct SideTask {
    /// before: the first trial. after_trial: `trial` has ended. after: the study is complete.
    enum class Kind : std::uint8_t { before = 0, after_trial = 1, after = 2 };
    Kind kind = Kind::before;
    TrialId trial; ///< zero unless kind is after_trial
    static void fields(auto&& each, auto& t) { each(t.kind, t.trial); }
    friend bool operator==(const SideTask&, const SideTask&) = default;
};
inline constexpr SideTask::Kind last_side_task = SideTask::Kind::after;

/// "before", "after_trial", "after": the table of the study file.
[[nodiscard]] std::string_view name(SideTask::Kind kind);
/// "before", "after_trial 7", "after".
[[nodiscard]] std::string describe(const SideTask& task);

/// What messages and commands about an attempt of the task have in place of a trial's number. Trials have smaller
/// numbers: study.num_trials is below 2^31.
[[nodiscard]] TrialId unit_of(const SideTask& task);
/// The task with this number; nullopt: the number is a trial's.
[[nodiscard]] std::optional<SideTask> side_task_of(TrialId unit);
/// In logs and names of files: "7" for a trial, "before", "7.after" for what follows trial 7, "after".
[[nodiscard]] std::string unit_text(TrialId unit);

} // namespace ranktune::study
