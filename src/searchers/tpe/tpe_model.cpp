// SPDX-License-Identifier: Apache-2.0
#include "searchers/tpe/tpe_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <variant>

#include "searchers/coordinates/axes.hpp"
#include "searchers/results/startup.hpp"

namespace ranktune::searchers {
namespace {

constexpr double absent = std::numeric_limits<double>::quiet_NaN();
/// Numbers with more values are taken for continuous: their cells are narrower than any kernel.
constexpr std::uint64_t most_cells = 200;
/// With independent densities: after so many points that were all tried before, a random one is taken.
constexpr int most_tries = 8;

/// nullopt: the domain has one value.
std::optional<models::ParzenColumn> column_of(const space::Domain& domain) {
    const auto values = space::cardinality(domain);
    if (values == 1U) return {};
    models::ParzenColumn column;
    if (const auto* choice = std::get_if<space::Choice>(&domain); choice != nullptr && !choice->ordered) {
        column.levels = static_cast<std::uint32_t>(choice->values.size());
    } else if (values && *values <= most_cells) {
        column.borders.push_back(0.0);
        for (std::uint64_t i = 0; i < *values; ++i) {
            column.middles.push_back(space::encode(domain, space::value_at(domain, i)));
            column.borders.push_back(2.0 * column.middles.back() - column.borders.back());
        }
        column.borders.back() = 1.0;
    }
    return column;
}

/// How many conditions lie above a parameter.
std::size_t depth_of(const space::Parameter& parameter, const space::SearchSpace& space) {
    if (!parameter.condition) return 0;
    std::size_t depth = 1;
    for (const std::string& name : parameter.condition->names())
        depth = std::max(depth, 1 + depth_of(*space.find(name), space));
    return depth;
}

/// Startup points are not those of the stopgaps.
std::uint64_t startup_seed(std::uint64_t seed) {
    return base::RngStream(seed, base::Purpose::scramble, 0, std::numeric_limits<std::uint32_t>::max())();
}

} // namespace

TpeModel::TpeModel(space::SearchSpace space, std::uint64_t seed, const TpeOptions& options)
    : space_(std::move(space)),
      seed_(seed),
      options_(options),
      results_(enough_to_start(options.n_startup_trials), LargestBudget::Violators::ordered),
      tried_(space_) {
    uneven_ = !space_.rules().empty();
    for (const space::Parameter& parameter : space_.parameters()) {
        if (!space::has_coordinate(parameter.domain)) continue;
        const auto* choice = std::get_if<space::Choice>(&parameter.domain);
        uneven_ = uneven_ || (choice != nullptr && !choice->weights.empty());
        if (auto column = column_of(parameter.domain)) {
            columns_.push_back(std::move(*column));
            coordinate_of_.push_back(depth_.size());
        }
        depth_.push_back(depth_of(parameter, space_));
        levels_ = std::max(levels_, depth_.back());
    }
    if (space_.dimensions() <= models::Sobol::max_dimensions)
        sequence_.emplace(space_.dimensions(), startup_seed(seed));
}

// ---- points

TpeModel::Point TpeModel::whole(std::span<const double> columns, std::uint64_t place) const {
    Point point(depth_.size(), 0.5);
    for (std::size_t j = 0; j < columns.size(); ++j) point[coordinate_of_[j]] = columns[j];
    if (!space_.rules().empty()) return coordinates_of(space_, space_.decode(point, place));
    if (levels_ == 0) return point;
    const space::Configuration configuration = space_.decode(point, place);
    const auto entries = configuration.entries();
    std::size_t entry = 0;
    std::size_t at = 0;
    for (const space::Parameter& parameter : space_.parameters()) {
        const bool exists = entry < entries.size() && entries[entry].name == parameter.name;
        if (exists) ++entry;
        if (!space::has_coordinate(parameter.domain)) continue;
        if (!exists) point[at] = absent;
        ++at;
    }
    return point;
}

TpeModel::Point TpeModel::columns_of(std::span<const double> whole) const {
    Point columns;
    for (const std::size_t at : coordinate_of_) columns.push_back(whole[at]);
    return columns;
}

std::string TpeModel::branch_of(std::span<const double> point, std::size_t level) const {
    std::string name = std::to_string(level) + ":";
    for (std::size_t at = 0; at < point.size(); ++at)
        if (depth_[at] > 0 && depth_[at] <= level) name += std::isnan(point[at]) ? '0' : '1';
    return name;
}

bool TpeModel::is_new(const Point& point, const Asked& asked) const {
    if (!tried_.is_needed()) return true;
    const space::Configuration configuration = configuration_at(space_, point, asked.place);
    return !tried_.has(configuration) && std::ranges::find(asked.others, configuration) == asked.others.end();
}

// ---- the table

void TpeModel::read(const Observations& seen) {
    if (seen.size() < lines_ || !seen.continues(begin_)) *this = TpeModel(std::move(space_), seed_, options_);
    if (lines_ == 0) begin_ = seen.first(1);
    const base::Iteration before = results_.iteration();
    results_.read(seen);
    std::set<base::TrialId> touched;
    for (; lines_ < seen.size(); ++lines_) {
        const Observation& line = seen[lines_];
        if (line.kind == Observation::Kind::asked) entries_[line.trial].asked = line.point;
        // A trial that goes on after a pause counts from its next report.
        if (line.kind == Observation::Kind::over || line.kind == Observation::Kind::paused)
            running_.erase(line.trial);
        else
            running_.insert(line.trial);
        touched.insert(line.trial);
    }
    if (results_.iteration() == before) {
        for (const base::TrialId trial : touched) update(trial, seen);
    } else {
        for (const auto& [trial, entry] : entries_) update(trial, seen);
    }
    tried_.read(seen);
}

void TpeModel::update(base::TrialId trial, const Observations& seen) {
    const auto point = results_.point_of(trial);
    if (!point && running_.contains(trial))
        pending_.insert(trial);
    else
        pending_.erase(trial);
    if (point) return set(trial, seen, point->number, point->score);
    if (options_.constant_liar) return set(trial, seen, entries_.at(trial).asked, std::nullopt);
    set(trial, seen, std::nullopt, std::nullopt);
}

void TpeModel::set(base::TrialId trial, const Observations& seen, std::optional<std::uint64_t> number,
                   std::optional<double> score) {
    Entry& entry = entries_.at(trial);
    if (entry.number == number && entry.score == score) return;
    for (std::size_t level = 0; level <= levels_; ++level) {
        if (entry.number && entry.number != number)
            branches_.at(branch_of(seen.point(*entry.number), level)).remove(trial);
        if (!number) continue;
        const Point point = seen.point(*number);
        branches_.try_emplace(branch_of(point, level), columns_, options_)
            .first->second.put(trial, columns_of(point), score);
    }
    entry.number = number;
    entry.score = score;
}

// ---- suggestions

Suggestion TpeModel::suggest(Turn turn, const Observations& seen, std::span<const space::Configuration> others) {
    base::RngStream random(seed_, base::Purpose::suggest, static_cast<std::uint32_t>(turn.ticket));
    read(seen);
    Pick picked = pick({turn.place, others}, random);
    return {tried_.or_another(configuration_at(space_, std::move(picked.point), turn.place), random, others),
            std::move(picked.basis)};
}

TpeModel::Pick TpeModel::pick(const Asked& asked, base::RngStream& random) {
    if (columns_.empty())
        return {Point(depth_.size(), 0.5), {.model = "sobol", .note = "every parameter has one value"}};
    if (results_.iteration() == 0) return {startup(asked.place, random), before_a_model(options_.n_startup_trials)};
    if (levels_ > 0 && random.uniform() < options_.branch_fraction) return from_branch(asked, random);
    TpeDensities& all = branches_.at(branch_of({}, 0));
    all.settle(gamma());
    return from_densities(all, branch_of({}, 0), asked, random);
}

TpeModel::Point TpeModel::startup(std::uint64_t place, base::RngStream& random) const {
    if (!sequence_) return random_point(place, random);
    const std::vector<double> point = sequence_->point(static_cast<std::uint32_t>(place));
    if (!uneven_) return whole(columns_of(point), place);
    return coordinates_of(space_, space_.spread(point, place, startup_seed(seed_)));
}

TpeModel::Point TpeModel::random_point(std::uint64_t place, base::RngStream& random) const {
    Point columns(columns_.size());
    for (double& x : columns) x = random.uniform();
    return whole(columns, place);
}

TpeModel::Pick TpeModel::from_branch(const Asked& asked, base::RngStream& random) {
    Point point = random_point(asked.place, random);
    const std::string name = branch_of(point, 1 + random.below(levels_));
    const auto branch = branches_.find(name);
    study::SuggestionBasis chance{.model = "random", .note = "its branch of the space has too few results for a model"};
    if (branch == branches_.end()) return {std::move(point), std::move(chance)};
    branch->second.settle(gamma());
    if (branch->second.results() < least_results) return {std::move(point), std::move(chance)};
    Pick modelled = from_densities(branch->second, name, asked, random);
    if (modelled.point.empty()) return {std::move(point), std::move(chance)};
    modelled.basis.note = "searches one branch of the space";
    return modelled;
}

/// Empty: no candidate lies in the branch.
TpeModel::Pick TpeModel::from_densities(const TpeDensities& densities, const std::string& branch, const Asked& asked,
                                        base::RngStream& random) const {
    const std::size_t level = std::stoul(branch);
    const auto lies_in_branch = [&](const Point& point) { return level == 0 || branch_of(point, level) == branch; };
    if (!options_.multivariate) {
        Point point;
        for (int tries = 0; tries < most_tries; ++tries) {
            point = whole(densities.draw_best(options_.n_ei_candidates, random), asked.place);
            if (lies_in_branch(point) && is_new(point, asked)) break;
        }
        if (!lies_in_branch(point)) return {};
        return best_candidate({std::move(point)}, densities, asked);
    }
    std::vector<Point> candidates;
    for (std::uint32_t i = 0; i < options_.n_ei_candidates; ++i) {
        Point point = whole(densities.draw(random), asked.place);
        if (lies_in_branch(point)) candidates.push_back(std::move(point));
    }
    return candidates.empty() ? Pick() : best_candidate(std::move(candidates), densities, asked);
}

/// The one with the largest gain that is new, or else the largest gain.
TpeModel::Pick TpeModel::best_candidate(std::vector<Point> candidates, const TpeDensities& densities,
                                        const Asked& asked) const {
    std::vector<double> columns;
    for (const Point& point : candidates)
        for (const std::size_t at : coordinate_of_) columns.push_back(point[at]);
    const std::vector<double> gains = densities.gains(columns);
    std::vector<std::size_t> order(candidates.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return gains[i]; });
    const auto first_new = std::ranges::find_if(order, [&](std::size_t i) { return is_new(candidates[i], asked); });
    const std::size_t best = first_new == order.end() ? order.front() : *first_new;
    study::SuggestionBasis basis{.model = "tpe", .results = densities.results()};
    if (std::isfinite(gains[best])) basis.gain = gains[best];
    return {std::move(candidates[best]), std::move(basis)};
}

} // namespace ranktune::searchers
