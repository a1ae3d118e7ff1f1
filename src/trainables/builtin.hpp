// SPDX-License-Identifier: Apache-2.0
#pragma once
// The trainables that are always there.

#include "ranktune/trainables/trainable.hpp"

namespace ranktune::trainables {

/// Synthetic learning curve: trains nothing, for tests, dry runs and overhead measurements.
[[nodiscard]] Registration curve_registration();
/// Multi-layer perceptron on an HDF5 dataset.
[[nodiscard]] Registration mlp_registration();

} // namespace ranktune::trainables
