// SPDX-License-Identifier: Apache-2.0
#include "searchers/gp/gp_model.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "models/minimise.hpp"
#include "models/pareto.hpp"
#include "models/power_transform.hpp"
#include "searchers/gp/gp_repeats.hpp"

namespace ranktune::searchers {
namespace {

constexpr double no_gain = -std::numeric_limits<double>::infinity();
constexpr int fit_evaluations = 40;
constexpr int climb_evaluations = 25;
constexpr std::size_t climbs = 5;
constexpr std::size_t most_under_way = 64;
/// Around so many of the best results points are tried, for each objective.
constexpr std::size_t most_centres = 3;
/// log P of a point that is more likely to keep the constraints than not.
const double likely_kept = std::log(0.5);

/// Candidates of one suggestion: fewer where each costs more.
std::size_t candidates_for(std::size_t results) { return std::clamp<std::size_t>(100000 / (results + 1), 200, 1000); }

/// How many results there were at the last fit, when there are `results` now.
std::size_t last_fit(std::size_t results, const GpOptions& options) {
    std::size_t at = options.startup;
    while (true) {
        const std::size_t next = at + std::max<std::size_t>(1, std::min(at, options.max_results) / 10);
        if (next > results) return std::min(at, results);
        at = next;
    }
}

std::vector<std::size_t> newest(std::span<const std::size_t> all, std::size_t count) {
    return {all.end() - static_cast<std::ptrdiff_t>(count), all.end()};
}
std::vector<std::size_t> evenly(std::span<const std::size_t> all, std::size_t count) {
    std::vector<std::size_t> some;
    for (std::size_t i = 0; i < count; ++i) some.push_back(all[i * all.size() / count]);
    return some;
}

/// With three and more objectives a long front would make too many boxes: those with the most room around them stay.
std::vector<std::vector<double>> thinned(const std::vector<std::vector<double>>& front) {
    constexpr std::size_t most[] = {200, 40, 16}; // with 2, 3, 4 objectives
    std::vector<models::ParetoPoint> points;
    for (const auto& each : front) points.push_back({each});
    const auto ranks = models::nondominated_ranks(points);
    std::vector<std::vector<double>> some;
    for (const std::size_t i : models::pareto_order(points))
        if (ranks[i] == 0 && some.size() < most[front[i].size() - 2]) some.push_back(front[i]);
    return some;
}

/// log i / log R.
double level(base::Iteration at, base::Iteration largest) {
    return std::log(static_cast<double>(std::max<base::Iteration>(at, 1))) / std::log(static_cast<double>(largest));
}

} // namespace

GpModel::GpModel(const space::SearchSpace& space, std::uint64_t seed, const GpOptions& options)
    : space_(space),
      seed_(seed),
      options_(options),
      axes_(axes_of(space_)),
      data_(options.startup, options.max_iterations > 1),
      tried_(space_, true),
      limits_(std::vector<bool>{}) {
    plain_ = space_.rules().empty();
    for (const space::Parameter& parameter : space_.parameters()) plain_ = plain_ && !parameter.condition;
    for (std::size_t j = 0; j < axes_.size(); ++j) {
        if (axes_[j].values == 1) continue;
        active_.push_back(j);
        plain_ = plain_ && axes_[j].values == 0;
        finite_ = finite_ && axes_[j].values != 0;
    }
    plain_ = plain_ && active_.size() == axes_.size();
    limits_ = GpLimits(categories());
}

std::vector<bool> GpModel::categories() const {
    std::vector<bool> all;
    for (const std::size_t j : active_) all.push_back(axes_[j].category);
    if (options_.max_iterations > 1) all.push_back(false);
    return all;
}

std::vector<double> GpModel::coordinates(const space::Configuration& configuration) const {
    return coordinates_of(space_, configuration);
}

std::vector<double> GpModel::varying(const Point& point, base::Iteration at) const {
    std::vector<double> some;
    some.reserve(active_.size() + 1);
    for (const std::size_t j : active_) some.push_back(point[j]);
    if (options_.max_iterations > 1) some.push_back(level(at, options_.max_iterations));
    return some;
}

GpModel::Point GpModel::canonical(Point point, std::uint64_t place) const {
    if (plain_) return point;
    return coordinates(configuration_at(space_, std::move(point), place));
}

std::optional<Suggestion> GpModel::suggest(Turn turn, const Observations& seen,
                                           std::span<const space::Configuration> others) {
    data_.read(seen);
    tried_.read(seen);
    if (active_.empty() || data_.results().empty()) return {};
    learn(seen, others);
    base::RngStream random(seed_, base::Purpose::suggest, static_cast<std::uint32_t>(turn.ticket));
    std::vector<Candidate> all = candidates(turn.place, random);
    evaluate(all);
    std::ranges::stable_sort(all, std::ranges::greater{}, &Candidate::acquisition);
    const std::size_t count = std::min(climbs, all.size());
    for (std::size_t i = 0; i < count; ++i) all.push_back(climbed(all[i], turn.place));
    Chosen best = chosen(std::move(all), turn.place, others, random);
    study::SuggestionBasis basis = basis_of(best);
    return Suggestion(std::move(best.configuration), std::move(basis));
}

study::SuggestionBasis GpModel::why_none() const {
    study::SuggestionBasis basis = before_a_model(options_.startup);
    if (active_.empty()) basis.note = "every parameter has one value";
    return basis;
}

study::SuggestionBasis GpModel::basis_of(const Chosen& best) const {
    study::SuggestionBasis basis;
    basis.model = "gp";
    const Outcome& first = outcomes_.front();
    basis.results = first.targets.values.size();
    const Point point = coordinates(best.configuration);
    if (outcomes_.size() == 1) {
        const double score = first.score(first.surface.process.posterior(varying(point)).mean);
        if (std::isfinite(score)) basis.expected = score;
    }
    if (const double gain = acquisition(point); std::isfinite(gain)) basis.gain = gain;
    if (!any_feasible_)
        basis.note = "no result keeps the constraints yet: most likely to keep them";
    else if (best.repeats)
        basis.note =
            "tried before: results are noisy, and one more of it is worth more than one of a new configuration";
    return basis;
}

double GpModel::Outcome::score(double target) const {
    return targets.of_scores.back(models::inverse_yeo_johnson(targets.of_powers.back(target), power));
}

std::optional<GpModel::Best> GpModel::best(const Observations& seen) {
    data_.read(seen);
    if (active_.empty() || data_.results().empty()) return {};
    learn(seen, {});
    if (!any_feasible_) return {};
    const Outcome& only = outcomes_.front();
    const models::GpPosterior there = only.surface.process.posterior(varying(best_points_.front()));
    const double above = only.score(there.mean + there.deviation());
    const double below = only.score(there.mean - there.deviation());
    Best best{.line = best_lines_.front(),
              .mean = only.score(there.mean),
              .deviation = 0.5 * (above - below),
              .results = only.targets.values.size(),
              .noisy = noisy_};
    if (!std::isfinite(best.mean) || !std::isfinite(best.deviation)) return {};
    return best;
}

// ---- the model

std::vector<double> GpModel::scores(const Observations& seen, std::span<const GpData::Result> results, std::size_t k) {
    std::vector<double> all;
    for (const GpData::Result& each : results) {
        const auto values = seen[each.line].score.values();
        all.push_back(k == 0 ? each.score : k < values.size() ? values[k] : no_gain);
    }
    return all;
}

GpModel::Targets GpModel::targets(std::vector<double> values, double power) {
    double worst = std::numeric_limits<double>::infinity();
    for (const double each : values)
        if (std::isfinite(each)) worst = std::min(worst, each);
    for (double& each : values) each = std::isfinite(each) ? each : worst;
    const models::Standardisation of_scores(values);
    for (double& each : values) each = models::yeo_johnson(of_scores(each), power);
    const models::Standardisation of_powers(values);
    for (double& each : values) each = of_powers(each);
    return {std::move(values), of_scores, of_powers};
}

std::vector<double> GpModel::worth(const Observations& seen, std::span<const GpData::Result> all) const {
    if (options_.objectives == 1) return scores(seen, all, 0);
    std::vector<models::ParetoPoint> points;
    for (const GpData::Result& each : all)
        points.push_back({seen[each.line].score.values(), seen[each.line].score.trouble()});
    std::vector<double> places(all.size());
    double place = 0.0;
    for (const std::size_t i : models::pareto_order(points)) places[i] = place--;
    return places;
}

template <class Pick>
std::vector<GpData::Result> GpModel::best_and_others(const Observations& seen, std::span<const GpData::Result> all,
                                                     std::size_t count, Pick pick) const {
    if (all.size() <= count) return {all.begin(), all.end()};
    const std::vector<double> goodness = worth(seen, all);
    const auto rank = [&](std::size_t i) { return std::pair(all[i].iteration == data_.iteration(), goodness[i]); };
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, std::ranges::greater{}, rank);
    std::vector<std::size_t> rest(order.begin() + static_cast<std::ptrdiff_t>(count / 2), order.end());
    order.resize(count / 2);
    std::ranges::sort(rest);
    for (const std::size_t each : pick(rest, count - count / 2)) order.push_back(each);
    std::ranges::sort(order);
    std::vector<GpData::Result> chosen;
    for (const std::size_t each : order) chosen.push_back(all[each]);
    return chosen;
}

