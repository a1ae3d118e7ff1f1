// SPDX-License-Identifier: Apache-2.0
#include "searchers/evolution.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "ranktune/study/spec.hpp"
#include "searchers/coordinates/tried.hpp"
#include "searchers/coordinates/variation.hpp"

namespace ranktune::searchers {

study::SearcherInfo describe_evolution();

namespace {

using Kind = study::OptionInfo::Kind;

} // namespace

std::optional<space::Configuration> EvolutionSearcher::suggest(std::uint64_t index, const Observations& seen) const {
    const auto number = static_cast<std::uint32_t>(index);
    base::RngStream random(seed_, base::Purpose::suggest, number);
    const FirstResults::Result* winner = parent_of(index, seen, random);
    if (winner == nullptr) return space_.sample(seed_, base::TrialId{number});

    std::vector<double> unit = seen.point(winner->point);
    std::vector<std::size_t> changeable;
    for (std::size_t j = 0; j < unit.size(); ++j)
        if (axes_[j].values != 1 && !std::isnan(unit[j])) changeable.push_back(j);
    for (double& each : unit)
        if (std::isnan(each)) each = random.uniform();
    if (!changeable.empty()) {
        const std::size_t j = changeable[random.below(changeable.size())];
        unit[j] = moved(axes_[j], unit[j], options_.step, random);
    }
    return space_.decode(unit, index);
}

study::SuggestionBasis EvolutionSearcher::basis(std::uint64_t index, const Observations& seen) const {
    base::RngStream random(seed_, base::Purpose::suggest, static_cast<std::uint32_t>(index));
    const FirstResults::Result* winner = parent_of(index, seen, random);
    study::SuggestionBasis basis;
    basis.model = winner == nullptr ? "random" : "evolution";
    basis.results = population_.size();
    basis.note = winner == nullptr ? "the population is not complete" : "a change of " + named(winner->trial);
    return basis;
}

const FirstResults::Result* EvolutionSearcher::parent_of(std::uint64_t index, const Observations& seen,
                                                         base::RngStream& random) const {
    follow(seen);
    return index + seen.earlier_points() < options_.population ? nullptr : parent(random);
}

void EvolutionSearcher::follow(const Observations& seen) const {
    std::size_t line = reading_.next(seen);
    if (line == 0) {
        results_ = {};
        population_.clear();
        count_ = 0;
    }
    for (; line < seen.size(); ++line) {
        const auto result = results_.read(seen[line]);
        if (!result) continue;
        if (population_.size() < options_.population) population_.resize(population_.size() + 1);
        population_[count_++ % options_.population] = *result;
    }
}

const FirstResults::Result* EvolutionSearcher::parent(base::RngStream& random) const {
    const FirstResults::Result* winner = nullptr;
    for (std::size_t i = 0; i < options_.sample && !population_.empty(); ++i) {
        const FirstResults::Result& each = population_[random.below(population_.size())];
        if (!std::isfinite(each.score)) continue;
        if (winner == nullptr || study::better({each.score, each.trial}, {winner->score, winner->trial}))
            winner = &each;
    }
    return winner;
}

namespace {

std::vector<study::AlgorithmOption> evolution_options() {
    return {
        {.name = "population",
         .kind = Kind::integer,
         .standard = 20,
         .description =
             "How many of the newest results can have children. As many of the first suggestions are random.",
         .low = 1.0,
         .high = 1e6,
         .foreign_names = {{"Optuna", "population_size"}}},
        {.name = "sample",
         .kind = Kind::integer,
         .standard = 10,
         .description = "How many of these are drawn for a suggestion, of which the best has the child.",
         .low = 1.0,
         .high = 1e6,
         .foreign_names = {{"DeepHyper", "sample_size"}}},
        {.name = "step",
         .kind = Kind::number,
         .standard = 0.1,
         .description = "Standard deviation of the change of a number; its range is 1.",
         .low = 1e-6,
         .high = 1.0},
    };
}

std::unique_ptr<Searcher> make_evolution(const study::StudySpec& spec) {
    const space::Configuration& options = spec.searcher.options;
    const auto whole = [&](std::string_view name) { return static_cast<std::size_t>(options.at(name).as_int()); };
    auto searcher = std::make_unique<EvolutionSearcher>(
        spec.space, spec.seed,
        EvolutionSearcher::Options{
            .population = whole("population"), .sample = whole("sample"), .step = options.at("step").as_double()});
    return without_duplicates(std::move(searcher), spec);
}

} // namespace

study::SearcherInfo describe_evolution() {
    study::SearcherInfo info;
    info.name = "evolution";
    info.description =
        "regularised evolution (Real et al., AAAI 2019): the best of some of the newest results, with one parameter "
        "changed; on any space.";
    info.options = evolution_options();
    info.options.push_back(avoid_duplicates_option());
    info.foreign_names = {"regularized_evolution", "REA"};
    info.uses_earlier_results = true;
    info.make = make_evolution;
    return info;
}

} // namespace ranktune::searchers
