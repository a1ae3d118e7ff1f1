// SPDX-License-Identifier: Apache-2.0
#pragma once
// Written by pareto_reference.py: values of Optuna 3.1.

namespace ranktune::models::testing {

struct Volume {
    int points;
    int objectives;
    double value;
};
inline constexpr Volume volumes[] = {
    {1, 2, 0.14440000000000008},   {4, 2, 0.5333694814124804},  {12, 2, 0.9121742478387207},
    {30, 2, 0.9700517241670404},   {1, 3, 0.08952800000000007}, {4, 3, 0.3933522410759018},
    {12, 3, 0.6738848721096041},   {30, 3, 0.7966418613482579}, {1, 4, 0.0017905600000000029},
    {4, 4, 0.18113638287164957},   {12, 4, 0.4541804723466639}, {30, 4, 0.590851548876592},
    {1, 5, 0.0015398816000000027}, {4, 5, 0.1423006872329056},  {12, 5, 0.38253168128726445},
    {30, 5, 0.5024491679420133},
};

} // namespace ranktune::models::testing
