// SPDX-License-Identifier: Apache-2.0
#pragma once
// The built-in trainables.

#include <cstdint>
#include <optional>
#include <string>

#include "ranktune/trainables/trainable.hpp"

namespace ranktune::trainables {

/// Synthetic learning curve: trains nothing, for tests, dry runs and overhead measurements.
[[nodiscard]] Registration curve_registration();
/// Multi-layer perceptron on an HDF5 dataset.
[[nodiscard]] Registration mlp_registration();
/// Predictions with checkpoints of another study.
[[nodiscard]] Registration predict_registration();
/// A model of LibTorch in a shared library of the user's. In a build without LibTorch it says how to get it.
[[nodiscard]] Registration torch_registration();
/// Trials that a loop of the user's asks for, outside of all ranks.
[[nodiscard]] Registration outside_registration();
/// Why no rank can run the trials of `outside`, and how the study in `directory` goes on.
[[nodiscard]] std::string driven_from_outside(const std::string& directory);
/// "LibTorch 1.13.0" as built; empty: this build has none. Loads nothing.
[[nodiscard]] std::string torch_built_with();
/// What is missing for the trainable `torch`, and how to get it; empty: nothing.
[[nodiscard]] std::string why_no_torch();

/// Bytes of the state that a trial with this configuration (including the options of [trainable]) saves; nothing when
/// unknown before it runs. Throws what reading its data throws.
[[nodiscard]] std::optional<std::uint64_t> state_bytes(const std::string& trainable,
                                                       const space::Configuration& configuration);
[[nodiscard]] std::uint64_t curve_state_bytes(const space::Configuration& configuration);
[[nodiscard]] std::uint64_t mlp_state_bytes(const space::Configuration& configuration);

} // namespace ranktune::trainables
