// SPDX-License-Identifier: Apache-2.0
#pragma once
// Studies whose trials a loop of the user's asks for and tells: no rank runs them.

#include "ranktune/study/spec.hpp"

namespace ranktune::study {

/// Of their trainable, which is registered like the built-in ones.
inline constexpr const char* outside_name = "outside";

[[nodiscard]] inline bool is_outside(const StudySpec& spec) { return spec.trainable.name == outside_name; }

} // namespace ranktune::study
