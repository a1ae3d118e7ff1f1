// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/optim/optimizer.h>

namespace ranktune::libtorch {

/// The step of SGD, Adam or AdamW in one kernel for all parameters, as PyTorch's `fused=True`; LibTorch's own step has
/// several for each. The same rule and the same state; the last digits differ. Returns false, and has done nothing, for
/// another optimizer, a LibTorch before 2.4, and parameters or gradients that are not dense, float32 and on one device.
[[nodiscard]] bool fused_step(::torch::optim::Optimizer& optimizer);

} // namespace ranktune::libtorch
