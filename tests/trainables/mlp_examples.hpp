// SPDX-License-Identifier: Apache-2.0
#pragma once
// The trainable mlp and the datasets of the examples.

#include <string>

#include "trainables/builtin.hpp"

namespace ranktune::testing {

inline const std::string digits = RANKTUNE_JOBS "/digits/digits.h5";
inline const std::string diabetes = RANKTUNE_JOBS "/diabetes/diabetes.h5";

inline const trainables::Registration& mlp() { return trainables::find_trainable("mlp"); }

} // namespace ranktune::testing
