// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <torch/types.h>

namespace ranktune::libtorch {

/// Scales `gradients`, of one type, by min(1, most / (norm + 1e-6)); norm: the 2-norm of all of them together. Waits
/// for no GPU, as torch::nn::utils::clip_grad_norm_ does. NaN spreads.
void clip_together(const std::vector<::torch::Tensor>& gradients, double most);

} // namespace ranktune::libtorch
