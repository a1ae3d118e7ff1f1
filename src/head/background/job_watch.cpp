// SPDX-License-Identifier: Apache-2.0
#include "head/background/job_watch.hpp"

#include <algorithm>
#include <utility>

namespace ranktune::head {
namespace {

using slurm::TimeLeft;
using namespace std::chrono_literals;

/// A busy controller answers late; a dead one must not delay the end of the head.
constexpr auto squeue_patience = 5s;

constexpr const char* without_a_deadline = "signals alone end the study before the job ends";

/// Slurm's environment variable from the start of the job. It does not follow a limit that is extended later.
TimeLeft left_at_the_start(std::int64_t end, std::int64_t now, WhyUnknown& why) {
    constexpr std::int64_t longest = 10LL * 365 * 86'400;
    if (end > now && end < now + longest) return {TimeLeft::Kind::known, std::chrono::seconds(end - now)};
    why.environment = "SLURM_JOB_END_TIME=" + std::to_string(end) + " is " + (end > now ? "years ahead" : "past");
    return {};
}

} // namespace

TimeLeft ask_time_left(const slurm::Allocation& job, std::int64_t seconds_since_1970,
                       const std::function<process::CommandOutput(const std::vector<std::string>&)>& ask,
                       WhyUnknown& why) {
    const auto queue = ask({"squeue", "--noheader", "--jobs=" + job.name, "--format=%L"});
    if (const auto left = slurm::time_left(queue.text); queue.ok() && left.kind != TimeLeft::Kind::unknown) return left;
    const auto control = ask({"scontrol", "show", "job", job.name, "--oneliner"});
    if (const auto left = slurm::time_left_in_job(control.text); control.ok() && left.kind != TimeLeft::Kind::unknown)
        return left;
    why = {};
    if (job.end)
        if (const auto left = left_at_the_start(*job.end, seconds_since_1970, why); left.kind == TimeLeft::Kind::known)
            return left;
    why.programs = "squeue: " + (queue.error.empty() ? "an unknown answer" : queue.error) +
                   "; scontrol: " + (control.error.empty() ? "an unknown answer" : control.error);
    return {};
}

JobWatch::JobWatch(slurm::Allocation job, std::chrono::nanoseconds lead, std::chrono::nanoseconds period,
                   process::Waker& waker, base::LogSink& log)
    : job_(std::move(job)),
      lead_(lead),
      waker_(waker),
      log_(log),
      thread_(
          [this, period] {
              look();
              return Clock::now() + std::chrono::duration_cast<Clock::duration>(period);
          },
          Clock::now()) {}

std::optional<JobWatch::News> JobWatch::news() {
    const std::lock_guard lock(mutex_);
    return std::exchange(news_, std::nullopt);
}

void JobWatch::look() {
    WhyUnknown why;
    const auto asked = Clock::now();
    const auto since_1970 =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
    const TimeLeft left = ask_time_left(
        job_, since_1970.count(), [](const auto& words) { return process::run_command(words, squeue_patience); }, why);
    const bool known = left.kind == TimeLeft::Kind::known;
    if (known && !std::exchange(known_, true)) lead_ = std::min<std::chrono::nanoseconds>(lead_, left.left / 10);
    // An earlier answer stays valid when a later round gets none.
    if (std::exchange(first_, false) || left.kind != TimeLeft::Kind::unknown) {
        const std::lock_guard lock(mutex_);
        news_ = News{known ? std::optional(asked + left.left - lead_) : std::nullopt, {}};
        if (left.kind == TimeLeft::Kind::unknown && job_.end)
            news_->warning =
                why.environment +
                ", and neither squeue nor scontrol says when the job ends (the log has why): " + without_a_deadline;
    }
    std::string word = left.kind == TimeLeft::Kind::unlimited ? "unlimited" : known ? "known" : why.text();
    if (word != last_word_) {
        if (known)
            log_.write(base::LogLevel::info, "deadline",
                       {{"left_s", std::to_string(left.left.count())},
                        {"lead_s", std::to_string(std::chrono::duration_cast<std::chrono::seconds>(lead_).count())}});
        else if (left.kind == TimeLeft::Kind::unlimited)
            log_.write(base::LogLevel::info, "deadline", {{"left_s", "unlimited"}});
        else
            log_.write(base::LogLevel::warning, "deadline",
                       {{"left_s", "unknown"}, {"reason", why.text()}, {"then", without_a_deadline}});
        last_word_ = std::move(word);
    }
    waker_.wake();
}

} // namespace ranktune::head
