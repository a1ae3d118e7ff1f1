// SPDX-License-Identifier: Apache-2.0
#pragma once
// Errors of the CUDA runtime as exceptions.

#include <cuda_runtime_api.h>

namespace ranktune::device::cuda {

/// Throws DeviceError unless `code` is success. `call`: the function, for the message.
void check(cudaError_t code, const char* call);

/// Whether work is complete, of what a query says; throws DeviceError for errors.
[[nodiscard]] bool is_complete(cudaError_t code, const char* call);

/// Whether the process cannot use the device any more after this error.
[[nodiscard]] bool is_sticky(cudaError_t code);

} // namespace ranktune::device::cuda
