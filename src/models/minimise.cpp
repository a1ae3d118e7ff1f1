// SPDX-License-Identifier: Apache-2.0
#include "models/minimise.hpp"

#include <nlopt.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

namespace ranktune::models {
namespace {

struct Progress {
    const Differentiable* f;
    std::vector<double> gradient;
    Minimum best;
};

double evaluate(unsigned size, const double* at, double* gradient, void* data) {
    auto& progress = *static_cast<Progress*>(data);
    const std::span<const double> point(at, size);
    const double value = (*progress.f)(point, progress.gradient);
    const bool usable =
        std::isfinite(value) && std::ranges::all_of(progress.gradient, [](double x) { return std::isfinite(x); });
    if (gradient != nullptr)
        for (unsigned i = 0; i < size; ++i) gradient[i] = usable ? progress.gradient[i] : 0.0;
    if (!usable) return std::numeric_limits<double>::max();
    if (value < progress.best.value) progress.best = {{point.begin(), point.end()}, value};
    return value;
}

} // namespace

Minimum minimise(const Differentiable& f, std::vector<double> start, std::span<const double> low,
                 std::span<const double> high, int evaluations, double relative) {
    const auto size = static_cast<unsigned>(start.size());
    Progress progress{&f, std::vector<double>(size), {start, std::numeric_limits<double>::infinity()}};
    if (size == 0) return {start, f(start, {})};
    const std::unique_ptr<nlopt_opt_s, decltype(&nlopt_destroy)> search(nlopt_create(NLOPT_LD_LBFGS, size),
                                                                        nlopt_destroy);
    nlopt_set_lower_bounds(search.get(), low.data());
    nlopt_set_upper_bounds(search.get(), high.data());
    nlopt_set_min_objective(search.get(), evaluate, &progress);
    nlopt_set_maxeval(search.get(), evaluations);
    nlopt_set_ftol_rel(search.get(), relative);
    nlopt_set_xtol_rel(search.get(), 1e-9);
    double value = 0.0;
    // Rounding near the minimum is reported as a failure; the best point seen is what counts.
    (void)nlopt_optimize(search.get(), start.data(), &value);
    return progress.best;
}

} // namespace ranktune::models
