// SPDX-License-Identifier: Apache-2.0
#pragma once
// LossReader: the loss of a step on the host, without waiting for the rest of the step.

#include <functional>
#include <memory>

#include <torch/types.h>

#include "ddp/collective/core_wait.hpp"
#include "device/device.hpp"
#include "ranktune/libtorch/data_parallel.hpp"

namespace ranktune::libtorch {

/// `Tensor::item` waits for all that was issued before it: after the backward pass that is the whole step. This reads
/// the loss when the forward pass has computed it, so that a GPU still has work while the host issues the next step.
class LossReader {
  public:
    explicit LossReader(const Where& where);
    /// `loss` is a scalar that was computed by work of the current stream: on a GPU, the compute stream.
    void read(const ::torch::Tensor& loss);
    /// Its value. Calls `look` while a GPU computes it; `look` may throw. Throws device::DeviceError.
    [[nodiscard]] double wait(const std::function<void()>& look);

  private:
    device::Accelerator* on_ = nullptr; ///< null: LibTorch computes on the host
    ::torch::Tensor loss_;              ///< float64
    std::shared_ptr<void> pinned_;      ///< one double
    std::unique_ptr<device::Event> copied_;
    ddp::CoreWait core_;
};

} // namespace ranktune::libtorch
