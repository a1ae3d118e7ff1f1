// SPDX-License-Identifier: Apache-2.0
#pragma once
// The option `precision` of a LibTorch model: what its products are computed in.

#include <cstdint>

#include <torch/types.h>

#include "ranktune/trainables/context.hpp"

namespace ranktune::libtorch {

enum class Precision : std::uint8_t {
    of_libtorch, ///< the option is absent: as LibTorch has it
    fp32,
    tf32, ///< float32 of which a GPU uses 10 bits of the fraction; on cores as fp32
    bf16, ///< what loses little by it is computed in bfloat16 (autocast); parameters and optimizer stay as they are
};

/// The precision in the trial's configuration. Throws base::UsageError, which names the accepted values.
[[nodiscard]] Precision precision_of(const trainables::TrialContext& context);

/// How products of float32 are computed on GPUs, for this process and from now on.
void set_float32_products(Precision precision);

/// While it lives, LibTorch's functions choose between bfloat16 and float32 on the calling thread, as within
/// torch.autocast of Python, if `precision` is bf16. For a forward pass, not for back-propagation.
class Autocast {
  public:
    Autocast(Precision precision, ::torch::DeviceType where);
    ~Autocast();
    Autocast(const Autocast&) = delete;
    Autocast& operator=(const Autocast&) = delete;

  private:
    bool on_;
    ::torch::DeviceType where_;
    bool before_ = false;
    ::torch::Dtype type_before_ = ::torch::kFloat32;
};

} // namespace ranktune::libtorch
