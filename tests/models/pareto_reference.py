#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes pareto_reference.hpp: hypervolumes that Optuna computes (Debian's python3-optuna, version 3.1).

    python3 pareto_reference.py > pareto_reference.hpp

Optuna minimises, so that its points are the negated ones of the test.
"""
import numpy as np
from optuna._hypervolume import WFG


def points(count, objectives):
    """On and behind a front, with repeated values and points outside the box."""
    i = np.arange(count)[:, None]
    k = np.arange(objectives)[None, :]
    x = np.mod(0.618034 * (i + 1) * (k + 1) + 0.3819 * k * k, 1.0)
    x[:: 5] = np.round(x[:: 5], 1)
    return x * (1.0 + 0.2 * (i % 3 == 0))


print("// SPDX-License-Identifier: Apache-2.0")
print("#pragma once")
print("// Written by pareto_reference.py: values of Optuna 3.1.\n")
print("namespace ranktune::models::testing {\n")
print("struct Volume {\n    int points;\n    int objectives;\n    double value;\n};")
print("inline constexpr Volume volumes[] = {")
for objectives in (2, 3, 4, 5):
    for count in (1, 4, 12, 30):
        reference = np.full(objectives, 1.1)
        inside = points(count, objectives)
        inside = inside[(inside < reference).all(axis=1)]
        value = 0.0 if len(inside) == 0 else WFG().compute(inside, reference)
        print(f"    {{{count}, {objectives}, {value!r}}},")
print("};\n")
print("} // namespace ranktune::models::testing")
