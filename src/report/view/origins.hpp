// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the configuration of each trial came from: who asked for it, what a suggestion rests on, or why none was ready.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ranktune/study/objective.hpp"
#include "ranktune/study/record.hpp"

namespace ranktune::report {

struct OriginView {
    study::Origin origin;
    std::uint64_t record = 0; ///< number of the record that the members below come from; 0: of none

    // ---- kind user: the request; of a journal that lacks it, empty
    std::string who;      ///< "ada@login1"
    std::string asked;    ///< in words
    double asked_s = 0.0; ///< study time

    // ---- kind ticket, and after `tell`: what the searcher said of its suggestion; empty: nothing
    std::string model;              ///< "gp", "tpe", "sobol", ...
    std::uint64_t results = 0;      ///< that the model learned from
    std::optional<double> expected; ///< value of the study's metric
    std::optional<double> gain;     ///< what the searcher maximised, a logarithm
    std::string note;

    // ---- kind stopgap
    std::string failure; ///< of the suggestion whose place it took, or of the last one; empty: none was ready
};

/// Collects while a journal is read, what the origins in the state do not say. Costs memory for trials of users and for
/// trials of prepared suggestions.
class Origins {
  public:
    /// Takes every record of the journal but snapshots, with its number, in order.
    void add(const study::Record& record, std::uint64_t number);
    /// What the suggestion of a trial of kind searcher or stopgap rests on: the journal does not say it.
    void tell(study::TrialId trial, study::SuggestionBasis basis);
    /// `origin`: of that trial, from the state. `mode`: of the study's metric.
    [[nodiscard]] OriginView of(study::TrialId trial, const study::Origin& origin, study::Mode mode) const;

  private:
    struct Request {
        std::string who;
        std::string asked;
        double asked_s = 0.0;
        std::uint64_t record = 0;
        std::size_t left = 0; ///< points of it that are no trials yet
    };
    /// Only the members that the kind of its trial needs.
    struct Told {
        study::TrialId trial;
        std::uint64_t record = 0;
        std::size_t request = 0; ///< index into `requests_`
        study::SuggestionBasis basis = {};
        std::shared_ptr<const std::string> failure = {}; ///< null: none; shared, since many trials can have the same
    };
    void add(const study::TrialCreated& created);
    void take(std::map<std::uint64_t, Told>& tickets, std::uint64_t ticket, study::TrialId trial);

    std::vector<Told> told_; ///< ascending
    std::vector<Request> requests_;
    std::size_t next_request_ = 0; ///< the oldest with points left
    // By number of the ticket, until a trial takes it, or another suggestion takes its place; `trial` is not set.
    std::map<std::uint64_t, Told> prepared_;
    std::map<std::uint64_t, Told> failed_;
    Told last_failed_; ///< the suggestion that failed last
};

} // namespace ranktune::report
