// SPDX-License-Identifier: Apache-2.0
#include "schedulers/asha/soft_ranking.hpp"

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
    double needed = size() == 0 ? 0.0 : below_.best().score - below_.worst().score; // for any order
    if (needed > epsilon) {
        const bool others_are = known_ && *known_ <= epsilon;
        needed = std::max(others_are ? *known_ : 0.0, furthest_in(others_are ? from_ : 0, others_are ? to_ : size()));
        if (needed > epsilon) return false;
    }
    known_ = needed;
    from_ = to_ = 0;
    return true;
}

/// The largest difference of the two scores at the rung below at one of these positions.
double SoftRanking::furthest_in(std::size_t from, std::size_t to) const {
    std::vector<double> expected;
    expected.reserve(to - from);
    below_.for_range(from, to, [&](const study::Ranked& entry) { expected.push_back(entry.score); });
    double furthest = 0.0;
    std::size_t i = 0;
    own_.for_range(from, to, [&](const study::Ranked& entry) {
        furthest = std::max(furthest, std::abs(score_below_[entry.trial.value()] - expected[i++]));
    });
    return furthest;
}

bool SoftRanking::valid() const {
    if (own_.size() != below_.size() || !own_.valid() || !below_.valid()) return false;
    return from_ >= to_ || to_ <= size();
}

} // namespace ranktune::schedulers
