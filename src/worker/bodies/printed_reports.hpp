// SPDX-License-Identifier: Apache-2.0
#pragma once
// The reports of a program that only prints.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "process/child.hpp"
#include "ranktune/study/spec.hpp"
#include "ranktune/trainables/trainable.hpp"
#include "study/printed_values.hpp"

namespace ranktune::worker {

/// On rank 0, from the start of the process to its end.
class PrintedReports {
  public:
    PrintedReports(const study::ProgramSpec& program, const study::Objective& objective);

    /// A line that the program printed. Never throws.
    void line(std::string_view text);
    /// What the last line gave does not count: it was cut.
    void forget_last_line();
    /// The next report that its lines made. Throws base::Error when a line had something else than a number.
    [[nodiscard]] std::optional<process::ProgramReport> next();
    /// The one report that `result` makes of the end of the process, once. Throws base::Error: it printed no number.
    [[nodiscard]] std::optional<process::ProgramReport> at_end(const process::Child& ended);

  private:
    study::PrintedResult result_;
    std::string metric_;
    std::optional<study::PrintedValues> values_;
    std::deque<trainables::Metrics> reports_;
    std::string mistake_;
    enum class Last : std::uint8_t { nothing, report, mistake } last_ = Last::nothing; ///< what the last line gave
    bool over_ = false;
};

/// Of a task that has succeeded: 0 for the study's metric, unless it gave a value. Its exit code is no value: what a
/// task calls study::task_metric gets the name that tables give to a metric whose name is taken, "metric.exit_code".
void complete_task(trainables::Metrics& metrics, std::vector<std::pair<std::string, std::string>>& texts,
                   const std::string& metric);

/// Whether the end of a process is no failure: with `result = "exit-code"` any code is a result.
[[nodiscard]] inline bool ended_well(const process::ChildExit& exit, const study::ProgramSpec& program) {
    return exit.clean() || (program.result == study::PrintedResult::exit_code && exit.signal == 0);
}

} // namespace ranktune::worker