/// Fits the kernel to the results that `fitted_` names.
void GpModel::fit(const Observations& seen) {
    const auto some = best_and_others(seen, fitted_, most_fitted, evenly);
    std::vector<double> points;
    for (const GpData::Result& each : some) {
        const std::vector<double> point = varying(seen.point(each.number), each.iteration);
        points.insert(points.end(), point.begin(), point.end());
    }
    outcomes_.clear();
    for (std::size_t k = 0; k < options_.objectives; ++k) {
        const std::vector<double> values = scores(seen, some, k);
        const double power = models::most_normal_power(targets(values, 1.0).values);
        const models::GpKernel kernel =
            models::fit_kernel(categories(), points, targets(values, power).values, fit_evaluations);
        outcomes_.push_back({GpSurface{models::GaussianProcess(categories(), kernel)}, power});
    }
    limits_.fit(limited(seen, some));
}

void GpModel::learn(const Observations& seen, std::span<const space::Configuration> others) {
    const std::vector<GpData::Result> all = data_.results();
    const std::size_t at = last_fit(all.size(), options_);
    const std::size_t kept = options_.max_results - options_.max_results / 10;
    auto held = best_and_others(seen, std::span(all).first(at), kept, newest);
    if (outcomes_.empty() || held != fitted_) {
        fitted_ = held;
        fit(seen);
    }
    held.insert(held.end(), all.begin() + static_cast<std::ptrdiff_t>(at), all.end());

    std::vector<Point> points;
    for (const GpData::Result& each : held) points.push_back(varying(seen.point(each.number), each.iteration));
    std::vector<std::uint64_t> under_way = data_.under_way();
    if (under_way.size() > most_under_way)
        under_way.erase(under_way.begin(), under_way.end() - static_cast<std::ptrdiff_t>(most_under_way));
    std::vector<Point> trained;
    for (const std::uint64_t number : under_way) trained.push_back(varying(seen.point(number)));
    for (const space::Configuration& other : others) trained.push_back(varying(coordinates(other)));
    points.insert(points.end(), trained.begin(), trained.end());
    for (std::size_t k = 0; k < outcomes_.size(); ++k) {
        Outcome& outcome = outcomes_[k];
        outcome.surface.hold(points);
        outcome.targets = targets(scores(seen, held, k), outcome.power);
        outcome.surface.process.set_targets(outcome.targets.values);
    }
    training_ = trained;
    if (!limits_.empty()) limits_.learn(limited(seen, held), trained);
    std::vector<Point> found = take_best(seen, held);
    noisy_ = any_feasible_ && is_noisy(seen, held); // before, a repeat would cost the acquisition nothing
    gain_.emplace(gain_over(std::move(found), expected_of(trained)));
}

