// SPDX-License-Identifier: Apache-2.0
#pragma once
// Trials that share a configuration (searcher.repeats), and what they are worth together.

#include <cstdint>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "ranktune/study/objective.hpp"
#include "ranktune/study/spec.hpp"
#include "tuner/values/trials.hpp"

namespace ranktune::tuner {

/// The trials of one configuration: `first`, `first` + 1, ... Failed ones do not count, unless all failed.
struct Repetitions {
    TrialId first;
    std::uint32_t created = 0;
    std::uint32_t failed = 0;
    bool complete = false;           ///< all exist and are over
    double mean = not_a_number;      ///< of the best values of those that count; NaN: none counts, or one has no value
    double deviation = not_a_number; ///< sample standard deviation of these; NaN: fewer than two
    std::optional<TrialId> best;     ///< the best of these; nullopt: without a mean
    std::optional<TrialId> leader;   ///< the best of those that count and are over; nullopt: none has a value

    [[nodiscard]] std::uint32_t counted() const { return created - failed; }
};

/// The first trial with the configuration of `trial`.
[[nodiscard]] inline TrialId first_repeat(TrialId trial, std::uint32_t repeats) {
    return TrialId{trial.value() - trial.value() % repeats};
}
/// Those of `trial`, which exists. O(repeats).
[[nodiscard]] Repetitions repetitions_of(TrialId trial, const Trials& trials, const study::StudySpec& spec);
/// The best trial of the configuration with the best mean, among the complete ones; ties to the lower trial. O(trials).
[[nodiscard]] std::optional<TrialId> best_by_mean(const Trials& trials, const study::StudySpec& spec);
/// Whether the configuration `a` is better than `b`, by their means. A configuration without a mean is never better.
[[nodiscard]] bool is_better(const Repetitions& a, const Repetitions& b, study::Mode mode);

/// The newest results of the trials whose configuration is not complete.
class LastResults {
  public:
    struct Result {
        study::Score score;
        std::vector<double> distances; ///< from each constraint: Constraint::distance
    };
    struct Entry {
        TrialId trial;
        Result result;
        static void fields(auto&& each, auto& r) { each(r.trial, r.result.score, r.result.distances); }
    };
    /// The mean over the trials that count: feasible if all are; violations and distances are averaged. nullopt: one
    /// has no result.
    [[nodiscard]] std::optional<Result> mean_of(const Repetitions& all, const Trials& trials) const;

    /// Throws std::logic_error.
    void check_invariants(const Trials& trials, const study::StudySpec& spec) const;

    // ---- mutators
    void note(TrialId trial, Result result) { results_[trial] = std::move(result); }
    void forget(const Repetitions& all);

    static void fields(auto&& each, auto& r) {
        std::vector<Entry> entries;
        for (const auto& [trial, result] : r.results_) entries.push_back({trial, result});
        each(entries);
        if constexpr (study::is_read<decltype(r)>) {
            r.results_.clear();
            for (const Entry& entry : entries) r.results_[entry.trial] = entry.result;
        }
    }

  private:
    std::map<TrialId, Result> results_;
};

} // namespace ranktune::tuner
