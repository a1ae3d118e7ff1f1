// SPDX-License-Identifier: Apache-2.0
#include "searchers/prepared.hpp"

#include <algorithm>
#include <utility>

namespace ranktune::searchers {

std::uint64_t other_seed(std::uint64_t seed) { return base::RngStream(seed, base::Purpose::suggest, 0, 1)(); }

PreparedSearcher::PreparedSearcher(const space::SearchSpace& space, std::uint64_t seed,
                                   std::shared_ptr<SuggestingModel> model, Startup startup,
                                   std::shared_ptr<ComputedTickets> computed, Duplicates duplicates)
    : space_(space),
      seed_(seed),
      model_(std::move(model)),
      computed_(std::move(computed)),
      startup_(std::move(startup)) {
    if (duplicates == Duplicates::avoided && is_finite(space)) tried_.emplace(space);
}

std::optional<space::Configuration> PreparedSearcher::suggest(std::uint64_t index, const Observations& seen) const {
    space::Configuration wish = stopgap(tickets_.place_after(index));
    if (!tried_) return wish;
    tried_->read(seen);
    base::RngStream random = draws_for_another(seed_, index);
    return tried_->or_another(std::move(wish), random, tickets_.waiting());
}

std::uint32_t PreparedSearcher::prepares_ahead(std::uint32_t groups, const Observations& seen) const {
    constexpr std::uint32_t most = 16;
    return has_model(seen) ? std::clamp((groups + 7) / 8, 1U, most) : 0;
}

Searcher::Preparation PreparedSearcher::prepare(std::uint64_t ticket, Observations seen) const {
    return [model = model_, computed = computed_, turn = tickets_.turn_of(ticket), seen = std::move(seen),
            others = tickets_.others_of(ticket)] {
        Suggestion suggestion = model->suggest(turn, seen, computed->of(others));
        computed->keep(turn.ticket, suggestion.configuration);
        return suggestion;
    };
}

} // namespace ranktune::searchers
