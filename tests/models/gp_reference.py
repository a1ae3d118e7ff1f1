#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes gp_reference.hpp: what scikit-learn, SciPy and mpmath compute for the data that are written with it.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install scikit-learn==1.9.1 mpmath==1.4.1
    /tmp/venv/bin/python gp_reference.py > gp_reference.hpp

The kernel has numbers, a category and a number that may be absent. scikit-learn gets them as columns whose squared distance is
the one of models::GpKernel: a category as one column for each value, an absent number as a point beside the line.
"""
import mpmath
import numpy as np
import scipy.optimize
import scipy.stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

WEIGHTS = np.array([2.0, 0.7, 1.3, 0.4])  # two numbers, a category of three values, a number that may be absent
SCALE, NOISE = 1.7, 0.03
COLUMNS = [[0], [1], [2, 3, 4], [5, 6]]  # of each coordinate
N, TESTS = 24, 5


def rows(count, shift):
    i = np.arange(count)
    category = (i * 7 + 1) % 3
    absent = np.where(i % 4 == 1, np.nan, np.mod(0.381966 * (i + 3) + shift, 1.0))
    return np.column_stack([np.mod(0.618034 * (i + 1) + shift, 1.0), np.mod(0.7548777 * (i + 1) + 2 * shift, 1.0),
                            (category + 0.5) / 3.0, absent])


def features(x):
    out = np.zeros((len(x), 7))
    out[:, :2] = x[:, :2]
    out[np.arange(len(x)), 2 + np.floor(3 * x[:, 2]).astype(int)] = np.sqrt(0.5)
    absent = np.isnan(x[:, 3])
    out[:, 5] = np.where(absent, 0.5, x[:, 3])
    out[:, 6] = np.where(absent, np.sqrt(0.75), 0.0)
    return out


def lengths(weights):
    out = np.empty(7)
    for weight, columns in zip(weights, COLUMNS):
        out[columns] = 1.0 / np.sqrt(weight)
    return out


def likelihood(weights, scale, noise, x, y):
    """Value, and gradient by the logarithms of weights, scale, noise."""
    kernel = ConstantKernel(scale) * Matern(lengths(weights), nu=2.5) + ConstantKernel(1.0, "fixed") + WhiteKernel(noise)
    model = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(features(x), y)
    value, gradient = model.log_marginal_likelihood(model.kernel_.theta, eval_gradient=True)
    by_length = gradient[1:8]
    return value, np.array([-0.5 * by_length[c].sum() for c in COLUMNS] + [gradient[0], gradient[8]])


def log_posterior(p, x, y):
    w, scale, noise = np.exp(p[:4]), np.exp(p[4]), np.exp(p[5])
    prior = np.sum(-0.1 / w - 0.1 * w) + np.log(scale) - scale + 0.1 * np.log(noise) - 100.0 * noise
    return likelihood(w, scale, noise, x, y)[0] + prior


def numbers(values):
    return "{" + ", ".join("NAN" if np.isnan(v) else repr(float(v)) for v in np.ravel(values)) + "}"


def put(name, values):
    print(f"inline const std::vector<double> {name} {numbers(values)};")


x, tests = rows(N, 0.0), rows(TESTS, 0.37)
y = np.sin(5 * x[:, 0]) + x[:, 1] ** 2 + 0.3 * np.floor(3 * x[:, 2]) + np.nan_to_num(x[:, 3], nan=0.2)
y = (y - y.mean()) / y.std()
exact = GaussianProcessRegressor(ConstantKernel(SCALE) * Matern(lengths(WEIGHTS), nu=2.5) + ConstantKernel(1.0), alpha=NOISE,
                                 optimizer=None).fit(features(x), y)
mean, deviation = exact.predict(features(tests), return_std=True)
value, gradient = likelihood(WEIGHTS, SCALE, NOISE, x, y)
bounds = [(np.log(1e-4), np.log(1e4))] * 4 + [(np.log(1e-3), np.log(1e3)), (np.log(1e-6), 0.0)]
best = max(-scipy.optimize.minimize(lambda p: -log_posterior(p, x, y), start, bounds=bounds, method="L-BFGS-B").fun
           for start in ([0, 0, 0, 0, 0, np.log(0.01)], [2, 2, 2, 2, 0, -5], [-2, -2, -2, -2, 1, -3]))

print("""// SPDX-License-Identifier: Apache-2.0
#pragma once
// Written by gp_reference.py.

#include <cmath>
#include <vector>

namespace ranktune::models::testing {

// clang-format off
// Points one after the other; coordinate 2 is a category, 3 may be absent.""")
put("gp_weights", WEIGHTS)
print(f"inline constexpr double gp_scale = {SCALE};\ninline constexpr double gp_noise = {NOISE};")
put("gp_points", x)
put("gp_targets", y)
put("gp_tests", tests)
put("gp_means", mean)
put("gp_variances", deviation**2)
print(f"inline constexpr double gp_log_likelihood = {float(value)!r};")
put("gp_gradient", gradient)
print(f"// The largest logarithm of likelihood and priors.\ninline constexpr double gp_log_posterior = {float(best)!r};")
mpmath.mp.dps = 60
z = [-1e100, -1e6, -1000.0, -100.0, -40.0, -25.001, -24.999, -10.0, -3.0, -1.0, -0.1, 0.0, 0.5, 3.0, 30.0]
values, slopes = [], []
for each in map(mpmath.mpf, z):
    with mpmath.workdps(60 if each > -1e5 else 700):
        h = mpmath.npdf(each) + each * mpmath.ncdf(each) if each > -1e5 else None
        if h is not None:
            values.append(float(mpmath.log(h)))
            slopes.append(float(mpmath.ncdf(each) / h))
        else:  # phi(z) / z^2 (1 - 3 / z^2); the slope is -z (1 + 2 / z^2)
            values.append(float(-each**2 / 2 - mpmath.log(2 * mpmath.pi) / 2 - 2 * mpmath.log(-each) + mpmath.log1p(-3 / each**2)))
            slopes.append(float(-each * (1 + 2 / each**2)))
put("improvement_at", z)
put("improvement_logs", values)
put("improvement_slopes", slopes)
z = [-1e100, -1e6, -1e3, -100.0, -40.0, -25.001, -24.999, -10.0, -3.0, -1.0, -0.1, 0.0, 0.5, 3.0, 5.5, 30.0]
below = [mpmath.erfc(-mpmath.mpf(each) / mpmath.sqrt(2)) / 2 if each > -1e50 else None for each in z]
put("normal_at", z)
put("normal_logs", [float(mpmath.log(p)) if p is not None else float(-mpmath.mpf(each)**2 / 2 - mpmath.log(2 * mpmath.pi) / 2 - mpmath.log(-each))
                    for each, p in zip(z, below)])
put("normal_slopes", [float(mpmath.exp(-mpmath.mpf(each)**2 / 2) / mpmath.sqrt(2 * mpmath.pi) / p) if p is not None else -each
                      for each, p in zip(z, below)])
skewed = np.array([-40.0, -9.0, -3.0, -2.5, -1.0, -0.7, -0.5, -0.2, 0.1, 0.2, 0.4, 0.9])
transformed, power = scipy.stats.yeojohnson(skewed)
put("skewed", skewed)
put("transformed", transformed)
print(f"inline constexpr double power = {float(power)!r};")
print("// clang-format on\n\n} // namespace ranktune::models::testing")