bool GpModel::is_noisy(const Observations& seen, std::span<const GpData::Result> held) const {
    return std::ranges::any_of(outcomes_, [&](const Outcome& outcome) {
        GpRepeats repeats;
        for (std::size_t i = 0; i < held.size(); ++i)
            if (std::isfinite(held[i].score) && held[i].iteration == data_.iteration() &&
                !is_earlier(seen[held[i].line].trial))
                repeats.add(outcome.surface.points[i], seen.grid_point(held[i].number), outcome.targets.values[i]);
        return are_noisy(outcome.surface.process.kernel(), repeats);
    });
}

GpLimits::Results GpModel::limited(const Observations& seen, std::span<const GpData::Result> results) const {
    GpLimits::Results known;
    for (const GpData::Result& each : results) {
        std::vector<double> distances = seen.distances(each.line);
        if (distances.empty()) continue;
        known.points.push_back(varying(seen.point(each.number), each.iteration));
        known.distances.push_back(std::move(distances));
    }
    return known;
}

std::vector<GpModel::Point> GpModel::take_best(const Observations& seen, std::span<const GpData::Result> held) {
    std::vector<Point> smooth(held.size());
    for (const Outcome& outcome : outcomes_) {
        const std::vector<double> values = outcome.surface.process.smoothed();
        for (std::size_t i = 0; i < held.size(); ++i) smooth[i].push_back(values[i]);
    }
    std::vector<std::size_t> all; // at the iteration of suggestions
    for (std::size_t i = 0; i < held.size(); ++i)
        if (held[i].iteration == data_.iteration()) all.push_back(i);
    std::vector<std::size_t> kept;
    std::ranges::copy_if(all, std::back_inserter(kept),
                         [&](std::size_t i) { return seen[held[i].line].score.feasible; });
    any_feasible_ = !kept.empty();
    if (any_feasible_) all = std::move(kept);
    std::vector<models::ParetoPoint> points;
    for (const std::size_t i : all)
        points.push_back({smooth[i], any_feasible_ ? 0.0 : seen[held[i].line].score.violation});
    best_points_.clear();
    best_lines_.clear();
    std::vector<Point> found;
    for (const std::size_t place : models::pareto_order(points)) {
        if (best_points_.size() < most_centres * outcomes_.size()) {
            best_points_.push_back(seen.point(held[all[place]].number));
            best_lines_.push_back(held[all[place]].line);
        }
        found.push_back(smooth[all[place]]);
    }
    return found;
}

