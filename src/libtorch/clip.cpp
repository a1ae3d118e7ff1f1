// SPDX-License-Identifier: Apache-2.0
#include "libtorch/clip.hpp"

#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <torch/torch.h>

#include "libtorch/version.hpp"

namespace ranktune::libtorch {

void clip_together(const std::vector<::torch::Tensor>& gradients, double most) {
    const ::torch::NoGradGuard no_gradients;
    const ::torch::Tensor norm = ::torch::stack(at::_foreach_norm(gradients, 2)).norm();
    const ::torch::Tensor factor = (most / (norm + 1e-6)).clamp_max(1.0);
#if RANKTUNE_LIBTORCH_AT_LEAST(2, 2)
    at::_foreach_mul_(gradients, factor);
#else
    for (const ::torch::Tensor& gradient : gradients) gradient.mul_(factor);
#endif
}

} // namespace ranktune::libtorch
