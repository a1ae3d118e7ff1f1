// SPDX-License-Identifier: Apache-2.0
#pragma once
// Devices that have failed.

#include <atomic>
#include <string>

namespace stand_in {

/// Prints the reason; from now on every call for this device fails ("sticky").
void fail_device(int device, const std::string& why);
[[nodiscard]] bool has_failed(int device);

} // namespace stand_in
