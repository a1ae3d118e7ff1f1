// SPDX-License-Identifier: Apache-2.0
#pragma once
// Studies with side tasks, and without.

#include "ranktune/study/spec.hpp"
#include "study/printed_values.hpp"

namespace ranktune::study {

[[nodiscard]] inline bool has_side_tasks(const StudySpec& spec) {
    return !spec.before.command.empty() || !spec.after_trial.command.empty() || !spec.after.command.empty();
}

/// Needs the folder of ranktune.py.
[[nodiscard]] inline bool runs_commands(const StudySpec& spec) { return runs_programs(spec) || has_side_tasks(spec); }

/// [before] may write the files of [data]: they are staged when it has ended.
[[nodiscard]] inline bool makes_staged_files(const StudySpec& spec) {
    return spec.staging.stage && !spec.before.command.empty();
}

/// For a study that is simulated, or looked at before it begins: its trials are the same.
[[nodiscard]] inline StudySpec without_side_tasks(StudySpec spec) {
    spec.before = spec.after_trial = spec.after = {};
    spec.resources.helpers = 0;
    return spec;
}

} // namespace ranktune::study
