// SPDX-License-Identifier: Apache-2.0
#pragma once
// The process of a program that makes suggestions, from its first question on.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "head/external/protocol.hpp"
#include "process/child.hpp"

namespace ranktune::head {

/// Asks one question after the other. The program is started by the first one, and again by the first one after a
/// failure. A new process is told everything from the beginning, another one only what it was not told yet. Used only
/// by the thread that made it; the end of that thread kills the program.
class SearchProgram {
  public:
    /// `say`: called with each line that the program writes to its standard error. `called_off`: asked while an answer
    /// is awaited; true: nobody needs it any more.
    SearchProgram(
        std::vector<std::string> environment, std::function<void(std::string_view)> say,
        std::function<bool()> called_off = [] { return false; })
        : environment_(std::move(environment)), say_(std::move(say)), called_off_(std::move(called_off)) {}

    /// Blocks for at most the time-out or until called off, and a second for the end of a program that failed. Throws
    /// base::Error, which names the program and says what it did wrong; the program is ended then.
    [[nodiscard]] space::Configuration answer(const searchers::ExternalQuestion& question);

  private:
    using Clock = process::Child::Clock;

    [[nodiscard]] space::Configuration converse(const searchers::ExternalQuestion& question);
    void start(const searchers::ExternalSetting& setting);
    void send(const std::string& line, Clock::time_point end);
    [[nodiscard]] std::string wait_for_line(Clock::time_point end);
    void wait_until(Clock::time_point end);

    std::vector<std::string> environment_;
    std::function<void(std::string_view)> say_;
    std::function<bool()> called_off_;
    std::optional<process::Child> child_;
    Teller teller_;
    std::size_t told_ = 0; ///< lines of the table
};

/// The variables of this process, without those of launchers, and RANKTUNE_STUDY_DIR.
[[nodiscard]] std::vector<std::string> program_environment(const std::string& study_directory);

} // namespace ranktune::head
