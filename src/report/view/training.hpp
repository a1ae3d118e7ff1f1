// SPDX-License-Identifier: Apache-2.0
#pragma once
// How much a study trained, and how much all trials to the end would have been.

#include <cstdint>

#include "tuner/tuner.hpp"

namespace ranktune::report {

struct Training {
    std::uint64_t iterations = 0; ///< that trials reached
    std::uint64_t again = 0;      ///< trained a second time, after losses
    std::uint64_t full = 0;       ///< of all trials, each trained to the ceiling
    double seconds = 0.0;         ///< training time of the trials
    double full_seconds = 0.0;    ///< estimate for `full`; 0: nothing was trained
    [[nodiscard]] double share() const {
        return full == 0 ? 0.0 : static_cast<double>(iterations) / static_cast<double>(full);
    }
};
[[nodiscard]] Training training_of(const tuner::Tuner& tuner);

} // namespace ranktune::report
