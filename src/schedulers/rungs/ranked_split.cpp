// SPDX-License-Identifier: Apache-2.0
#include "schedulers/rungs/ranked_split.hpp"

#include <cassert>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "ranktune/base/error.hpp"

namespace ranktune::schedulers {

BestCount::BestCount(Rule rule, double eta) : rule_(rule), eta_(eta), integer_(0) {
    assert(eta > 1.0);
    if (eta == std::floor(eta) && eta < 0x1p53) integer_ = static_cast<std::uint64_t>(eta);
}

double BestCount::share_below(std::size_t n) const {
    assert(rule_ == Rule::quantile && n > 0);
    // In descending order the quantile is at position (n - 1) / eta. Integers keep it exact, so that rounding cannot
    // hide equality with the cut-off.
    if (integer_ != 0) return static_cast<double>((n - 1) % integer_) / eta_;
    const double place = static_cast<double>(n - 1) / eta_;
    return place - std::floor(place);
}

void RankedSplit::insert(const study::Ranked& entry) {
    const bool better_than_rest = rest_.empty() || study::better(entry, rest_.top());
    const bool grows = count_(size() + 1) > best_.size();
    if (grows) {
        best_.push(better_than_rest ? entry : rest_.replace_top(entry));
    } else if (!best_.empty() && study::better(entry, best_.top())) {
        rest_.push(best_.replace_top(entry));
    } else {
        rest_.push(entry);
    }
}

bool RankedSplit::erase(const study::Ranked& entry) {
    std::vector<study::Ranked> others;
    others.reserve(size());
    for_each([&](const study::Ranked& each) {
        if (each.trial != entry.trial || each.score != entry.score) others.push_back(each);
    });
    if (others.size() == size()) return false;
    best_.clear();
    rest_.clear();
    for (const study::Ranked& each : others) insert(each);
    return true;
}

double RankedSplit::quantile() const {
    assert(size() > 0);
    const double upper = best_.top().score;
    const double below = count_.share_below(size());
    if (below == 0.0 || rest_.empty()) return upper;
    const double lower = rest_.top().score;
    if (lower == -std::numeric_limits<double>::infinity()) return lower;
    // Each form is exact at its own end (as in numpy).
    return below <= 0.5 ? upper - (upper - lower) * below : lower + (upper - lower) * (1.0 - below);
}

void RankedSplit::snapshot(study::Encoder& out) const {
    out.varint(size());
    for_each([&out](const study::Ranked& entry) {
        out.f64(entry.score);
        out.varint(entry.trial.value());
    });
}

void RankedSplit::restore(study::Decoder& in) {
    const std::size_t size = in.count();
    std::vector<study::Ranked> best(count_(size));
    std::vector<study::Ranked> rest(size - best.size());
    const auto read = [&in](std::vector<study::Ranked>& part) {
        for (auto& entry : part) {
            entry.score = in.f64();
            entry.trial = base::TrialId(static_cast<base::TrialId::rep>(in.varint()));
            if (std::isnan(entry.score)) throw base::FormatError("a rung of the snapshot holds a NaN");
        }
    };
    read(best);
    read(rest);
    if (!best_.adopt(std::move(best)) || !rest_.adopt(std::move(rest)) || !valid()) {
        throw base::FormatError("the entries of a rung in the snapshot are not in order");
    }
}

bool RankedSplit::valid() const {
    if (best_.size() != count_(size()) || !best_.valid() || !rest_.valid()) return false;
    return best_.empty() || rest_.empty() || study::better(best_.top(), rest_.top());
}

} // namespace ranktune::schedulers
