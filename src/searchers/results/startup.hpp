// SPDX-License-Identifier: Apache-2.0
#pragma once
// When there are enough results for a model.

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "ranktune/study/record.hpp"
#include "searchers/results/largest_budget.hpp"

namespace ranktune::searchers {

/// So many finite results at one iteration are enough.
[[nodiscard]] inline LargestBudget::Enough enough_to_start(std::size_t startup) {
    return [least = std::max<std::size_t>(1, startup)](std::size_t, std::size_t finite) { return finite >= least; };
}

/// What a suggestion rests on while there are too few.
[[nodiscard]] inline study::SuggestionBasis before_a_model(std::size_t startup) {
    study::SuggestionBasis basis;
    basis.model = "sobol";
    basis.note = "the model needs " + std::to_string(startup) + " results";
    return basis;
}

/// Whether a table has had enough of them. Follows the table until then.
class Startup {
  public:
    explicit Startup(std::size_t startup) : Startup(enough_to_start(startup), before_a_model(startup)) {}
    /// `before`: what suggestions rest on until then.
    Startup(LargestBudget::Enough enough, study::SuggestionBasis before)
        : results_(std::move(enough), LargestBudget::Violators::as_reported), before_(std::move(before)) {}

    [[nodiscard]] bool is_over(const Observations& seen) {
        if (!over_) results_.read(seen);
        over_ = over_ || results_.iteration() > 0;
        return over_;
    }

    /// What a suggestion rests on that nobody has prepared; empty where there is a model.
    [[nodiscard]] study::SuggestionBasis basis(const Observations& seen) {
        return is_over(seen) ? study::SuggestionBasis{} : before_;
    }

  private:
    LargestBudget results_;
    study::SuggestionBasis before_;
    bool over_ = false;
};

} // namespace ranktune::searchers
