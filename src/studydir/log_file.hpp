// SPDX-License-Identifier: Apache-2.0
#pragma once
// LogFile: log lines for people and for grep, appended whole so that several processes can share a file.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/base/log.hpp"
#include "storage/unique_handle.hpp"

namespace ranktune::studydir {

/// `2026-11-20T02:14:07.113Z`: UTC, milliseconds, RFC 3339.
[[nodiscard]] std::string wall_time_now();

/// One line without its time and newline: `I start job=81234 mpi="Open MPI 4.1.4"`. A value with a blank, a quote, an
/// equals sign or a control character is quoted; quotes, backslashes and newlines are escaped, so a line stays a line.
[[nodiscard]] std::string log_line(base::LogLevel level, std::string_view event,
                                   const std::vector<base::LogField>& fields);

/// Appends to one file with a single write per line (O_APPEND: lines of several ranks of a node do not mix).
/// Thread-safe without a lock. A failing write is dropped: a log must never end a study.
class LogFile final : public base::LogSink {
  public:
    /// Creates the file and its folder when needed; follows no symbolic link to it. `always` is added to each line in
    /// front of the other fields. Throws base::IoError.
    explicit LogFile(const std::string& path, std::vector<base::LogField> always = {});

    void write(base::LogLevel level, std::string_view event, const std::vector<base::LogField>& fields) override;
    /// The same with a text behind ` | ` that is written as it is.
    void write_text(std::string_view event, const std::vector<base::LogField>& fields, std::string_view text);
    /// For handlers of signals, which may only write(2).
    [[nodiscard]] int fd() const { return fd_.get(); }

  private:
    void append(base::LogLevel level, std::string_view event, const std::vector<base::LogField>& fields,
                std::string_view rest);

    storage::FileDescriptor fd_;
    std::vector<base::LogField> always_;
};

} // namespace ranktune::studydir
