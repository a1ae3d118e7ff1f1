#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes cmaes_reference.hpp: what the program `cmaes` (Debian: python3-cmaes 0.9.1, the CMA-ES of Optuna) makes of samples that
are given here. Usage: cmaes_reference.py > cmaes_reference.hpp"""
import numpy as np
from cmaes import CMA, CMAwM


def samples(generation, count, n):
    """Fixed numbers in [0, 1), no two alike."""
    i = np.arange(count * n).reshape(count, n)
    return np.mod(0.5545497 * (i + 1) * (generation + 1) + 0.308517 * generation, 1.0)


def value(x):
    return float(np.sum((np.arange(len(x)) + 1.0) * (x - 0.3) ** 2))


def numbers(values):
    return "{" + ", ".join(repr(float(v)) for v in np.ravel(values)) + "}"


def state(name, cma, stretch):
    print(f"inline const CmaEsState {name}{{{numbers(cma._mean)},\n    {float(cma._sigma)!r},\n    {numbers(cma._C)},\n    {numbers(stretch)}}};")


def plain(name, n, generations):
    cma = CMA(mean=np.full(n, 0.5), sigma=0.2, seed=1)
    for g in range(generations):
        cma.tell([(x, value(x)) for x in samples(g, cma.population_size, n)])
    cma._eigen_decomposition()
    state(name, cma, np.ones(n))


def margin(name, generations, width):
    """Samples in an interval of this width around the first mean. A continuous coordinate, two values, five values, a hundred values: the values are the middles of equal intervals."""
    counts = [0, 2, 5, 100]
    bounds = np.array([[0.0, 1.0] if c == 0 else [0.5 / c, 1.0 - 0.5 / c] for c in counts])
    steps = np.array([0.0 if c == 0 else 1.0 / c for c in counts])
    cma = CMAwM(mean=np.full(4, 0.53), sigma=0.2 * width, bounds=bounds, steps=steps, seed=1)
    for g in range(generations):
        cma.tell([(x, value(x)) for x in 0.53 + width * (samples(g, cma.population_size, 4) - 0.5)])
    cma._cma._eigen_decomposition()
    state(name, cma._cma, cma._A)


print("""// SPDX-License-Identifier: Apache-2.0
#pragma once
// Written by cmaes_reference.py: mean, step size, covariance by rows, and stretch of the margin after some generations.

#include <vector>

namespace ranktune::models::testing {

struct CmaEsState {
    std::vector<double> mean;
    double sigma;
    std::vector<double> covariance;
    std::vector<double> stretch;
};

// clang-format off""")
plain("three_once", 3, 1)
plain("three_often", 3, 12)
plain("eight_often", 8, 12)
margin("margin_wide", 12, 0.9)
margin("margin_narrow_once", 1, 0.02)
margin("margin_narrow", 12, 0.02)
print("// clang-format on\n\n} // namespace ranktune::models::testing")
