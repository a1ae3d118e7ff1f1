// SPDX-License-Identifier: Apache-2.0
#include "tuner/admission/admission.hpp"

#include <algorithm>

namespace ranktune::tuner {

std::size_t groups_at_once(const study::StudySpec& spec, std::size_t fit) {
    if (spec.max_concurrent == 0) return fit;
    return spec.deterministic ? spec.max_concurrent : std::min<std::size_t>(fit, spec.max_concurrent);
}

} // namespace ranktune::tuner
