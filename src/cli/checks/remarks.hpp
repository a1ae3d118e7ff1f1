// SPDX-License-Identifier: Apache-2.0
#pragma once
// Options and changes that have no effect on an existing study, in sentences: nothing is ignored silently.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ranktune/study/spec.hpp"
#include "report/screens/text.hpp"
#include "studydir/open_study.hpp"

namespace ranktune::cli {

struct RunArguments;

/// One sentence per option or group of changes; empty: everything takes effect. For a finished study, changed keys are
/// named together with what would make them count.
[[nodiscard]] std::vector<std::string> without_effect(const RunArguments& arguments,
                                                      const studydir::OpenedStudy& opened);

// ---- Room for checkpoints.

/// The largest state among the first configurations; nothing when the trainable does not know it before a run.
[[nodiscard]] std::optional<std::uint64_t> state_bytes(const study::StudySpec& spec);
/// Whether checkpoint.max_bytes is too small for a study whose trials cannot do without theirs, as lines of a screen;
/// empty: it is not.
[[nodiscard]] std::string room_warning(const study::StudySpec& spec, const report::Style& style);

// ---- Likely mistakes in the command of a study of programs, found on this machine before any trial fails.

/// Why the program of a command, or the script that its interpreter is given, cannot be started on this machine; empty:
/// nothing is wrong, or nothing is known. Looked at are the first word, and the first argument of Python, a shell,
/// Rscript, julia, perl, ruby or node when no option stands before it (of Python: -u, -O and the like may). Not looked
/// at: words with placeholders, `shell = true`, and everything inside a container.
[[nodiscard]] std::string missing_in_command(const study::ProgramSpec& program);

/// For a job script as the command of tasks: the #SBATCH lines that ask for more than a task has, and the keys that
/// give it that; empty: there are none.
[[nodiscard]] std::string job_script_warning(const std::string& script, const study::ResourceSpec& resources);

/// One sentence per likely mistake, with its remedy: a launcher in the command, what missing_in_command finds, or
/// job_script_warning. Empty when the trials are not programs.
[[nodiscard]] std::vector<std::string> command_warnings(const study::StudySpec& spec);

// ---- What [space] means, where other tools mean something else.

/// One sentence per remark: that nothing is tuned, in all or in a nested table with numbers, that multiples do not
/// begin at the lower bound, that two values make the same argument.
[[nodiscard]] std::vector<std::string> space_remarks(const study::StudySpec& spec);

/// These warnings and remarks as lines of a screen.
[[nodiscard]] std::string command_warning_lines(const study::StudySpec& spec, const report::Style& style);

} // namespace ranktune::cli
