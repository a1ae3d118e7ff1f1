// SPDX-License-Identifier: Apache-2.0
#pragma once
// Records and options shared by the journal's tests.

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "ranktune/study/record.hpp"
#include "storage/journal/journal.hpp"
#include "support/files.hpp"

namespace ranktune::storage::test {

using ranktune::testing::TemporaryDirectory;

/// Remembers which events were logged.
class RecordingLog final : public base::LogSink {
  public:
    void write(base::LogLevel, std::string_view event, const std::vector<base::LogField>&) override {
        const std::lock_guard lock(mutex_);
        events_.insert(std::string(event));
    }
    [[nodiscard]] bool has(const std::string& event) const {
        const std::lock_guard lock(mutex_);
        return events_.count(event) != 0;
    }

  private:
    mutable std::mutex mutex_;
    std::set<std::string> events_;
};

/// A report of one metric whose iteration is `number`, so that the order of records can be checked.
inline study::Record report(std::uint64_t number) {
    study::Reported r;
    r.trial = base::TrialId(static_cast<std::uint32_t>(number % 1000));
    r.attempt = base::AttemptId(1);
    r.at = base::from_ns(static_cast<std::int64_t>(number) * 1000);
    r.iteration = number;
    r.seconds = static_cast<double>(number) * 0.5;
    r.metrics = {{base::MetricId(0), 1.0 / (1.0 + static_cast<double>(number))}};
    return r;
}

/// A record of about `bytes` bytes.
inline study::Record snapshot(std::size_t bytes, std::uint64_t digest = 7, const std::string& spec = "spec") {
    return study::Snapshot{digest, std::string(bytes, 's'), spec};
}

inline std::vector<study::Record> reports(std::uint64_t first, std::uint64_t count) {
    std::vector<study::Record> batch;
    for (std::uint64_t i = 0; i < count; ++i) batch.push_back(report(first + i));
    return batch;
}

/// Small segments and commits only on demand, so that tests do not depend on a clock.
inline JournalOptions options(const std::string& directory, std::uint32_t incarnation = 1) {
    JournalOptions o;
    o.directory = directory;
    o.uuid = "5f0c8a52-1111-4222-8333-444455556666";
    o.incarnation = incarnation;
    o.writer = {"node1", "boot-a", 4711};
    o.job = "123456";
    o.first_segment_bytes = 8 * 1024;
    o.max_segment_bytes = 32 * 1024;
    o.commit_interval = std::chrono::hours(1);
    return o;
}

inline std::vector<study::Record> read_all(FileSystem& files, const std::string& directory,
                                           JournalSummary* summary = nullptr) {
    std::vector<study::Record> records;
    const JournalSummary found =
        read_journal(files, directory, [&](study::Record&& record) { records.push_back(std::move(record)); });
    if (summary != nullptr) *summary = found;
    return records;
}

} // namespace ranktune::storage::test