std::vector<GpModel::Point> GpModel::expected_of(std::span<const Point> trained) const {
    std::vector<double> points;
    std::vector<Point> means;
    for (const Point& point : trained) {
        if (limits_.log_probability(point) < likely_kept) continue;
        points.insert(points.end(), point.begin(), point.end());
        means.emplace_back();
    }
    if (means.empty()) return means;
    for (const Outcome& outcome : outcomes_) {
        const auto posteriors = outcome.surface.process.posteriors(points);
        for (std::size_t i = 0; i < means.size(); ++i) means[i].push_back(posteriors[i].mean);
    }
    return means;
}

/// An improvement on what is expected anyway is none.
models::HypervolumeGain GpModel::gain_over(std::vector<Point> found, std::span<const Point> expected) const {
    Point reference; // none with one objective
    for (std::size_t k = 0; outcomes_.size() > 1 && k < outcomes_.size(); ++k) {
        double low = found.front()[k];
        double high = low;
        for (const Point& each : found) {
            low = std::min(low, each[k]);
            high = std::max(high, each[k]);
        }
        reference.push_back(low - 0.1 * (high > low ? high - low : 1.0));
    }
    found.insert(found.end(), expected.begin(), expected.end());
    if (outcomes_.size() > 1) found = thinned(found);
    return models::HypervolumeGain(std::move(found), std::move(reference));
}

