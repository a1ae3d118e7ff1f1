// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a program and the worker that started it say to each other: JSON, one object per line.
// docs/reference/program-protocol.md is the reference.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ranktune/study/vocabulary.hpp"
#include "ranktune/trainables/trainable.hpp"

namespace ranktune::trainables {

/// An iteration is complete on this rank.
struct ProgramReport {
    Metrics metrics;
    std::optional<std::string> checkpoint;    ///< the state after this iteration, saved already
    bool can_save = false;                    ///< will save when it is told to pause
    std::optional<base::Iteration> iteration; ///< as the program counts
};
/// The state that the program was asked for.
struct ProgramSaved {
    std::string checkpoint;
};
struct ProgramLog {
    std::string text;
};
using ProgramMessage = std::variant<ProgramReport, ProgramSaved, ProgramLog>;

/// Reads one line. NaN and the infinities are taken bare or as strings, null as NaN. Keys that mean nothing are added
/// to `unknown`. Throws base::FormatError.
[[nodiscard]] ProgramMessage parse_program_message(std::string_view line, std::vector<std::string>& unknown);

/// The answer to a report, with its line end. discard is told as stop.
[[nodiscard]] std::string decision_line(study::Verb verb, base::Iteration iteration,
                                        const std::optional<std::string>& save_to = {});

/// The configuration as JSON: nested names as nested objects.
[[nodiscard]] std::string configuration_json(const space::Configuration& configuration);

/// Cuts what arrives into lines.
class LineBuffer {
  public:
    static constexpr std::size_t longest = std::size_t{1} << 20U;

    void add(std::string_view bytes) { pending_.append(bytes); }
    /// The next whole line without its end. Throws base::FormatError when it is longer than `longest`.
    [[nodiscard]] std::optional<std::string> next();
    /// What came after the last line end.
    [[nodiscard]] std::string rest() const { return pending_.substr(begin_); }

  private:
    std::string pending_;
    std::size_t begin_ = 0;
};

} // namespace ranktune::trainables
