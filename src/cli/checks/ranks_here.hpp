// SPDX-License-Identifier: Apache-2.0
#pragma once
// How many ranks a study would get in this process's surroundings, and the refusal of trials that ask for more.

#include <cstdint>
#include <optional>
#include <string>

#include "cli/verbs/verbs.hpp"
#include "ranktune/study/parse.hpp"

namespace ranktune::cli {

/// Refuses trials that ask for more ranks than `--local` starts. Without `--local` the limit is the number of hardware
/// threads: oversubscription needs an explicit option.
[[nodiscard]] study::RankCheck local_ranks(const RunArguments& arguments);
/// Throws base::UsageError when --local asks for more workers than this machine can carry or the trials can use.
void refuse_crowd(const RunArguments& arguments, const study::StudySpec& spec);
/// Refuses trials that ask for more ranks than a launcher has started beside the head.
[[nodiscard]] study::RankCheck launched_ranks(std::uint32_t workers);
/// Throws base::UsageError when a launcher has started the head alone.
void refuse_lonely_head(std::uint32_t workers);
/// The message on a login node, where nothing starts without an explicit option; `workers`: from RanksHere::workers.
[[nodiscard]] std::string login_node_refusal(const RunArguments& arguments, std::uint32_t workers);
/// Throws base::UsageError: --local is not allowed under a launcher.
void refuse_local_under_launcher();

/// The ranks of a dry run. The constructor throws base::UsageError for what `run` refuses.
class RanksHere {
  public:
    explicit RanksHere(const RunArguments& arguments);

    [[nodiscard]] study::RankCheck check() const;
    /// Whether `run` would start the trials on this machine.
    [[nodiscard]] bool of_this_machine() const { return of_ == Of::option || of_ == Of::machine; }
    [[nodiscard]] std::uint32_t workers(const study::StudySpec& spec) const;
    /// Why there are so many; empty when it is obvious.
    [[nodiscard]] std::string why(std::uint32_t workers) const;

  private:
    enum class Of : std::uint8_t { launcher, job, option, machine, silent_launcher, job_of_one_task, login_node };

    const RunArguments& arguments_;
    Of of_ = Of::machine;
    std::optional<std::uint32_t> workers_; ///< nothing: as many as fit on this machine
};

} // namespace ranktune::cli
