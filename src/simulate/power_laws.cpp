// SPDX-License-Identifier: Apache-2.0
#include "simulate/power_laws.hpp"

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

class LawCurve final : public Curve {
  public:
    LawCurve(const PowerLaws& laws, const PowerLaw& law) : laws_(laws), law_(law) {}
    [[nodiscard]] double quality(const Progress& progress) const override { return law_.quality(progress); }
    [[nodiscard]] Progress progress_at(double quality) const override { return law_.progress_at(quality); }
    [[nodiscard]] Progress resumed(double quality, double) const override { return law_.progress_at(quality); }
    [[nodiscard]] Step step(const Progress&, base::Iteration iteration) const override {
        return laws_.step(law_, iteration);
    }

  private:
    const PowerLaws& laws_;
    PowerLaw law_;
};

} // namespace

double PowerLaw::quality(const Progress& progress) const {
    return limit + progress.lead - gap * std::pow(progress.iterations, -speed);
}

Progress PowerLaw::progress_at(double quality) const {
    if (quality >= limit) return {std::numeric_limits<double>::infinity(), quality - limit};
    const double exact = std::pow((limit - quality) / gap, -1.0 / speed);
    // A trial that goes on with its own configuration gets its own iteration back, without rounding errors.
    const double whole = std::round(exact);
    return {std::abs(exact - whole) < 1e-7 * whole ? whole : exact, 0.0};
}

PowerLaws::PowerLaws(const CurveModel& curves, const TimeModel& time, const study::StudySpec& spec)
    : model_(curves),
      time_(time),
      space_(spec.space),
      mode_(spec.objective.mode),
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
    look_around(spec.max_iterations);
}

/// What random configurations are like.
void PowerLaws::look_around(base::Iteration ceiling) {
    std::vector<space::Configuration> configurations;
    for (std::uint32_t i = 0; i < reference_configurations; ++i) {
        configurations.push_back(space_.sample(seed_ ^ other_seed, base::TrialId{i}));
        badness_.push_back(badness(point(configurations.back())));
    }
    std::ranges::sort(badness_);
    for (const auto& configuration : configurations)
        reachable_ = std::max(reachable_, law(configuration).quality({static_cast<double>(ceiling), 0.0}));
}

std::vector<double> PowerLaws::point(const space::Configuration& configuration) const {
    std::vector<double> unit;
    unit.reserve(optimum_.size());
    for (const auto& parameter : space_.parameters()) {
        if (std::holds_alternative<space::Constant>(parameter.domain)) continue;
        const space::Value* value = configuration.find(parameter.name);
        unit.push_back(value == nullptr ? 0.5 : coordinate(parameter.domain, *value));
    }
    return unit;
}

/// Weighted squared distance from the optimum: 0 there, at most 1.
double PowerLaws::badness(const std::vector<double>& point) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < point.size(); ++i) {
        const double farthest = std::max(optimum_[i], 1.0 - optimum_[i]);
        const double distance = (point[i] - optimum_[i]) / farthest;
        sum += weight_[i] * distance * distance;
    }
    return sum;
}

/// The share of random configurations that are better: so limits are spread alike in every space.
double PowerLaws::better_share(double badness) const {
    const auto better = std::ranges::lower_bound(badness_, badness) - badness_.begin();
    return static_cast<double>(better) / static_cast<double>(badness_.size());
}

PowerLaw PowerLaws::law(const space::Configuration& configuration) const {
    const std::vector<double> unit = point(configuration);
    base::Digest digest;
    for (const double coordinate : unit) digest.add(coordinate);
    const double share = better_share(badness(unit));
    PowerLaw law;
    law.key = static_cast<std::uint32_t>(digest.value());
    RngStream random(seed_, Purpose::curve, law.key, draw_shape);
    const double rough = model_.roughness * random.uniform();
    const double depth = random.uniform();
    const double luck = random.uniform();
    const double pace = random.uniform();
    const double loss = (model_.best - model_.worst) * std::pow(share, model_.skew);
    law.limit = std::max(model_.best - loss - rough, model_.start + 0.01);
    law.gap = (law.limit - model_.start) * (0.5 + 0.5 * depth);
    const double quick = (1.0 - model_.crossing) * luck + model_.crossing * share;
    law.speed = model_.slowest * std::pow(model_.fastest / model_.slowest, quick);
    law.slowness = std::exp(time_.spread * (2.0 * pace - 1.0));
    return law;
}

std::shared_ptr<const Curve> PowerLaws::curve(const space::Configuration& configuration) {
    return std::make_shared<LawCurve>(*this, law(configuration));
}

Step PowerLaws::step(const PowerLaw& law, base::Iteration iteration) const {
    const double seconds = time_.iteration * law.slowness;
    if (model_.noise == 0.0 && time_.jitter == 0.0) return {0.0, seconds};
    RngStream random(seed_, Purpose::curve, law.key, static_cast<std::uint32_t>(iteration) & 0x7FFF'FFFFU);
    const double noise = model_.noise * random.normal();
    return {noise, seconds * (1.0 + time_.jitter * (2.0 * random.uniform() - 1.0))};
}

} // namespace ranktune::simulate
