// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensors of LibTorch as buffers and tensors of a state.

#include <cstdint>
#include <string>
#include <vector>

#include <torch/types.h>

#include "ranktune/base/buffer.hpp"
#include "ranktune/study/state.hpp"

namespace ranktune::libtorch {

/// A tensor with its name in the module.
struct Named {
    std::string name;
    ::torch::Tensor tensor;
};

/// Throws base::UsageError, which names the tensor, for a type that states do not know. Booleans are uint8.
[[nodiscard]] base::DType dtype_of(const ::torch::Tensor& tensor, const std::string& name);
[[nodiscard]] ::torch::ScalarType scalar_type(base::DType type);

/// The values in host memory, contiguous: the tensor itself if it is that, otherwise a copy.
[[nodiscard]] ::torch::Tensor on_host(const ::torch::Tensor& tensor);
/// The values on `device`: the tensor itself if it is there, otherwise a copy. One from the host to a GPU is made from
/// page-locked memory while the GPU works, on LibTorch's current stream.
[[nodiscard]] ::torch::Tensor moved_to(const ::torch::Device& device, const ::torch::Tensor& tensor);
/// All numbers of a contiguous tensor on the host.
[[nodiscard]] base::Buffer buffer_of(const ::torch::Tensor& tensor, const std::string& name,
                                     const base::Place& place = {});

/// Writes and reads one tensor; it may lie anywhere. Reading keeps the tensor's memory.
void put(study::StateSink& sink, const Named& named);
void get(study::StateSource& source, const Named& named);

} // namespace ranktune::libtorch
