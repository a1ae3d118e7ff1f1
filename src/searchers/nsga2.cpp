// SPDX-License-Identifier: Apache-2.0
#include "searchers/nsga2.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "models/pareto.hpp"
#include "ranktune/study/spec.hpp"
#include "searchers/coordinates/tried.hpp"
#include "searchers/coordinates/variation.hpp"

namespace ranktune::searchers {

study::SearcherInfo describe_nsga2();

std::optional<space::Configuration> Nsga2Searcher::suggest(std::uint64_t index, const Observations& seen) const {
    follow(seen);
    if (is_random(index, seen)) return space_.sample(seed_, base::TrialId{static_cast<std::uint32_t>(index)});
    base::RngStream random(seed_, base::Purpose::suggest, static_cast<std::uint32_t>(index));
    const std::vector<double> own = seen.point(parent(random).point);
    const std::vector<double> other = seen.point(parent(random).point);
    std::vector<double> child = own;
    if (random.uniform() < options_.crossover) cross(child, other, random);
    mutate(child, random);
    for (double& each : child)
        if (std::isnan(each)) each = random.uniform();
    const std::vector<std::size_t> positions = changeable(present(child, index));
    if (!positions.empty() && (is_same(present(child, index), own) || is_same(present(child, index), other))) {
        const std::size_t j = positions[random.below(positions.size())];
        child[j] = changed(axes_[j], child[j], random);
    }
    return space_.decode(child, index);
}

bool Nsga2Searcher::is_random(std::uint64_t index, const Observations& seen) const {
    return index + seen.earlier_points() < options_.population || population_.size() < 2;
}

study::SuggestionBasis Nsga2Searcher::basis(std::uint64_t index, const Observations& seen) const {
    follow(seen);
    study::SuggestionBasis basis;
    basis.results = population_.size();
    if (is_random(index, seen)) {
        basis.model = "random";
        basis.note = "the population is not complete";
        return basis;
    }
    base::RngStream random(seed_, base::Purpose::suggest, static_cast<std::uint32_t>(index));
    basis.model = "nsga2";
    basis.note = "from " + named(parent(random).trial);
    basis.note += " and " + named(parent(random).trial);
    return basis;
}

void Nsga2Searcher::follow(const Observations& seen) const {
    std::size_t line = reading_.next(seen);
    if (line == 0) {
        results_ = {};
        population_.clear();
    }
    for (; line < seen.size(); ++line)
        if (const auto result = results_.read(seen[line])) join(*result);
}

void Nsga2Searcher::join(const Result& result) const {
    if (std::isinf(result.whole.trouble())) return; // failed, or not finite
    population_.push_back(result);
    std::vector<models::ParetoPoint> points;
    for (const Result& each : population_) points.push_back({each.whole.values(), each.whole.trouble()});
    std::vector<Result> sorted;
    for (const std::size_t position : models::pareto_order(points)) sorted.push_back(population_[position]);
    if (sorted.size() > options_.population) sorted.pop_back();
    population_ = std::move(sorted);
}

const FirstResults::Result& Nsga2Searcher::parent(base::RngStream& random) const {
    const std::uint64_t one = random.below(population_.size());
    const std::uint64_t two = random.below(population_.size());
    return population_[std::min(one, two)];
}

void Nsga2Searcher::cross(std::vector<double>& child, const std::vector<double>& other, base::RngStream& random) const {
    for (std::size_t j = 0; j < child.size(); ++j) {
        if (std::isnan(child[j])) {
            child[j] = other[j];
            continue;
        }
        if (std::isnan(other[j]) || random.uniform() < 0.5) continue;
        child[j] = axes_[j].category ? other[j] : crossed(child[j], other[j], options_.crossover_index, random);
    }
}

std::vector<std::size_t> Nsga2Searcher::changeable(const std::vector<double>& child) const {
    std::vector<std::size_t> positions;
    for (std::size_t j = 0; j < child.size(); ++j)
        if (axes_[j].values != 1 && !std::isnan(child[j])) positions.push_back(j);
    return positions;
}

void Nsga2Searcher::mutate(std::vector<double>& child, base::RngStream& random) const {
    const std::vector<std::size_t> positions = changeable(child);
    const double rate = options_.mutation > 0.0 ? options_.mutation : 2.0 / static_cast<double>(positions.size());
    for (const std::size_t j : positions)
        if (random.uniform() < rate) child[j] = changed(axes_[j], child[j], random);
}

bool Nsga2Searcher::is_same(const std::vector<double>& child, const std::vector<double>& parent) const {
    for (std::size_t j = 0; j < child.size(); ++j) {
        if (std::isnan(child[j]) != std::isnan(parent[j])) return false;
        if (!std::isnan(child[j]) && snapped(axes_[j], child[j]) != snapped(axes_[j], parent[j])) return false;
    }
    return true;
}

std::vector<double> Nsga2Searcher::present(std::vector<double> child, std::uint64_t index) const {
    const std::vector<double> decoded = coordinates_of(space_, space_.decode(child, index));
    for (std::size_t j = 0; j < child.size(); ++j)
        if (std::isnan(decoded[j])) child[j] = decoded[j];
    return child;
}

double Nsga2Searcher::changed(const Axis& axis, double unit, base::RngStream& random) const {
    if (!axis.category) {
        const double after = mutated(unit, options_.mutation_index, random);
        if (snapped(axis, after) != snapped(axis, unit)) return after;
    }
    return moved(axis, unit, 1.0 / (options_.mutation_index + 1.0), random);
}

namespace {

using Kind = study::OptionInfo::Kind;

std::vector<study::AlgorithmOption> nsga2_options() {
    return {
        {.name = "population",
         .kind = Kind::integer,
         .standard = 20,
         .description = "How many results are kept, the best of all. As many of the first suggestions are random.",
         .low = 2.0,
         .high = 10000.0,
         .foreign_names = {{"Optuna", "population_size"}}},
        {.name = "crossover",
         .kind = Kind::number,
         .standard = 0.9,
         .description = "Probability that a suggestion has two parents.",
         .low = 0.0,
         .high = 1.0,
         .foreign_names = {{"Optuna", "crossover_prob"}}},
        {.name = "crossover_index",
         .kind = Kind::number,
         .standard = 5.0,
         .description = "The larger, the nearer numbers stay to those of a parent.",
         .low = 0.0,
         .high = 1000.0},
        {.name = "mutation",
         .kind = Kind::number,
         .standard = 0.0,
         .description = "Probability that a parameter changes; 0: so that two do on average.",
         .low = 0.0,
         .high = 1.0,
         .foreign_names = {{"Optuna", "mutation_prob"}}},
        {.name = "mutation_index",
         .kind = Kind::number,
         .standard = 5.0,
         .description = "The larger, the less a number changes.",
         .low = 0.0,
         .high = 1000.0},
    };
}

std::unique_ptr<Searcher> make_nsga2(const study::StudySpec& spec) {
    const space::Configuration& options = spec.searcher.options;
    const auto number = [&](std::string_view name) { return options.at(name).as_double(); };
    auto searcher = std::make_unique<Nsga2Searcher>(
        spec.space, spec.seed,
        Nsga2Searcher::Options{.population = static_cast<std::size_t>(options.at("population").as_int()),
                               .crossover = number("crossover"),
                               .crossover_index = number("crossover_index"),
                               .mutation = number("mutation"),
                               .mutation_index = number("mutation_index")});
    return without_duplicates(std::move(searcher), spec);
}

} // namespace

study::SearcherInfo describe_nsga2() {
    study::SearcherInfo info;
    info.name = "nsga2";
    info.description =
        "NSGA-II (Deb et al., IEEE TEVC 2002) for several objectives: children of results that few others beat; on any "
        "space.";
    info.options = nsga2_options();
    info.options.push_back(avoid_duplicates_option());
    info.foreign_names = {"nsgaii", "nsga-ii", "NSGAIISampler"};
    info.uses_earlier_results = true;
    info.several_objectives = true;
    info.make = make_nsga2;
    return info;
}

} // namespace ranktune::searchers
