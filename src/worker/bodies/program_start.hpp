// SPDX-License-Identifier: Apache-2.0
#pragma once
// ProgramStart: how a program's attempt begins on one rank: the folder of the attempt, the exchange of addresses, the
// process.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "process/child.hpp"
#include "process/program/environment.hpp"
#include "worker/bodies/printed_reports.hpp"
#include "worker/bodies/program_process.hpp"
#include "worker/checkpoints/named_paths.hpp"
#include "worker/trial/attempt_context.hpp"

namespace ranktune::worker {

/// What a rank has of its program once that runs.
struct StartedProgram {
    std::unique_ptr<ProgramProcess> process;
    std::shared_ptr<PrintedReports> printed; ///< rank 0, of a program that only prints; shared with its process
    NamedPaths::Folders folders;
    std::filesystem::file_time_type began; ///< rank 0: NamedPaths

    /// What the program calls `checkpoint`, absolute and normal.
    [[nodiscard]] std::string path_of(const std::string& checkpoint) const {
        return (std::filesystem::path(folders.works) / checkpoint).lexically_normal();
    }
    /// For a state that the program is asked for. A new folder each time, so that earlier checkpoints of the program
    /// are not adopted with it.
    [[nodiscard]] std::string folder_of(base::Iteration iteration) const {
        return folders.checkpoints + "/" + std::to_string(iteration);
    }
};

/// Lives no longer than ProgramBody::start. May take over the process in `spare`.
class ProgramStart {
  public:
    ProgramStart(const AttemptParts& parts, Spare& spare);

    /// Collective. As TrialBody::start.
    [[nodiscard]] StartedProgram start(const study::CheckpointRef* checkpoint) &&;

  private:
    using Clock = process::Child::Clock;

    [[nodiscard]] bool leads() const { return assignment_.leads(); }
    [[nodiscard]] const study::ProgramSpec& program() const { return *setting_.spec->trainable.program; }
    [[nodiscard]] std::string locate(const study::CheckpointRef& checkpoint);
    [[nodiscard]] bool is_task() const;
    [[nodiscard]] bool processes_stay();
    void prepare_process();
    void set_up();
    void make_scratch();
    void write_configuration() const;
    void start_process(const std::string& checkpoint);
    void start_function(const std::vector<std::string>& environment);
    [[nodiscard]] const std::shared_ptr<process::Interpreter>& interpreter(const std::vector<std::string>& environment);
    void go_on_with_process(const std::string& checkpoint);
    [[nodiscard]] std::string config_path() const { return scratch_ + "/config.json"; }
    void meet(process::ProgramFacts& facts);
    [[nodiscard]] std::vector<std::string> words() const;

    const AttemptSetting& setting_;
    const Assignment& assignment_;
    const space::Configuration& configuration_;
    GroupCollective& group_;
    AttemptPort& port_;
    Spare& spare_;
    std::string scratch_; ///< folder of the program
    std::string checkpoint_directory_;
    std::string trial_folder_; ///< for {folder}; exists if the program asks for it
    std::string works_in_;
    /// Its configuration. (Thousands of short attempts of a function follow each other: each file and folder counts.)
    bool reads_file_;
    std::unique_ptr<ProgramProcess> process_;
    std::shared_ptr<PrintedReports> printed_;
};

} // namespace ranktune::worker
