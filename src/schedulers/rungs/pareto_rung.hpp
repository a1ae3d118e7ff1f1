// SPDX-License-Identifier: Apache-2.0
#pragma once
// ParetoRung: the entries of a rung in a study with several objectives.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "ranktune/study/codec.hpp"
#include "ranktune/study/objective.hpp"

namespace ranktune::schedulers {

/// Ranks entries by non-dominated front, then by crowding distance, then by the lower trial (models::pareto_order), as
/// proposed for successive halving by Schmucker et al., "Multi-objective asynchronous successive halving", arXiv
/// 2106.12639 (2021). Each entry can change the order of all others, so that it has to be found again: O(n log n) to
/// O(n^2) comparisons, where a rung with one objective needs O(log n). Therefore only the newest `most` entries are
/// compared; the oldest one leaves.
class ParetoRung {
  public:
    static constexpr std::size_t most = 500;

    /// Entries that are compared.
    [[nodiscard]] std::size_t size() const { return entries_.size(); }
    /// As `size` after one more.
    [[nodiscard]] std::size_t next_size() const { return size() < most ? size() + 1 : most; }
    /// Entries that were ever made.
    [[nodiscard]] std::uint64_t arrivals() const { return arrivals_; }
    /// Null: it is not compared.
    [[nodiscard]] const study::Score* find(base::TrialId trial) const;

    /// Best first.
    [[nodiscard]] std::vector<base::TrialId> order() const { return order_of(entries_); }
    /// With an entry that is not inserted yet.
    [[nodiscard]] std::vector<base::TrialId> order_with(base::TrialId trial, const study::Score& score) const;

    void insert(base::TrialId trial, const study::Score& score);
    /// Removes the entry of a trial that failed; false: it has none, or one of a valid result.
    bool erase_failure(base::TrialId trial);

    void snapshot(study::Encoder& out) const;
    /// Throws base::FormatError for damage.
    void restore(study::Decoder& in);

  private:
    struct Entry {
        base::TrialId trial;
        study::Score score;
    };
    [[nodiscard]] static std::vector<base::TrialId> order_of(const std::deque<Entry>& entries);

    std::deque<Entry> entries_; ///< oldest first
    std::uint64_t arrivals_ = 0;
};

} // namespace ranktune::schedulers
