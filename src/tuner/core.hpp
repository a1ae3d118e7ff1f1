// SPDX-License-Identifier: Apache-2.0
#pragma once
// One study from within. Deciding takes it const (decide.hpp); `apply` alone changes it (apply.hpp).

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ranktune/schedulers/objective_reader.hpp"
#include "ranktune/schedulers/scheduler.hpp"
#include "ranktune/searchers/searcher.hpp"
#include "ranktune/study/record.hpp"
#include "ranktune/study/spec.hpp"
#include "tuner/admission/admission.hpp"
#include "tuner/state.hpp"

namespace ranktune::tuner {

/// The record that is decided next; nullopt: none.
using Next = std::optional<study::Record>;

/// An owner of which a const one cannot change what it owns.
template <class T>
class Owned {
  public:
    explicit Owned(std::unique_ptr<T> value) : value_(std::move(value)) {}
    [[nodiscard]] T& operator*() { return *value_; }
    [[nodiscard]] const T& operator*() const { return *value_; }
    [[nodiscard]] T* operator->() { return value_.get(); }
    [[nodiscard]] const T* operator->() const { return value_.get(); }

  private:
    std::unique_ptr<T> value_;
};

struct Core {
    /// Null: as the study file says. Throws base::UsageError for a combination that cannot work.
    Core(study::StudySpec study, std::unique_ptr<schedulers::Scheduler> own_scheduler,
         std::unique_ptr<searchers::Searcher> own_searcher);
    Core(const Core&) = delete; // its admission refers to its state
    Core& operator=(const Core&) = delete;

    study::StudySpec spec;
    Owned<searchers::Searcher> searcher;
    Owned<schedulers::Scheduler> scheduler;
    State state;
    Owned<Admission> admission;
    bool learns;   ///< the searcher reads the table of observations
    bool exploits; ///< the scheduler has trials take over the state of others
    /// The ranks that wrote a trial's newest checkpoint in this incarnation; only where trials take over states.
    std::unordered_map<TrialId, std::vector<Rank>> holders;
    // Derived.
    std::unordered_map<std::string, MetricId> metric_ids; ///< of state.metrics
    schedulers::ObjectiveReader objective; ///< knows the numbers of the study's metric and those of constraints
    double slowest = 0.0; ///< seconds of the slowest iteration among the trials that run; 0 without a deadline
};

} // namespace ranktune::tuner
