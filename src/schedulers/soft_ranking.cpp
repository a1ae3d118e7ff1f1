// SPDX-License-Identifier: Apache-2.0
#include "schedulers/soft_ranking.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace ranktune::schedulers {

void SoftRanking::insert(base::TrialId trial, double below, double own) {
    assert(std::isfinite(below) && std::isfinite(own));
    below_.insert({below, trial});
    own_.insert({own, trial});
    if (score_below_.size() <= trial.value()) score_below_.resize(trial.value() + std::size_t{1});
    score_below_[trial.value()] = below;
    // Other pairs of trials meet only between the two places of the new one.
    const std::size_t a = below_.position({below, trial});
    const std::size_t b = own_.position({own, trial});
    if (from_ < to_) known_.reset(); // two insertions without a check: their ranges cannot be told apart any more
    from_ = std::min(a, b);
    to_ = std::max(a, b) + 1;
}

bool SoftRanking::consistent(double epsilon) {
    const bool all_equal = size() == 0 || below_.best().score - below_.worst().score <= epsilon;
    if (!all_equal) {
        const bool others_are = known_ && *known_ <= epsilon;
        if (!consistent_in(others_are ? from_ : 0, others_are ? to_ : size(), epsilon)) {
            known_.reset();
            return false;
        }
    }
    known_ = epsilon;
    from_ = to_ = 0;
    return true;
}

bool SoftRanking::consistent_in(std::size_t from, std::size_t to, double epsilon) const {
    std::vector<double> expected;
    expected.reserve(to - from);
    below_.for_range(from, to, [&](const study::Ranked& entry) { expected.push_back(entry.score); });
    bool holds = true;
    std::size_t i = 0;
    own_.for_range(from, to, [&](const study::Ranked& entry) {
        const double distance = std::abs(score_below_[entry.trial.value()] - expected[i++]);
        if (distance > epsilon) holds = false;
    });
    return holds;
}

bool SoftRanking::valid() const {
    if (own_.size() != below_.size() || !own_.valid() || !below_.valid()) return false;
    return from_ >= to_ || to_ <= size();
}

} // namespace ranktune::schedulers
