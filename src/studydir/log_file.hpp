// SPDX-License-Identifier: Apache-2.0
#pragma once
// LogFile: log lines for people and grep. Each line is one write, so several processes can share a file.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/base/log.hpp"
#include "storage/unique_handle.hpp"

namespace ranktune::studydir {

/// `2026-11-20T02:14:07.113Z`: UTC, milliseconds, RFC 3339.
[[nodiscard]] std::string wall_time_now();

/// One line without time and newline: `I start job=81234 mpi="Open MPI 4.1.4"`. Values with a space, quote, equals sign
/// or control character are quoted; quotes, backslashes and newlines are escaped, so a record is always one line.
[[nodiscard]] std::string log_line(base::LogLevel level, std::string_view event,
                                   const std::vector<base::LogField>& fields);

/// Appends to one file with a single write per line (O_APPEND: lines of several ranks of a node do not mix).
/// Thread-safe without a lock. A failing write is dropped: a log must never end a study.
class LogFile final : public base::LogSink {
  public:
    /// Creates the file and its folder if needed; does not follow a symbolic link. `always` precedes the other fields
    /// of each line. Throws base::IoError.
    explicit LogFile(const std::string& path, std::vector<base::LogField> always = {});

    void write(base::LogLevel level, std::string_view event, const std::vector<base::LogField>& fields) override;
    /// The same, followed by ` | ` and `text` unchanged.
    void write_text(std::string_view event, const std::vector<base::LogField>& fields, std::string_view text);
    /// For signal handlers, which may only call write(2).
    [[nodiscard]] int fd() const { return fd_.get(); }

  private:
    void append(base::LogLevel level, std::string_view event, const std::vector<base::LogField>& fields,
                std::string_view rest);

    storage::FileDescriptor fd_;
    std::vector<base::LogField> always_;
};

} // namespace ranktune::studydir
