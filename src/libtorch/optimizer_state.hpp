// SPDX-License-Identifier: Apache-2.0
#pragma once
// What an optimizer of LibTorch keeps for each parameter, as tensors of a state.

#include <vector>

#include <torch/optim/optimizer.h>

#include "libtorch/tensors.hpp"

namespace ranktune::libtorch {

/// `optimizer.<moment>.<parameter>`, with LibTorch's names of the moments; `optimizer.steps` [parameters], where -1
/// says that the optimizer keeps nothing for the parameter; the blob `optimizer.type`. `parameters`: of the module, in
/// order. Throws base::UsageError for an optimizer of another kind than those in optimizer_state.cpp, and for one with
/// parameters that are not in the list.
void save_optimizer(study::StateSink& sink, const ::torch::optim::Optimizer& optimizer,
                    const std::vector<Named>& parameters);
/// Throws base::FormatError for the state of another kind of optimizer. A moment that the optimizer's options need and
/// the state lacks, because it was saved with others, begins at zero.
void load_optimizer(study::StateSource& source, ::torch::optim::Optimizer& optimizer,
                    const std::vector<Named>& parameters);

/// Throws what save_optimizer would throw.
void require_known(const ::torch::optim::Optimizer& optimizer, const std::vector<Named>& parameters);

} // namespace ranktune::libtorch