// ---- the acquisition

double GpModel::gain(std::span<const models::GpPosterior> posteriors) const {
    std::vector<double> means;
    std::vector<double> deviations;
    bool any_unknown = false;
    for (const models::GpPosterior& each : posteriors) {
        any_unknown = any_unknown || each.variance > models::GpPosterior::least_variance;
        means.push_back(each.mean);
        deviations.push_back(each.deviation());
    }
    return any_unknown ? gain_->log_expected(means, deviations) : no_gain;
}

double GpModel::gain(std::span<const double> point, std::span<double> slopes) const {
    const std::size_t m = outcomes_.size();
    std::vector<double> means;
    std::vector<double> deviations;
    std::vector<Point> of_means(m, Point(point.size()));
    std::vector<Point> of_variances(m, Point(point.size()));
    for (std::size_t k = 0; k < m; ++k) {
        const auto there = outcomes_[k].surface.process.posterior(point, of_means[k], of_variances[k]);
        means.push_back(there.mean);
        deviations.push_back(there.deviation());
    }
    std::vector<double> by_means(m);
    std::vector<double> by_deviations(m);
    const double value = gain_->log_expected(means, deviations, by_means, by_deviations);
    for (std::size_t k = 0; k < m; ++k)
        for (std::size_t j = 0; j < point.size(); ++j)
            slopes[j] += by_means[k] * of_means[k][j] + by_deviations[k] * 0.5 * of_variances[k][j] / deviations[k];
    return value;
}

double GpModel::acquisition(const Point& point) const {
    const Point some = varying(point);
    const double kept = limits_.log_probability(some);
    if (!any_feasible_) return kept;
    std::vector<models::GpPosterior> posteriors;
    for (const Outcome& outcome : outcomes_) posteriors.push_back(outcome.surface.process.posterior(some));
    return kept + gain(posteriors);
}

void GpModel::evaluate(std::vector<Candidate>& candidates) const {
    std::vector<double> points;
    for (const Candidate& each : candidates) {
        const std::vector<double> point = varying(each.point);
        points.insert(points.end(), point.begin(), point.end());
    }
    const std::vector<double> kept = limits_.log_probabilities(points, candidates.size());
    for (std::size_t i = 0; i < candidates.size(); ++i) candidates[i].acquisition = kept[i];
    if (!any_feasible_) return;
    std::vector<std::vector<models::GpPosterior>> posteriors(candidates.size());
    for (const Outcome& outcome : outcomes_) {
        const auto all = outcome.surface.process.posteriors(points);
        for (std::size_t i = 0; i < candidates.size(); ++i) posteriors[i].push_back(all[i]);
    }
    for (std::size_t i = 0; i < candidates.size(); ++i) candidates[i].acquisition += gain(posteriors[i]);
}

GpModel::Point GpModel::near(const Point& point, double width, base::RngStream& random) const {
    Point moved = point;
    const double chance = 1.0 / static_cast<double>(active_.size());
    for (const std::size_t j : active_) {
        const bool jumps = random.uniform() < chance && axes_[j].values != 0;
        if (std::isnan(moved[j]) || jumps)
            moved[j] = random.uniform();
        else if (!axes_[j].category)
            moved[j] = std::clamp(moved[j] + width * random.normal(), 0.0, below_one);
    }
    return moved;
}

std::vector<GpModel::Candidate> GpModel::candidates(std::uint64_t place, base::RngStream& random) const {
    std::vector<Candidate> all;
    const std::size_t count = candidates_for(outcomes_.front().surface.process.size());
    for (std::size_t i = 0; i < count; ++i) {
        Point point(axes_.size());
        for (int tries = 0; tries == 0 || (tries < 4 && !space_.allows(point, place)); ++tries)
            for (double& each : point) each = random.uniform();
        all.push_back({canonical(std::move(point), place)});
    }
    for (std::size_t i = 0; i < count / 4; ++i) {
        const Point& centre = best_points_[i % best_points_.size()];
        const double width = std::pow(10.0, -1.0 - 2.0 * random.uniform());
        all.push_back({canonical(near(centre, width, random), place)});
    }
    if (noisy_)
        for (const Point& each : best_points_) all.push_back({each});
    return all;
}

