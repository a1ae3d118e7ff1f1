// SPDX-License-Identifier: Apache-2.0
#pragma once
// The messages between the head and a program that makes suggestions: JSON, one object per line. Reference:
// docs/reference/searcher-protocol.md.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/study/objective.hpp"
#include "searchers/external.hpp"

namespace ranktune::head {

/// The first line: the study and its space. With its newline, as all below.
[[nodiscard]] std::string study_line(const searchers::ExternalSetting& setting);

/// The table of observations as lines, one after the other.
class Teller {
  public:
    /// What line `line` of the table says. To be called for every line once, ascending.
    [[nodiscard]] std::string next(const searchers::ExternalQuestion& question, std::size_t line);

  private:
    std::vector<study::Score> last_; ///< by trial: its last score; without values: none
};

[[nodiscard]] std::string ask_line(std::uint64_t ticket);

/// The configuration in the answer to ask_line(ticket). Constants and grids may be left out, and so may parameters
/// whose conditions do not hold; these and other names are ignored. Rounding is forgiven: 3.0 for an integer,
/// 0.30000000000000004 for a multiple of 0.1, and the upper bound of a float. Throws base::FormatError that says what
/// is wrong with the line.
[[nodiscard]] space::Configuration read_answer(std::string_view line, std::uint64_t ticket,
                                               const space::SearchSpace& space);

} // namespace ranktune::head
