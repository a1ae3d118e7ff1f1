// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where log lines go. Rooms below `process` get a sink and never open a file or read a clock for it.

#include <string>
#include <string_view>
#include <vector>

namespace ranktune::base {

enum class LogLevel : unsigned char { debug, info, warning, error };

/// One `key=value` of a log line. Values with spaces are quoted by the sink.
struct LogField {
    std::string key;
    std::string value;
};

/// Receives structured log lines: `2026-11-20T02:31:40.002Z W slow trial=233 host=nid0042`. Implementations add the
/// time and must be safe to call from several threads.
class LogSink {
  public:
    virtual ~LogSink() = default;
    /// `event` is one short word that never changes between versions (people grep for it).
    virtual void write(LogLevel level, std::string_view event, const std::vector<LogField>& fields) = 0;
};

/// Drops everything.
class NullLog final : public LogSink {
  public:
    void write(LogLevel, std::string_view, const std::vector<LogField>&) override {}
};

} // namespace ranktune::base
