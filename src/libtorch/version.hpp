// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/version.h>

/// Whether this LibTorch is `major`.`minor` or newer: for what older ones do not have.
#define RANKTUNE_LIBTORCH_AT_LEAST(major, minor) \
    (TORCH_VERSION_MAJOR > (major) || (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))
