// SPDX-License-Identifier: Apache-2.0
#pragma once
// Everything that a model of LibTorch needs to be a trainable, by short names. Example: jobs/torch-resnet. Needs
// LibTorch: pkg-config ranktune-torch.

#include <torch/torch.h>

#include "ranktune/libtorch/data_parallel.hpp"
#include "ranktune/libtorch/module_trainable.hpp"
#include "ranktune/ranktune.hpp"

namespace ranktune {

using libtorch::DataParallel;
using libtorch::ModuleTrainable;
using libtorch::Samples;
using libtorch::Training;
using libtorch::where_to_compute;

} // namespace ranktune
