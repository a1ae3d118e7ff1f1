// SPDX-License-Identifier: Apache-2.0
#pragma once
// A checkpoint as schedulers know it that have trials take over states.

#include <cstdint>
#include <string>

#include "ranktune/base/ids.hpp"

namespace ranktune::schedulers {

struct SavedState {
    base::Iteration iteration = 0;
    std::uint32_t generation = 0; ///< of the trial: how often it had taken over a state
    std::string path;
    static void fields(auto&& each, auto& r) { each(r.iteration, r.generation, r.path); }
};

} // namespace ranktune::schedulers
