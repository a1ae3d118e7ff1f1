// SPDX-License-Identifier: Apache-2.0
#include "searchers/cmaes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <variant>

#include "ranktune/base/error.hpp"
#include "ranktune/base/rng.hpp"
#include "ranktune/study/schema.hpp"
#include "ranktune/study/spec.hpp"
#include "searchers/coordinates/axes.hpp"
#include "searchers/coordinates/tried.hpp"

namespace ranktune::searchers {

study::SearcherInfo describe_cmaes();

namespace {

using Kind = study::OptionInfo::Kind;

/// With more values the margin would be smaller than the distance of two values.
constexpr std::uint64_t most_values_with_margin = 1000;

constexpr double worst_score = -std::numeric_limits<double>::infinity();

/// The borders between the intervals of neighbouring values: intervals begin where the one before ends, and `middle` is
/// in their middle.
std::vector<double> borders(const Axis& axis) {
    std::vector<double> all;
    if (axis.values < 2 || axis.values > most_values_with_margin) return all;
    double begin = 0.0;
    for (std::uint64_t i = 0; i + 1 < axis.values; ++i) {
        begin = 2.0 * middle(axis, i) - begin;
        all.push_back(begin);
    }
    return all;
}

} // namespace

CmaEsSearcher::CmaEsSearcher(const space::SearchSpace& space, std::uint64_t seed, const Options& options)
    : space_(space), seed_(seed), options_(options) {
    const std::vector<Axis> axes = axes_of(space);
    for (std::size_t j = 0; j < axes.size(); ++j) {
        if (axes[j].values == 1) continue;
        active_.push_back(j);
        limits_.push_back(borders(axes[j]));
    }
    if (options_.population == 0)
        options_.population = models::CmaEsConstants::usual_lambda(std::max<std::size_t>(1, active_.size()));
}

std::optional<space::Configuration> CmaEsSearcher::suggest(std::uint64_t index, const Observations& seen) const {
    if (active_.empty()) return space_.decode(std::vector<double>(space_.dimensions(), 0.5), index);
    follow(seen);
    return configuration_of(sample(index), index);
}

study::SuggestionBasis CmaEsSearcher::basis(std::uint64_t, const Observations& seen) const {
    study::SuggestionBasis basis;
    basis.model = "cmaes";
    if (active_.empty()) {
        basis.note = "every parameter has one value";
        return basis;
    }
    follow(seen);
    basis.note = "generation " + std::to_string(run_.distribution->generation() + 1) + " of start " +
                 std::to_string(run_.starts) + ", " + std::to_string(run_.generation.size()) + " of " +
                 std::to_string(run_.distribution->constants().lambda) + " results in";
    return basis;
}

space::Configuration CmaEsSearcher::configuration_of(const std::vector<double>& raw, std::uint64_t index) const {
    std::vector<double> unit(space_.dimensions(), 0.5);
    const std::vector<double> placed = run_.distribution->place(raw);
    for (std::size_t j = 0; j < active_.size(); ++j) unit[active_[j]] = placed[j];
    return space_.decode(unit, index);
}

std::vector<double> CmaEsSearcher::sample(std::uint64_t index) const {
    base::RngStream random(seed_, base::Purpose::suggest, static_cast<std::uint32_t>(index));
    return run_.distribution->sample(random);
}

void CmaEsSearcher::follow(const Observations& seen) const {
    std::size_t line = reading_.next(seen);
    if (line == 0) {
        run_ = {};
        start(earlier_mean(seen));
    }
    for (; line < seen.size(); ++line)
        if (!is_earlier(seen[line].trial)) read(seen[line], seen);
}

/// The best of the earlier results that were trained furthest; the centre if there is none.
std::vector<double> CmaEsSearcher::earlier_mean(const Observations& seen) const {
    std::vector<double> mean(active_.size(), 0.5);
    std::pair<base::Iteration, double> best{0, worst_score};
    for (std::size_t i = 0; i < seen.size() && is_earlier(seen[i].trial); ++i) {
        const std::pair<base::Iteration, double> result{seen[i].iteration, seen[i].score.rank()};
        if (seen[i].kind != Observation::Kind::reported || !std::isfinite(result.second) || result <= best) continue;
        best = result;
        const std::vector<double> unit = seen.point(seen[i].point);
        for (std::size_t j = 0; j < active_.size(); ++j) mean[j] = unit[active_[j]];
    }
    return mean;
}

/// The first mean is given, those of restarts are random.
void CmaEsSearcher::start(std::vector<double> mean) const {
    base::RngStream random(seed_, base::Purpose::suggest, static_cast<std::uint32_t>(run_.starts), 1);
    if (run_.starts > 0)
        for (double& each : mean) each = random.uniform();
    const std::size_t doublings = std::min<std::size_t>(run_.starts, 10);
    run_.distribution.emplace(std::move(mean), options_.sigma, limits_, options_.population << doublings);
    run_.generation.clear();
    ++run_.starts;
}

void CmaEsSearcher::read(const Observation& line, const Observations& seen) const {
    if (line.kind == Observation::Kind::asked) {
        const std::size_t trial = line.trial.value();
        // A trial that takes over another configuration has none of this searcher any more.
        const bool again = trial < run_.asked.size();
        if (!again) run_.asked.resize(trial + 1);
        const std::uint64_t taken = again || trial >= taken_.size() ? 0 : taken_[trial];
        run_.asked[trial] = {};
        if (taken > 0) {
            std::vector<double> raw = sample(taken - 1);
            // To avoid a duplicate, the trial may have taken another configuration.
            if (!options_.avoid_duplicates ||
                coordinates_of(space_, configuration_of(raw, taken - 1)) == seen.point(line.point))
                run_.asked[trial] = {std::move(raw), run_.starts, run_.distribution->generation()};
        }
    }
    if (const auto result = run_.results.read(line)) tell(*result, seen);
}

void CmaEsSearcher::tell(const FirstResults::Result& result, const Observations& seen) const {
    Run::Asked asked = std::exchange(run_.asked[result.trial.value()], {});
    models::CmaEsResult told{std::move(asked.raw), result.score, asked.generation != run_.distribution->generation()};
    if (told.raw.empty()) {
        told.injected = true;
        const std::vector<double> unit = seen.point(result.point);
        for (const std::size_t coordinate : active_) told.raw.push_back(unit[coordinate]);
    } else if (asked.start != run_.starts) {
        return;
    }
    run_.generation.push_back(std::move(told));
    if (run_.generation.size() < run_.distribution->constants().lambda) return;
    run_.distribution->tell(std::exchange(run_.generation, {}));
    if (options_.restarts && run_.distribution->exhausted() != nullptr) start(std::vector<double>(active_.size()));
}

void CmaEsSearcher::apply(const study::Record& record) {
    const auto* created = std::get_if<study::TrialCreated>(&record);
    if (created == nullptr) return;
    using From = study::Origin::Kind;
    const study::Origin& origin = created->origin;
    const bool ours = origin.kind == From::searcher || origin.kind == From::stopgap;
    taken_.resize(std::max<std::size_t>(taken_.size(), created->trial.value() + 1), 0);
    taken_[created->trial.value()] = ours ? origin.index + 1 : 0;
}

void CmaEsSearcher::snapshot(study::Encoder& out) const {
    out.u8(1);
    study::put(out, taken_);
}

void CmaEsSearcher::restore(study::Decoder& in) {
    if (in.u8() != 1) throw base::FormatError("a snapshot of \"cmaes\" has an unknown version");
    study::get(in, taken_);
    reading_ = {};
}

namespace {

std::vector<study::AlgorithmOption> cmaes_options() {
    return {
        {.name = "population",
         .kind = Kind::integer,
         .standard = 0,
         .description =
             "Results of a generation, after which the distribution moves. 0: 4 + floor(3 ln d), where d counts the "
             "parameters with more than one value.",
         .low = 0.0,
         .high = 10000.0,
         .foreign_names = {{"Optuna", "popsize"}}},
        {.name = "sigma",
         .kind = Kind::number,
         .standard = 1.0 / 6.0,
         .description = "Standard deviation of the first samples; every parameter has a range of 1.",
         .low = 1e-6,
         .high = 1.0,
         .foreign_names = {{"Optuna", "sigma0"}}},
        {.name = "restarts",
         .kind = Kind::boolean,
         .standard = true,
         .description =
             "When the distribution has converged, start again at a random place with twice the population."},
        avoid_duplicates_option(),
    };
}

void check_cmaes(const study::AlgorithmCheck& check) {
    if (!check.is_right("population")) return;
    const std::int64_t population = check.options.at("population").as_int();
    if (population == 0 || population >= 4) return;
    check.complain("population",
                   std::to_string(population) + " results are too few for a generation; use 0, or at least 4");
}

std::unique_ptr<Searcher> make_cmaes(const study::StudySpec& spec) {
    const space::Configuration& options = spec.searcher.options;
    auto searcher = std::make_unique<CmaEsSearcher>(
        spec.space, spec.seed,
        CmaEsSearcher::Options{.population = static_cast<std::size_t>(options.at("population").as_int()),
                               .sigma = options.at("sigma").as_double(),
                               .restarts = options.at("restarts").as_bool(),
                               .avoid_duplicates = options.at("avoid_duplicates").as_bool()});
    return without_duplicates(std::move(searcher), spec);
}

} // namespace

study::SearcherInfo describe_cmaes() {
    study::SearcherInfo info;
    info.name = "cmaes";
    info.description =
        "CMA-ES: samples of a normal distribution that follows the best of them; for numbers alone, without "
        "conditions.";
    info.options = cmaes_options();
    info.foreign_names = {"cma_es", "CmaEsSampler"};
    info.check = check_cmaes;
    info.uses_earlier_results = true;
    info.make = make_cmaes;
    info.only_numbers = true;
    return info;
}

} // namespace ranktune::searchers
