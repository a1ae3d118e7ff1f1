// SPDX-License-Identifier: Apache-2.0
#include "schedulers/curve_noise.hpp"

#include <algorithm>
#include <cmath>

#include "ranktune/base/error.hpp"
#include "ranktune/study/objective.hpp"

namespace ranktune::schedulers {
namespace {

/// As numpy.percentile(values, 90). Requires values.
double percentile_90(std::vector<double> values) {
    const std::size_t tenths = 9 * (values.size() - 1);
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(tenths / 10);
    std::nth_element(values.begin(), at, values.end());
    if (tenths % 10 == 0) return *at;
    const double next = *std::min_element(at + 1, values.end());
    return *at + (next - *at) * (static_cast<double>(tenths % 10) / 10.0);
}

std::size_t first_pair(std::size_t j) { return j * (j - 1) / 2; }

} // namespace

void CurveNoise::add(base::TrialId trial, base::Iteration iteration, double score) {
    if (curves_.size() <= trial.value()) curves_.resize(trial.value() + std::size_t{1});
    Curve& curve = curves_[trial.value()];
    if (!curve.points.empty() && iteration <= curve.points.back().iteration) return;
    curve.points.push_back({iteration, score});
    if (!curve.counts && iteration > above_ && counted_.size() < most_curves) count(trial);
    if (!curve.counts) return;
    const auto at = std::ranges::find(counted_, trial) - counted_.begin();
    is_new_[static_cast<std::size_t>(at)] = true;
}

void CurveNoise::count(base::TrialId trial) {
    curves_[trial.value()].counts = true;
    counted_.push_back(trial);
    is_new_.push_back(true);
    pairs_.resize(first_pair(counted_.size()));
}

void CurveNoise::restart(base::Iteration above) {
    above_ = above;
    for (const base::TrialId trial : counted_) curves_[trial.value()].counts = false;
    counted_.clear();
    is_new_.clear();
    pairs_.clear();
    estimate_.reset();
}

std::optional<double> CurveNoise::estimate() {
    if (std::ranges::find(is_new_, true) == is_new_.end()) return estimate_;
    bool changed = false;
    for (std::size_t k = 0; k < counted_.size(); ++k) {
        if (!is_new_[k]) continue;
        for (std::size_t other = 0; other < counted_.size(); ++other) {
            if (other == k) continue;
            const std::size_t i = std::min(k, other);
            const std::size_t j = std::max(k, other);
            Pair& pair = pairs_[first_pair(j) + i];
            compare(pair, counted_[i], counted_[j]);
            changed = changed || (pair.beyond && pair.orders >= 3);
        }
    }
    is_new_.assign(is_new_.size(), false);
    if (!changed) return estimate_;
    std::vector<double> distances;
    for (const Pair& pair : pairs_)
        if (pair.beyond && pair.orders >= 3) distances.push_back(pair.distance);
    estimate_ = percentile_90(std::move(distances));
    return estimate_;
}

/// Goes on where the last comparison ended.
void CurveNoise::compare(Pair& pair, base::TrialId a, base::TrialId b) const {
    const std::vector<Point>& of_a = curves_[a.value()].points;
    const std::vector<Point>& of_b = curves_[b.value()].points;
    while (pair.next_a < of_a.size() && pair.next_b < of_b.size()) {
        const Point& p = of_a[pair.next_a];
        const Point& q = of_b[pair.next_b];
        if (p.iteration <= q.iteration) ++pair.next_a;
        if (q.iteration <= p.iteration) ++pair.next_b;
        if (p.iteration != q.iteration || !std::isfinite(p.score) || !std::isfinite(q.score)) continue;
        const bool a_is_better = study::better({p.score, a}, {q.score, b});
        if (pair.orders == 0 || (a_is_better != pair.a_is_better && pair.orders < 3)) ++pair.orders;
        pair.a_is_better = a_is_better;
        pair.distance = std::abs(p.score - q.score);
        pair.beyond = p.iteration > above_;
    }
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
    return std::ranges::all_of(counted_, gone_beyond) && is_new_.size() == counted_.size() &&
           pairs_.size() == (counted_.empty() ? 0 : first_pair(counted_.size()));
}

} // namespace ranktune::schedulers
