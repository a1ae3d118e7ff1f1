// SPDX-License-Identifier: Apache-2.0
#pragma once
// ProgramCheckpoints: takes over the checkpoints that a program names, on rank 0 of its trial.

#include <optional>
#include <span>
#include <string>

#include "worker/bodies/program_leader.hpp"
#include "worker/bodies/program_rank.hpp"
#include "worker/checkpoints/named_paths.hpp"
#include "worker/trial/attempt_context.hpp"

namespace ranktune::worker {

/// Part of ProgramBody. While the trial goes on, at most one state is on the way that the program was asked to save
/// first (`ask`), and one that it named with a report before it was complete, as
/// torch.distributed.checkpoint.async_save does (`want`). Each is taken over by `step` once every rank has saved its
/// part; one that fails is only reported.
class ProgramCheckpoints {
  public:
    /// References must outlive it.
    ProgramCheckpoints(const AttemptParts& parts, const ProgramRank& rank, const ProgramLeader& leader);

    /// The report numbered `report` (1 for the first one of the attempt) will be answered with the request to save.
    void ask(const TrialPoint& point, std::uint64_t report);
    [[nodiscard]] bool is_asked() const { return asked_.has_value(); }
    /// The checkpoint that came with this report is pending.
    void want(const TrialPoint& point, std::uint64_t report, const std::string& checkpoint);
    [[nodiscard]] bool is_wanted() const { return wanted_.has_value(); }
    /// A later report names this checkpoint.
    void named(const std::string& checkpoint);
    /// In every turn. `ends`: the trial's last word is known, so what fails has nobody to be reported to.
    void step(std::span<const RankFacts> ranks, bool ends);
    /// The attempt ends with a checkpoint that was named before it was complete: throws base::Error unless it is now.
    void need_complete(std::span<const RankFacts> ranks) const;

    /// Tells the head where the checkpoint lies, if another trial could name the same place.
    void look_at(const std::string& checkpoint);
    /// Takes over a complete checkpoint of the state at `point`. Throws CheckpointError or base::Error.
    void adopt(const std::string& checkpoint, const TrialPoint& point, bool may_move = true);

  private:
    using Clock = ProgramRank::Clock;
    struct Expected {
        TrialPoint point;
        std::uint64_t report;
        Clock::time_point since;
        std::string checkpoint = {}; ///< as named with the report
        bool again = false;          ///< a later report names the same path
    };

    [[nodiscard]] std::optional<NamedPaths::Link> look_at_links(const std::string& checkpoint);
    void take_asked(std::span<const RankFacts> ranks, bool ends);
    void limit_best_save(const RankFacts& rank, std::size_t number) const;
    void take_wanted(std::span<const RankFacts> ranks, bool ends);
    [[nodiscard]] std::optional<std::string> trouble_with_wanted(std::span<const RankFacts> ranks) const;

    AttemptParts parts_;
    const ProgramRank& rank_;
    const ProgramLeader& leader_;
    NamedPaths names_;
    std::optional<Expected> asked_;
    std::optional<Expected> wanted_;
};

} // namespace ranktune::worker
