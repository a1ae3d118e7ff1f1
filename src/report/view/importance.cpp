// SPDX-License-Identifier: Apache-2.0
#include "report/view/importance.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "models/ped_anova.hpp"

namespace ranktune::report {
namespace {

constexpr double best_share = 0.1;
constexpr std::uint64_t most_cells = 50; // as in Optuna

/// How the values of a domain fall into cells.
struct Cells {
    std::size_t count = 1;
    models::Scale scale = models::Scale::numbers;
    const std::vector<space::Value>* each = nullptr; ///< a cell for each of these; null: by position
    bool finite = false;                             ///< by position: a cell for each value
};

Cells cells_of(const space::Domain& domain) {
    const auto* choice = std::get_if<space::Choice>(&domain);
    const auto* grid = std::get_if<space::Grid>(&domain);
    if (grid != nullptr) return {grid->values.size(), models::Scale::categories, &grid->values};
    const auto cardinality = space::cardinality(domain);
    const std::uint64_t values = cardinality.value_or(most_cells);
    if (choice != nullptr && (!choice->ordered || values <= most_cells))
        return {choice->values.size(), choice->ordered ? models::Scale::numbers : models::Scale::categories,
                &choice->values};
    const bool finite = cardinality && values <= most_cells;
    return {static_cast<std::size_t>(std::min(values, most_cells)), models::Scale::numbers, nullptr, finite};
}

/// The cell of a value; nothing for a value outside the domain (explored by a population).
std::optional<std::size_t> cell_of_value(const space::Domain& domain, const Cells& cells, const space::Value& value) {
    if (cells.each != nullptr) {
        const auto found = std::ranges::find(*cells.each, value);
        if (found == cells.each->end()) return std::nullopt;
        return static_cast<std::size_t>(found - cells.each->begin());
    }
    if (!space::contains(domain, value)) return std::nullopt;
    const double unit = space::encode(domain, value);
    const auto count = static_cast<double>(cells.count);
    // A small finite domain has a cell for each value; otherwise the nearest of equally spaced points, ties downwards.
    const double at = cells.finite ? std::floor(unit * count) : std::ceil(unit * (count - 1.0) - 0.5);
    return static_cast<std::size_t>(std::clamp(at, 0.0, count - 1.0));
}

} // namespace

std::vector<Importance> importance_of(const StudyView& view) {
    std::vector<const TrialView*> trials;
    std::vector<double> losses;
    for (const TrialView& trial : view.trials) {
        if (!std::isfinite(trial.best)) continue;
        trials.push_back(&trial);
        losses.push_back(-study::score(trial.best, view.mode));
    }
    if (trials.size() < least_trials_for_importance || view.parameters.empty()) return {};
    const std::vector<bool> top = models::top_share(losses, best_share);
    std::vector<Importance> all;
    double sum = 0.0;
    for (const space::Parameter& parameter : view.parameters) {
        const Cells cells = cells_of(parameter.domain);
        std::vector<std::uint32_t> of_top(cells.count, 0);
        std::vector<std::uint32_t> of_all(cells.count, 0);
        for (std::size_t i = 0; i < trials.size(); ++i) {
            const auto* value = trials[i]->configuration.find(parameter.name);
            const auto cell = value == nullptr ? std::nullopt : cell_of_value(parameter.domain, cells, *value);
            if (!cell) continue;
            ++of_all[*cell];
            if (top[i]) ++of_top[*cell];
        }
        all.push_back({parameter.name, std::nullopt});
        if (std::accumulate(of_top.begin(), of_top.end(), std::size_t{0}) < least_best_trials) continue;
        all.back().share = models::pearson_divergence(of_top, of_all, cells.scale);
        sum += *all.back().share;
    }
    for (Importance& each : all)
        if (each.share && sum > 0.0) *each.share /= sum;
    std::ranges::stable_sort(all, std::ranges::greater{}, &Importance::share);
    return all;
}

} // namespace ranktune::report
