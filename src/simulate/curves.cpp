// SPDX-License-Identifier: Apache-2.0
#include "simulate/curves.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ranktune/base/digest.hpp"
#include "ranktune/base/rng.hpp"

namespace ranktune::simulate {
namespace {

using base::Purpose;
using base::RngStream;

/// Base index of each kind of draw of the purpose `curve`.
constexpr std::uint32_t draw_landscape = 0x8000'0000U;
constexpr std::uint32_t draw_shape = 0x8000'0001U;
/// Keeps the configurations of best_reachable apart from those of random search.
constexpr std::uint64_t other_seed = 0x5EED'0F0A'11B0'0575U;
constexpr std::uint32_t reference_configurations = 4096;

double coordinate(const space::Domain& domain, const space::Value& value) {
    const auto* grid = std::get_if<space::Grid>(&domain);
    if (grid == nullptr) return space::encode(domain, value);
    const auto at = std::ranges::find(grid->values, value) - grid->values.begin();
    return (static_cast<double>(at) + 0.5) / static_cast<double>(grid->values.size());
}

} // namespace

double Curve::quality(const Progress& progress) const {
    return limit + progress.lead - gap * std::pow(progress.iterations, -speed);
}

Progress Curve::progress_at(double quality) const {
    if (quality >= limit) return {std::numeric_limits<double>::infinity(), quality - limit};
    const double exact = std::pow((limit - quality) / gap, -1.0 / speed);
    // A trial that goes on with its own configuration gets its own iteration back, without rounding errors.
    const double whole = std::round(exact);
    return {std::abs(exact - whole) < 1e-7 * whole ? whole : exact, 0.0};
}

Curves::Curves(const CurveModel& curves, const TimeModel& time, const study::StudySpec& spec)
    : model_(curves),
      time_(time),
      space_(spec.space),
      mode_(spec.objective.mode),
      ceiling_(spec.max_iterations),
      seed_(curves.seed.value_or(spec.seed)) {
    double sum = 0.0;
    std::uint32_t dimension = 0;
    for (const auto& parameter : space_.parameters()) {
        if (std::holds_alternative<space::Constant>(parameter.domain)) continue;
        RngStream random(seed_, Purpose::curve, dimension++, draw_landscape);
        optimum_.push_back(0.15 + 0.7 * random.uniform());
        weight_.push_back(std::exp(-2.0 * random.uniform()));
        sum += weight_.back();
    }
    for (double& weight : weight_) weight /= sum;
}

std::vector<double> Curves::point(const space::Configuration& configuration) const {
    std::vector<double> unit;
    unit.reserve(optimum_.size());
    for (const auto& parameter : space_.parameters()) {
        if (std::holds_alternative<space::Constant>(parameter.domain)) continue;
        const space::Value* value = configuration.find(parameter.name);
        unit.push_back(value == nullptr ? 0.5 : coordinate(parameter.domain, *value));
    }
    return unit;
}

Curve Curves::curve(const space::Configuration& configuration) const {
    const std::vector<double> unit = point(configuration);
    double badness = 0.0; // 0 at the optimum, at most 1
    base::Digest digest;
    for (std::size_t i = 0; i < unit.size(); ++i) {
        const double farthest = std::max(optimum_[i], 1.0 - optimum_[i]);
        const double distance = (unit[i] - optimum_[i]) / farthest;
        badness += weight_[i] * distance * distance;
        digest.add(unit[i]);
    }
    const double goodness = 1.0 - std::min(badness, 1.0);
    Curve curve;
    curve.key = static_cast<std::uint32_t>(digest.value());
    RngStream random(seed_, Purpose::curve, curve.key, draw_shape);
    const double rough = model_.roughness * random.uniform();
    const double depth = random.uniform();
    const double luck = random.uniform();
    const double pace = random.uniform();
    curve.limit = std::max(model_.worst + (model_.best - model_.worst) * goodness - rough, model_.start + 0.01);
    curve.gap = (curve.limit - model_.start) * (0.5 + 0.5 * depth);
    const double quick = (1.0 - model_.crossing) * luck + model_.crossing * (1.0 - goodness);
    curve.speed = model_.slowest * std::pow(model_.fastest / model_.slowest, quick);
    curve.slowness = std::exp(time_.spread * (2.0 * pace - 1.0));
    return curve;
}

void Curves::advance(Progress& progress) const {
    progress.iterations += 1.0;
    progress.lead *= 1.0 - model_.forgetting;
}

Chance Curves::chance(const Curve& curve, base::Iteration iteration) const {
    if (model_.noise == 0.0 && time_.jitter == 0.0) return {};
    RngStream random(seed_, Purpose::curve, curve.key, static_cast<std::uint32_t>(iteration) & 0x7FFF'FFFFU);
    const double noise = model_.noise * random.normal();
    return {noise, 1.0 + time_.jitter * (2.0 * random.uniform() - 1.0)};
}

double Curves::best_reachable() const {
    double best = 0.0;
    for (std::uint32_t i = 0; i < reference_configurations; ++i) {
        const Curve one = curve(space_.sample(seed_ ^ other_seed, base::TrialId{i}));
        best = std::max(best, one.quality({static_cast<double>(ceiling_), 0.0}));
    }
    return best;
}

} // namespace ranktune::simulate
