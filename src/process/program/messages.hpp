// SPDX-License-Identifier: Apache-2.0
#pragma once
// The messages between a program and its worker: JSON, one object per line. Reference:
// docs/reference/program-protocol.md.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ranktune/space/configuration.hpp"
#include "ranktune/study/vocabulary.hpp"

namespace ranktune::process {

/// An iteration is complete on this rank.
struct ProgramReport {
    std::vector<std::pair<std::string, double>> metrics;
    std::vector<std::pair<std::string, std::string>> texts; ///< side values that are no numbers, by name
    std::optional<std::string> checkpoint;                  ///< state after this iteration, saved already or `pending`
    std::optional<std::uint64_t> pending; ///< this rank's part is being written; ProgramDone with this number follows
    bool can_save = false;                ///< the program saves when it is told to pause
    bool can_go_on = false;               ///< told to save, it can also go on afterwards
    bool exploits =
        false; ///< told to exploit, the program goes on in the same process, with the state that it is given
    std::optional<base::Iteration> iteration; ///< by the program's count
};
/// The numbers and texts of the JSON object that the last line of a program's output is; none if it is not one.
[[nodiscard]] ProgramReport values_on_last_line(std::string_view line);

/// A kept program is done with its task.
struct ProgramResult {
    std::vector<std::pair<std::string, double>> metrics;
    std::vector<std::pair<std::string, std::string>> texts; ///< values that are no numbers, by name
    std::uint64_t task = 0;                                 ///< as the message of the task had it, like `attempt`
    std::uint64_t attempt = 0;
};
/// A program's predictions for a batch lie in the memory of the batch (ProgramBatch): y row by row, in the byte order
/// of this machine, and directly behind it, of a classifier, the class of each row as int32.
struct ProgramPredicted {
    std::uint64_t batch = 0;          ///< as the message of the batch had it
    std::string type;                 ///< of y: "float32"
    std::vector<std::uint64_t> shape; ///< of y: [rows, ...]
    bool classifies = false;
};
/// A kept program has loaded what it needs: the time of its first task begins.
struct ProgramReady {};
/// The program has saved the state that it was asked for, on this rank.
struct ProgramSaved {
    std::string checkpoint;
};
/// This rank's part of a pending checkpoint is complete.
struct ProgramDone {
    std::uint64_t pending = 0;
    std::string error; ///< not empty: it could not be written
};
/// Why the program is about to end.
struct ProgramFailed {
    /// error: an exception. saving: an exception while it saved its state. storage: a file cannot be written, which is
    /// nobody's fault. device_memory: that of its GPU is full.
    enum class What : std::uint8_t { error, saving, storage, device_memory };
    What what = What::error;
    std::string text; ///< what happened, and where; empty: the program does not say
};
struct ProgramLog {
    std::string text;
};
using ProgramMessage = std::variant<ProgramReport, ProgramResult, ProgramPredicted, ProgramReady, ProgramSaved,
                                    ProgramDone, ProgramFailed, ProgramLog>;

/// Reads one line. Accepts NaN and infinities bare or as strings, null as NaN. Adds unknown keys to `unknown`. Throws
/// base::FormatError.
[[nodiscard]] ProgramMessage parse_program_message(std::string_view line, std::vector<std::string>& unknown);

/// The answer to a report, with its newline. discard is sent as stop.
[[nodiscard]] std::string decision_line(study::Verb verb, base::Iteration iteration,
                                        const std::optional<std::string>& save_to = {});

/// The answer to a report with `exploits`, with its newline: the program goes on from `checkpoint` with
/// `configuration`. `iteration`: completed so far.
[[nodiscard]] std::string exploit_line(base::Iteration iteration, base::AttemptId attempt,
                                       const std::string& checkpoint, const space::Configuration& configuration);

/// What a kept program is to do next, with its newline. It answers with a ProgramResult.
[[nodiscard]] std::string task_line(base::TrialId trial, base::AttemptId attempt, std::uint64_t seed,
                                    const space::Configuration& configuration);

/// Samples for a program that predicts, in one of the memories whose descriptors it got with its first batch.
struct ProgramBatch {
    struct Column {
        std::string name;
        std::string type;               ///< "uint8"
        std::vector<std::size_t> shape; ///< of a row
        std::uint64_t offset = 0;       ///< in the memory
    };
    std::uint64_t number = 0; ///< of the batch, for this process, from 0
    std::size_t memory = 0;   ///< which one
    std::uint64_t first = 0;  ///< number of the first sample
    std::size_t rows = 0;
    std::vector<Column> columns;
    std::uint64_t y_offset = 0; ///< in the memory, which the program makes as long as it needs
};
/// With its newline. The program answers with a ProgramPredicted.
[[nodiscard]] std::string batch_line(const ProgramBatch& batch);

/// What the interpreter of a function is asked for, with its newline: an attempt with this environment (`NAME=value`)
/// in this directory.
[[nodiscard]] std::string start_request(const std::vector<std::string>& environment, const std::string& directory);
/// The answer to it.
struct Started {
    std::int64_t pid = 0; ///< 0: it could not
    std::string error;
};
/// Throws base::FormatError.
[[nodiscard]] Started parse_started(std::string_view line);
/// What an interpreter that calls the function itself says at the end of an attempt.
struct Returned {
    int code = 0;      ///< the exit code that a process would have
    bool ends = false; ///< it does no further attempt
};
/// Throws base::FormatError.
[[nodiscard]] Returned parse_returned(std::string_view line);
/// Whether the interpreter says that it can be asked.
[[nodiscard]] bool is_ready_message(std::string_view line);

/// The configuration as JSON: nested names as nested objects.
[[nodiscard]] std::string configuration_json(const space::Configuration& configuration);

/// JSON has no NaN and no infinity, but Python and others write them: quoted, they can be parsed.
[[nodiscard]] std::string quote_non_finite(std::string_view line);

/// Splits a byte stream into lines.
class LineBuffer {
  public:
    static constexpr std::size_t longest = std::size_t{1} << 20U;

    void add(std::string_view bytes) { pending_.append(bytes); }
    /// The next complete line without its newline. Throws base::FormatError when it is longer than `longest`.
    [[nodiscard]] std::optional<std::string> next();
    /// The bytes after the last newline.
    [[nodiscard]] std::string rest() const { return pending_.substr(begin_); }

  private:
    std::string pending_;
    std::size_t begin_ = 0;
};

} // namespace ranktune::process
