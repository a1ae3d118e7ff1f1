// SPDX-License-Identifier: Apache-2.0
#pragma once
// The Pareto front of a study with several objectives.

#include <cstdint>
#include <vector>

#include "ranktune/study/objective.hpp"
#include "tuner/values/trial.hpp"
#include "tuner/values/trials.hpp"

namespace ranktune::tuner {

/// The result with which a trial is compared with others: all objectives at its best iteration. Worst, without values,
/// where it has none.
[[nodiscard]] study::Score standing_of(const Trial& trial, const study::Objective& objective);

/// Whether a result beats another one; see models::dominates.
[[nodiscard]] bool beats(const study::Score& a, const study::Score& b);

/// For each trial the number of its front (models::nondominated_ranks), 0 for the Pareto front; -1: no result.
[[nodiscard]] std::vector<std::int64_t> pareto_ranks(const Trials& trials, const study::Objective& objective);

/// The trials whose results no other trial's result beats. Follows from the trials, so it is not part of a snapshot.
/// Cost of a new result: O(size of the front); O(trials x size of the front) if a trial of the front got worse in some
/// objective, because trials that it used to beat may come back.
class Front {
  public:
    /// In ascending order.
    [[nodiscard]] const std::vector<TrialId>& trials() const { return members_; }
    [[nodiscard]] bool contains(TrialId id) const;

    /// The trial has another result than `before`.
    void moved(TrialId id, const study::Score& before, const Trials& trials, const study::Objective& objective);
    void find(const Trials& trials, const study::Objective& objective);
    /// Throws std::logic_error.
    void check_invariants(const Trials& trials, const study::Objective& objective) const;

  private:
    void enter(TrialId id, const Trials& trials, const study::Objective& objective);

    std::vector<TrialId> members_;
};

} // namespace ranktune::tuner
