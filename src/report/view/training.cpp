// SPDX-License-Identifier: Apache-2.0
#include "report/view/training.hpp"

namespace ranktune::report {

Training training_of(const tuner::Tuner& tuner) {
    const auto& state = tuner.state();
    Training training;
    training.full = static_cast<std::uint64_t>(tuner.spec().num_trials) * tuner.spec().max_iterations;
    for (const auto& trial : state.trials) {
        training.seconds += trial.seconds;
        training.iterations += trial.iteration;
    }
    if (state.iterations > training.iterations) training.again = state.iterations - training.iterations;
    if (training.iterations > 0)
        training.full_seconds =
            training.seconds / static_cast<double>(training.iterations) * static_cast<double>(training.full);
    return training;
}

} // namespace ranktune::report
