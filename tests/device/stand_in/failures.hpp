// SPDX-License-Identifier: Apache-2.0
#pragma once
// Devices that have failed.

#include <cuda_runtime_api.h>

#include <string>

namespace stand_in {

/// Prints the reason; from now on every call for this device fails ("sticky").
void fail_device(int device, const std::string& why);
[[nodiscard]] bool has_failed(int device);

/// Returns `code`, which cudaGetLastError and so the next launch return, too.
cudaError_t answer(cudaError_t code);

} // namespace stand_in
