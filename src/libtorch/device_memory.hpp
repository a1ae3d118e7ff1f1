// SPDX-License-Identifier: Apache-2.0
#pragma once
// A full memory of the GPU, as LibTorch says it, in ranktune's words.

#include <c10/util/Exception.h>

#include "device/device.hpp"

namespace ranktune::libtorch {

/// Calls `call`; throws device::DeviceMemoryError when LibTorch finds no room on the GPU.
template <class Call>
auto telling_of_memory(Call&& call) {
    try {
        return call();
    } catch (const c10::OutOfMemoryError& error) {
        throw device::DeviceMemoryError(error.what_without_backtrace());
    }
}

} // namespace ranktune::libtorch
