// SPDX-License-Identifier: Apache-2.0
#pragma once
// JobWatch: the thread that asks Slurm when the job ends, at the start and then every slurm.poll_interval. If Slurm's
// programs are missing or their answers make no sense, the deadline is simply unknown.

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

/// Why it is unknown when the job ends, in words.
struct WhyUnknown {
    std::string environment; ///< what is wrong with SLURM_JOB_END_TIME; empty: it is not set
    std::string programs;    ///< what squeue and scontrol said
    [[nodiscard]] std::string text() const { return environment + (environment.empty() ? "" : "; ") + programs; }
};

/// Asks once: `squeue`, then `scontrol`, then the environment from the start of the job (`seconds_since_1970` is now).
/// An end there that is past counts as unknown: the limit must have been extended. `ask` runs a program. `why` is set
/// when the end is unknown.
[[nodiscard]] slurm::TimeLeft ask_time_left(
    const slurm::Allocation& job, std::int64_t seconds_since_1970,
    const std::function<process::CommandOutput(const std::vector<std::string>&)>& ask, WhyUnknown& why);

class JobWatch {
  public:
    using Clock = std::chrono::steady_clock;

    /// `lead`: time to keep free before the end, at most a tenth of the time left at the start. `period`: between two
    /// questions. References must outlive it. The destructor waits seconds at most, for a query under way.
    JobWatch(slurm::Allocation job, std::chrono::nanoseconds lead, std::chrono::nanoseconds period,
             process::Waker& waker, base::LogSink& log);

    struct News {
        std::optional<Clock::time_point> end; ///< minus the lead; nothing: no limit, or unknown
        std::string warning;                  ///< an impossible value in the environment; for the screen
    };
    /// News since the last call; the first round always gives some. Never blocks.
    [[nodiscard]] std::optional<News> news();

  private:
    void look();

    slurm::Allocation job_;
    std::chrono::nanoseconds lead_;
    process::Waker& waker_;
    base::LogSink& log_;
    std::string last_word_; ///< last state logged: each is logged once
    bool first_ = true;     ///< first round
    bool known_ = false;    ///< some round had an answer
    std::mutex mutex_;
    std::optional<News> news_;
    process::Background thread_;
};

} // namespace ranktune::head
