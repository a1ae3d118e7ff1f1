#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Densities of Optuna's Parzen estimator, for tests/models/parzen_test.cpp. Needs Optuna 3.1:

    /usr/bin/python3 tests/models/parzen_reference.py > tests/models/parzen_reference.hpp

Where both agree: numbers without a prior (in 3.1 the prior counts among the neighbours, in later versions it does not), also
two together; categories with a prior. Means, widths and weights of the kernels of x are Optuna's, their density is that of
a truncated normal distribution: Optuna 3.1 leaves out the division by the width. Integers only up to 16 points: beyond,
Optuna's sort leaves open which of two equal points comes first. An integer k of 1..n is (k - 0.5) / n here.
"""
import math

import numpy as np
import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers._tpe.parzen_estimator import _ParzenEstimator, _ParzenEstimatorParameters
from optuna.samplers._tpe.sampler import default_weights

INTEGERS, LEVELS = 10, 4


def estimator(points, space, prior):
    rules = _ParzenEstimatorParameters(prior, 1.0, True, False, default_weights, False)
    return _ParzenEstimator(points, space, rules)


def below(z):
    return 0.5 * math.erfc(-z / math.sqrt(2))


def kernels_of_x(mixture, at):
    """The value of each kernel of x."""
    for mean, width in zip(mixture._mus["x"], mixture._sigmas["x"]):
        inside = below((1 - mean) / width) - below((0 - mean) / width)
        yield math.exp(-0.5 * ((at - mean) / width) ** 2) / (math.sqrt(2 * math.pi) * width * inside)


def kernels_of_k(mixture, at):
    for mean, width in zip(mixture._mus["k"], mixture._sigmas["k"]):
        inside = below((INTEGERS + 0.5 - mean) / width) - below((0.5 - mean) / width)
        yield (below((at + 0.5 - mean) / width) - below((at - 0.5 - mean) / width)) / inside


def mixed(mixture, *kernels):
    return math.log(sum(w * math.prod(each) for w, *each in zip(mixture._weights, *kernels)))


def row(values):
    return "{" + ", ".join(format(float(v), ".17g") for v in values) + "}"


def main():
    random = np.random.RandomState(7)
    print("// SPDX-License-Identifier: Apache-2.0\n#pragma once")
    print(f"// Written by parzen_reference.py with Optuna {optuna.__version__}.\n\n#include <vector>\n")
    print("namespace ranktune::models::testing {\n")
    print("/// x: continuous, k: integers 1..10, c: categories 0..3; `asked` likewise.")
    print("struct Reference {\n    std::vector<double> x, k, c, asked_x, asked_k, asked_c, of_x, of_k, of_both, of_c;\n};\n")
    print("inline const std::vector<Reference> references = {")
    for n in (1, 2, 3, 9, 25, 26, 40, 130):
        x, k, c = random.rand(n) ** 2, random.randint(1, INTEGERS + 1, n), random.randint(0, LEVELS - 1, n)
        ax, ak, ac = random.rand(4), random.randint(1, INTEGERS + 1, 4), np.arange(LEVELS)
        float_, int_, cat = FloatDistribution(0, 1), IntDistribution(1, INTEGERS), CategoricalDistribution(list("abcd"))
        of_x = estimator({"x": x}, {"x": float_}, False)
        of_c = estimator({"c": c}, {"c": cat}, True).log_pdf({"c": ac})
        both = estimator({"x": x, "k": k}, {"x": float_, "k": int_}, False)
        of_x, of_k, of_both = [mixed(of_x, kernels_of_x(of_x, at)) for at in ax], [], []
        if n <= 16:
            of_k = estimator({"k": k}, {"k": int_}, False).log_pdf({"k": ak})
            of_both = [mixed(both, kernels_of_x(both, at), kernels_of_k(both, q)) for at, q in zip(ax, ak)]
        print("    {" + ",\n     ".join(map(row, (x, k, c, ax, ak, ac, of_x, of_k, of_both, of_c))) + "},")
    print("};\n\n} // namespace ranktune::models::testing")


main()
