// SPDX-License-Identifier: Apache-2.0
#pragma once
// Buffer: memory for parameters, gradients and activations.

#include <vector>

#include "ranktune/base/huge_pages.hpp"

namespace ranktune::ddp {

/// Large ones lie in huge pages: matrix products walk over such arrays with strides of many pages, and copies between
/// processes pin them page by page.
using Buffer = std::vector<float, base::LargeAllocator<float>>;

} // namespace ranktune::ddp
