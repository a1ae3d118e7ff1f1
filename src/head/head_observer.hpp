// SPDX-License-Identifier: Apache-2.0
#pragma once
// HeadObserver: writes the head's log lines and its status file, then calls the screen's observer.

#include <functional>
#include <string>
#include <vector>

#include "head/observer.hpp"
#include "ranktune/base/log.hpp"
#include "storage/journal/journal.hpp"
#include "studydir/control.hpp"
#include "studydir/publisher.hpp"

namespace ranktune::head {

/// Logs failures, drain and end as they happen and one `stat` line a minute; writes the status file once a second;
/// passes everything on to `next`.
class HeadObserver final : public Observer {
  public:
    using Answers = std::function<std::vector<studydir::AnsweredRequest>()>;
    /// `next` may be null. References must outlive it. `answers`: to requests of users, for the status file. `tables`:
    /// writes metrics.h5, which [after] may read.
    HeadObserver(Observer* next, base::LogSink& log, studydir::Publisher& status, const storage::Journal& journal,
                 Answers answers, std::function<void()> tables);

    void on_records(const tuner::Tuner& tuner, const std::vector<study::Record>& records,
                    const HeadFigures& figures) override;
    void on_tick(const tuner::Tuner& tuner, const HeadFigures& figures) override;

  private:
    void write_stat(const tuner::Tuner& tuner, const HeadFigures& figures);

    base::LogSink& log_;
    studydir::Publisher& status_;
    const storage::Journal& journal_;
    Answers answers_;
    std::function<void()> tables_;
    double next_stat_s_ = 60.0;
    double next_status_s_ = 0.0;
};

/// The text of the status file: JSON, `"schema": 1`, a snapshot for `status --watch`. `synced`: number of synced
/// journal records.
[[nodiscard]] std::string status_json(const tuner::Tuner& tuner, const HeadFigures& figures, std::uint64_t synced,
                                      const std::vector<studydir::AnsweredRequest>& answers);

} // namespace ranktune::head
