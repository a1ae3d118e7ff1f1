// SPDX-License-Identifier: Apache-2.0
#include "worker/bodies/program_facts.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "process/spawn.hpp"
#include "ranktune/base/error.hpp"
#include "storage/file_system.hpp"
#include "storage/unique_handle.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::worker {
namespace {

/// A name of the folder for a variable that divides at colons: where it has one itself, the folder among the open files
/// of this process, which the program cannot outlive. The process has one study directory, so one is kept open.
std::string list_entry(const std::string& folder) {
    if (folder.find(':') == std::string::npos) return folder;
    static const storage::FileDescriptor opened(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const std::string name = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(opened.get());
    if (opened && access(name.c_str(), R_OK | X_OK) == 0) return name;
    throw process::SetUpError("the path '" + folder +
                              "' has a ':', which divides PYTHONPATH, and it cannot be passed on by " + name +
                              ": choose a study directory without one (-o DIR)");
}

} // namespace

std::string name_of(const study::StartTrial& start) {
    return study::unit_text(start.trial) + "-" + std::to_string(start.incarnation.value()) + "." +
           std::to_string(start.attempt.value());
}

process::ProgramFacts facts_of(const AttemptSetting& setting, const Assignment& assignment) {
    const study::StudySpec& spec = *setting.spec;
    const auto& start = assignment.start;
    process::ProgramFacts facts;
    facts.study = spec.name;
    facts.study_directory = setting.program->directory;
    facts.python_path = list_entry(studydir::StudyDirectory{setting.program->directory}.python());
    const auto task = study::side_task_of(start.trial);
    if (!task)
        facts.trial = start.trial;
    else if (task->kind == study::SideTask::Kind::after_trial)
        facts.trial = task->trial;
    else
        facts.trial.reset();
    facts.attempt = start.attempt;
    facts.seed = spec.seed_of(facts.trial.value_or(base::TrialId{}));
    facts.iterations = spec.max_iterations;
    facts.iteration = assignment.first_iteration();
    facts.objective = spec.objective;
    facts.data = spec.data;
    facts.cpus_per_rank = spec.resources.cpus_per_rank;
    facts.gpu_share = spec.resources.gpu_share;
    facts.run_id = spec.name + "-" + name_of(start);
    return facts;
}

space::Configuration with_number(space::Configuration configuration, const study::StartTrial& start) {
    const space::Value* row = start.configuration.find(study::row_parameter);
    if (row != nullptr && !configuration.contains(study::row_parameter)) configuration.set(study::row_parameter, *row);
    return configuration;
}

process::Child::Clock::duration term_grace_of(const study::StudySpec& spec) {
    return std::min<process::Child::Clock::duration>(process::Child::usual_term_grace, spec.output.abort_grace / 2);
}

void need_directory(const ProgramSetting& setting) try {
    const studydir::StudyDirectory directory{setting.directory};
    static_cast<void>(storage::posix_file_system().open(directory.python_module(), storage::FileSystem::Open::read));
} catch (const base::IoError& error) {
    throw process::SetUpError(error.what());
}

} // namespace ranktune::worker
