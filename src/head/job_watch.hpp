// SPDX-License-Identifier: Apache-2.0
#pragma once
// JobWatch: the head's thread that asks Slurm when the job ends, at the start and then once a minute. Where Slurm's
// programs are missing or say what nobody knows, nothing is lost but the knowledge.

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "process/background.hpp"
#include "process/command_output.hpp"
#include "process/wake.hpp"
#include "ranktune/base/log.hpp"
#include "slurm/allocation.hpp"
#include "slurm/deadline.hpp"

namespace ranktune::head {

/// One round of questions: `squeue`, then `scontrol`, then what the environment said at the start (`seconds_since_1970`
/// is now). An end there that is past counts as unknown: the limit was extended, or this process would not be. `ask`
/// runs a program. `why` becomes the reason when nobody knows.
[[nodiscard]] slurm::TimeLeft ask_time_left(
    const slurm::Allocation& job, std::int64_t seconds_since_1970,
    const std::function<process::CommandOutput(const std::vector<std::string>&)>& ask, std::string& why);

class JobWatch {
  public:
    using Clock = std::chrono::steady_clock;

    /// `lead`: kept free before the end, but at most a tenth of the time left at the start. References outlive it.
    /// Destroying it waits for a question under way, seconds at most.
    JobWatch(slurm::Allocation job, std::chrono::nanoseconds lead, process::Waker& waker, base::LogSink& log);

    struct News {
        std::optional<Clock::time_point> end; ///< lead taken off; nothing: no limit, or not known
        std::string warning;                  ///< what the environment says cannot be; for the screen
    };
    /// What has been found out since the last call; after the first round in any case. Never blocks.
    [[nodiscard]] std::optional<News> news();

  private:
    void look();

    slurm::Allocation job_;
    std::chrono::nanoseconds lead_;
    process::Waker& waker_;
    base::LogSink& log_;
    std::string last_word_; ///< in the log: said once
    bool first_ = true;     ///< round
    bool known_ = false;    ///< some round had an answer
    std::mutex mutex_;
    std::optional<News> news_;
    process::Background thread_;
};

} // namespace ranktune::head
