// SPDX-License-Identifier: Apache-2.0
#include "schedulers/asha/curve_noise.hpp"

#include <algorithm>
#include <cmath>

#include "ranktune/base/error.hpp"

namespace ranktune::schedulers {
namespace {

/// Where the 90th percentile of so many sorted values lies: at a position, or up to nine tenths beyond it.
struct Place {
    std::size_t position;
    std::size_t tenths;
};
Place place_of_percentile_90(std::size_t values) { return {9 * (values - 1) / 10, 9 * (values - 1) % 10}; }

/// As numpy.percentile(values, 90). Requires values, and reorders them.
double percentile_90(std::vector<double>& values) {
    const Place place = place_of_percentile_90(values.size());
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(place.position);
    std::nth_element(values.begin(), at, values.end());
    if (place.tenths == 0) return *at;
    const double next = *std::min_element(at + 1, values.end());
    return *at + (next - *at) * (static_cast<double>(place.tenths) / 10.0);
}

std::size_t first_pair(std::size_t j) { return j * (j - 1) / 2; }

} // namespace

void CurveNoise::add(base::TrialId trial, base::Iteration iteration, double score) {
    if (curves_.size() <= trial.value()) curves_.resize(trial.value() + std::size_t{1});
    Curve& curve = curves_[trial.value()];
    if (!curve.points.empty() && iteration <= curve.points.back().iteration) return;
    curve.points.push_back({iteration, score});
    if (!curve.counts && iteration > above_ && counted_.size() < most_curves) return count(trial);
    if (!curve.counts || is_new_[*curve.counts]) return;
    is_new_[*curve.counts] = true;
    new_.push_back(*curve.counts);
}

void CurveNoise::count(base::TrialId trial) {
    curves_[trial.value()].counts = counted_.size();
    new_.push_back(counted_.size());
    counted_.push_back(trial);
    is_new_.push_back(true);
    pairs_.resize(first_pair(counted_.size()));
}

void CurveNoise::restart(base::Iteration above) {
    above_ = above;
    for (const base::TrialId trial : counted_) curves_[trial.value()].counts.reset();
    counted_.clear();
    is_new_.clear();
    new_.clear();
    pairs_.clear();
    crossing_ = below_ = 0;
    known_ = true;
    estimate_.reset();
    level_.reset();
}

/// Compares the curves that have new points with all others.
void CurveNoise::catch_up() {
    for (const std::size_t k : new_) {
        for (std::size_t i = 0; i < k; ++i) update(pairs_[first_pair(k) + i], counted_[i], counted_[k]);
        for (std::size_t j = k + 1; j < counted_.size(); ++j)
            update(pairs_[first_pair(j) + k], counted_[k], counted_[j]);
        is_new_[k] = false;
    }
    new_.clear();
}

void CurveNoise::update(Pair& pair, base::TrialId a, base::TrialId b) {
    const bool crossed = pair.crosses();
    const double before = pair.distance;
    compare(pair, curves_[a.value()], curves_[b.value()], a < b);
    if (!pair.crosses() || (crossed && pair.distance == before)) return;
    known_ = false;
    if (crossed && before < level_) --below_;
    if (pair.distance < level_) ++below_;
    if (!crossed) ++crossing_;
}

/// Goes on where the last comparison ended.
void CurveNoise::compare(Pair& pair, const Curve& a, const Curve& b, bool a_is_lower) const {
    while (pair.next_a < a.points.size() && pair.next_b < b.points.size()) {
        const Point& p = a.points[pair.next_a];
        const Point& q = b.points[pair.next_b];
        if (p.iteration <= q.iteration) ++pair.next_a;
        if (q.iteration <= p.iteration) ++pair.next_b;
        if (p.iteration != q.iteration || !std::isfinite(p.score) || !std::isfinite(q.score)) continue;
        const bool a_is_better = p.score > q.score || (p.score == q.score && a_is_lower); // study::better
        if (pair.orders == 0 || (a_is_better != pair.a_is_better && pair.orders < 3)) ++pair.orders;
        pair.a_is_better = a_is_better;
        pair.distance = std::abs(p.score - q.score);
        pair.beyond = p.iteration > above_;
    }
}

std::optional<double> CurveNoise::estimate() {
    catch_up();
    if (known_) return estimate_;
    scratch_.clear();
    for (const Pair& pair : pairs_)
        if (pair.crosses()) scratch_.push_back(pair.distance);
    estimate_ = percentile_90(scratch_);
    known_ = true;
    return estimate_;
}

std::optional<double> CurveNoise::at_least() {
    catch_up();
    if (known_) return estimate_;
    const bool certain = level_ && below_ <= place_of_percentile_90(crossing_).position;
    return certain ? level_ : std::nullopt;
}

void CurveNoise::watch(double level) {
    level_ = level;
    const auto is_below = [level](const Pair& pair) { return pair.crosses() && pair.distance < level; };
    below_ = crossing_ == 0 ? 0 : static_cast<std::size_t>(std::ranges::count_if(pairs_, is_below));
}

void CurveNoise::snapshot(study::Encoder& out) const {
    out.varint(above_);
    out.varint(curves_.size());
    for (const Curve& curve : curves_) {
        out.varint(curve.points.size());
        base::Iteration before = 0;
        for (const Point& point : curve.points) {
            out.varint(point.iteration - before);
            out.f64(point.score);
            before = point.iteration;
        }
    }
    out.varint(counted_.size());
    for (const base::TrialId trial : counted_) out.varint(trial.value());
}

/// The pairs follow from the curves: the next estimate compares all of them.
void CurveNoise::restore(study::Decoder& in) {
    *this = {};
    above_ = in.varint();
    curves_.resize(in.count());
    for (Curve& curve : curves_) {
        curve.points.resize(in.count());
        base::Iteration before = 0;
        for (Point& point : curve.points) {
            point.iteration = before + in.varint();
            point.score = in.f64();
            before = point.iteration;
        }
    }
    for (std::size_t left = in.count(); left > 0; --left) {
        const std::uint64_t trial = in.varint();
        if (trial >= curves_.size() || curves_[trial].counts || counted_.size() >= most_curves)
            throw base::FormatError("the snapshot of scheduler pasha counts a curve twice, or an unknown one");
        count(base::TrialId(static_cast<base::TrialId::rep>(trial)));
    }
}

bool CurveNoise::valid() const {
    for (const Curve& curve : curves_) {
        for (std::size_t i = 1; i < curve.points.size(); ++i)
            if (curve.points[i].iteration <= curve.points[i - 1].iteration) return false;
    }
    const auto gone_beyond = [this](base::TrialId trial) {
        const Curve& curve = curves_[trial.value()];
        return curve.counts && !curve.points.empty() && curve.points.back().iteration > above_;
    };
    const auto crosses = [](const Pair& pair) { return pair.crosses(); };
    return std::ranges::all_of(counted_, gone_beyond) && is_new_.size() == counted_.size() &&
           pairs_.size() == (counted_.empty() ? 0 : first_pair(counted_.size())) &&
           crossing_ == static_cast<std::size_t>(std::ranges::count_if(pairs_, crosses));
}

} // namespace ranktune::schedulers
