// SPDX-License-Identifier: Apache-2.0
#pragma once
// Launches of the kernels: the part of the module that nvcc compiles. Each issues work on `stream` and returns what
// CUDA says about the launch.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "device/compute.hpp"
#include "device/gradient_kernels.hpp"
#include "ranktune/base/dtype.hpp"

namespace ranktune::device::cuda {

cudaError_t launch_widen(float* to, const void* from, std::size_t count, bool brain, cudaStream_t stream);
cudaError_t launch_narrow(void* to, const float* from, std::size_t count, bool brain, cudaStream_t stream);
cudaError_t launch_add(float* to, const float* from, std::size_t count, cudaStream_t stream);
/// See Stream::clip.
cudaError_t launch_clip(float* values, std::size_t count, double most, double* numbers, cudaStream_t stream);
/// See GradientKernels; `brain`: bfloat16, otherwise float16.
cudaError_t launch_add_parts(void* to, const void* parts, std::size_t count, std::size_t ranks, float divisor,
                             bool brain, cudaStream_t stream);
cudaError_t launch_widen_times(float* to, const void* from, std::size_t count, float factor, bool brain,
                               cudaStream_t stream);
cudaError_t launch_choose(float* error, const float* gradient, const ChoiceSlot* slots, std::size_t slot_count,
                          ChosenNumber* chosen, cudaStream_t stream);
cudaError_t launch_scatter(float* to, const ChosenNumber* from, std::size_t count, cudaStream_t stream);
/// `random`: null: columns that became zero stay so.
cudaError_t launch_orthonormalise(float* x, const float* random, std::size_t rows, std::size_t rank,
                                  cudaStream_t stream);
cudaError_t launch_expand(float* m, const float* p, const float* q, std::size_t rows, std::size_t columns,
                          std::size_t rank, bool subtract, cudaStream_t stream);
cudaError_t launch_activate(Activation f, float* y, const float* bias, std::size_t rows, std::size_t columns,
                            const Dropout* dropout, const std::uint32_t* samples, base::BFloat16* narrow,
                            cudaStream_t stream);
cudaError_t launch_activate_backward(Activation f, float* d, const float* y, float scale, float* bias_gradient,
                                     std::size_t rows, std::size_t columns, base::BFloat16* narrow,
                                     cudaStream_t stream);
cudaError_t launch_cross_entropy(float* z, const std::int32_t* classes, std::size_t rows, std::size_t columns,
                                 float factor, double* losses, cudaStream_t stream);
cudaError_t launch_squared_error(float* z, const float* targets, std::size_t rows, std::size_t columns, float factor,
                                 double* losses, cudaStream_t stream);
cudaError_t launch_total(const double* values, std::size_t count, double* result, cudaStream_t stream);
cudaError_t launch_sgd(float* p, const float* g, float* m, std::size_t size, const SgdStep& step, cudaStream_t stream);
cudaError_t launch_adam(float* p, const float* g, float* m, float* v, std::size_t size, const AdamStep& step,
                        cudaStream_t stream);

} // namespace ranktune::device::cuda
