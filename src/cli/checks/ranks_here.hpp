// SPDX-License-Identifier: Apache-2.0
#pragma once
// How many ranks a study would have where this process is, and what to say to trials that ask for more.

#include <cstdint>
#include <optional>
#include <string>

#include "cli/verbs/verbs.hpp"
#include "ranktune/study/parse.hpp"

namespace ranktune::cli {

/// Refuses trials that ask for more ranks than `--local` starts; where it is not given, for more than there are
/// hardware threads: so many processes are started only for those who say so.
[[nodiscard]] study::RankCheck local_ranks(const RunArguments& arguments);
/// Refuses trials that ask for more ranks than a launcher has started beside the head.
[[nodiscard]] study::RankCheck launched_ranks(std::uint32_t workers);
/// Throws base::UsageError when a launcher has started the head alone.
void refuse_lonely_head(std::uint32_t workers);
/// What to do on a login node, where nothing is started without being told to; `workers`: as RanksHere has it.
[[nodiscard]] std::string login_node_refusal(const RunArguments& arguments, std::uint32_t workers);
/// `--local` under a launcher: throws base::UsageError.
void refuse_local_under_launcher();

/// The ranks of a run that is only shown. Throws what `run` refuses, too.
class RanksHere {
  public:
    explicit RanksHere(const RunArguments& arguments);

    [[nodiscard]] study::RankCheck check() const;
    [[nodiscard]] std::uint32_t workers(const study::StudySpec& spec) const;
    /// Why there are so many, where that is not plain.
    [[nodiscard]] std::string why(std::uint32_t workers) const;

  private:
    enum class Of : std::uint8_t { launcher, job, option, machine, silent_launcher, job_of_one_task, login_node };

    const RunArguments& arguments_;
    Of of_ = Of::machine;
    std::optional<std::uint32_t> workers_; ///< nothing: as many as fit on this machine
};

} // namespace ranktune::cli