GpModel::Candidate GpModel::climbed(Candidate from, std::uint64_t place) const {
    for (int round = 0; round < 3; ++round) {
        const double before = from.acquisition;
        from = along_lists(along_numbers(from, place), place);
        if (finite_ || plain_ || !(from.acquisition > before + 1e-6)) break;
    }
    return from;
}

GpModel::Candidate GpModel::along_numbers(const Candidate& from, std::uint64_t place) const {
    std::vector<std::size_t> moving; // positions in active_
    for (std::size_t i = 0; i < active_.size(); ++i) {
        const Axis& axis = axes_[active_[i]];
        const bool climbs_here = !axis.category && (axis.values == 0 || axis.values > short_list);
        if (climbs_here && !std::isnan(from.point[active_[i]])) moving.push_back(i);
    }
    if (moving.empty() || from.acquisition == no_gain) return from;
    std::vector<double> x = varying(from.point);
    const auto loss = [&](std::span<const double> at, std::span<double> gradient) {
        for (std::size_t i = 0; i < moving.size(); ++i) x[moving[i]] = at[i];
        std::vector<double> slopes(x.size(), 0.0);
        double value = limits_.empty() ? 0.0 : limits_.log_probability(x, slopes);
        if (any_feasible_) value += gain(x, slopes);
        for (std::size_t i = 0; i < moving.size(); ++i) gradient[i] = -slopes[moving[i]];
        return -value;
    };
    std::vector<double> start;
    for (const std::size_t i : moving) start.push_back(from.point[active_[i]]);
    const std::vector<double> low(moving.size(), 0.0);
    const std::vector<double> high(moving.size(), below_one);
    const models::Minimum top = models::minimise(loss, std::move(start), low, high, climb_evaluations, 1e-4);
    Candidate to = from;
    for (std::size_t i = 0; i < moving.size(); ++i) to.point[active_[moving[i]]] = top.point[i];
    to.point = canonical(std::move(to.point), place);
    to.acquisition = acquisition(to.point);
    return to.acquisition > from.acquisition ? to : from;
}

/// Tries all values of one list after the other.
GpModel::Candidate GpModel::along_lists(Candidate from, std::uint64_t place) const {
    for (const std::size_t j : active_) {
        if (axes_[j].values == 0 || axes_[j].values > short_list || std::isnan(from.point[j])) continue;
        std::vector<Candidate> others;
        for (std::uint64_t value = 0; value < axes_[j].values; ++value) {
            Point point = from.point;
            point[j] = middle(axes_[j], value);
            others.push_back({canonical(std::move(point), place)});
        }
        evaluate(others);
        const auto best = std::ranges::max_element(others, {}, &Candidate::acquisition);
        if (best->acquisition > from.acquisition) from = *best;
    }
    return from;
}

bool GpModel::may_repeat(const Point& point) const {
    if (!noisy_) return false;
    return std::ranges::none_of(training_, [&](const Point& each) { return same_point(each, varying(point)); });
}

GpModel::Chosen GpModel::chosen(std::vector<Candidate> all, std::uint64_t place,
                                std::span<const space::Configuration> others, base::RngStream& random) const {
    std::ranges::stable_sort(all, std::ranges::greater{}, &Candidate::acquisition);
    for (const Candidate& each : all) {
        auto configuration = configuration_at(space_, each.point, place);
        if (std::ranges::find(others, configuration) != others.end()) continue;
        const bool repeats = tried_.has(configuration);
        if (!repeats || may_repeat(each.point)) return {std::move(configuration), repeats};
    }
    return {tried_.or_another(configuration_at(space_, std::move(all.front().point), place), random, others), false};
}

} // namespace ranktune::searchers
