// SPDX-License-Identifier: Apache-2.0
#pragma once
// ProgramProcess: the process of a program on one rank, with what lives as long as the process does.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "process/child.hpp"
#include "process/interpreter.hpp"
#include "process/output_limit.hpp"

namespace ranktune::worker {

/// Used only by the thread that made it, like the Child.
class ProgramProcess {
  public:
    using Write = std::function<void(std::string_view)>;

    /// `write`: one line that the program printed.
    explicit ProgramProcess(Write write) : output_({}, std::move(write)) {}
    /// Stops the process, then removes its folder.
    ~ProgramProcess();
    ProgramProcess(const ProgramProcess&) = delete;
    ProgramProcess& operator=(const ProgramProcess&) = delete;

    /// Rank 0: `folder` is the program's, and removed at its end.
    void own(std::string folder) { folder_ = std::move(folder); }
    /// Empty: none, or another rank's.
    [[nodiscard]] const std::string& folder() const { return folder_; }
    /// Starts the process; see Child for the errors. `heard`: gets each line that it prints, beside the log.
    void start(const std::vector<std::string>& words, const std::vector<std::string>& environment,
               const std::string& directory, process::Child::Clock::duration term_grace, Write heard = {});
    /// The same for an attempt of the study's function.
    void start(const std::shared_ptr<process::Interpreter>& interpreter, const std::vector<std::string>& environment,
               const std::string& directory, process::Child::Clock::duration term_grace);
    /// Requires `start`.
    [[nodiscard]] process::Child& child() const { return *child_; }
    /// One line for the log.
    void print(std::string_view line) { output_.line(line); }
    /// An attempt is over: what is printed from now on belongs to the next one, with a limit of its own.
    void end_output();
    /// Of the lines from now on.
    void write_to(Write write) { output_.write_to(std::move(write)); }

  private:
    process::OutputLimit output_;
    std::string folder_;
    std::unique_ptr<process::Child> child_; // last: writes to `output_`
};

} // namespace ranktune::worker
