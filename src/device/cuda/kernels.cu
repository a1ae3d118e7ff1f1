// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/kernels.cuh"

#include "device/cuda/gradient_kernels.cuh"
#include "device/cuda/kernels.hpp"

namespace ranktune::device::cuda {

namespace {

/// Blocks of a kernel that walks over `count` elements in strides of the grid.
unsigned blocks_for(std::size_t count) {
    constexpr std::size_t most = 4096; // some waves of any GPU
    const std::size_t blocks = (count + block_threads - 1) / block_threads;
    return static_cast<unsigned>(blocks < most ? blocks : most);
}

/// Launches a kernel that walks over `count` elements, if there are any.
template <class... Parameters, class... Arguments>
cudaError_t over(std::size_t count, cudaStream_t stream, void (*kernel)(Parameters...), Arguments... arguments) {
    if (count == 0) return cudaSuccess;
    kernel<<<blocks_for(count), block_threads, 0, stream>>>(arguments...);
    return cudaGetLastError();
}

} // namespace

cudaError_t launch_widen(float* to, const void* from, std::size_t count, bool brain, cudaStream_t stream) {
    return brain ? over(count, stream, widen<__nv_bfloat16>, to, static_cast<const __nv_bfloat16*>(from), count)
                 : over(count, stream, widen<__half>, to, static_cast<const __half*>(from), count);
}

cudaError_t launch_narrow(void* to, const float* from, std::size_t count, bool brain, cudaStream_t stream) {
    return brain ? over(count, stream, narrow<__nv_bfloat16>, static_cast<__nv_bfloat16*>(to), from, count)
                 : over(count, stream, narrow<__half>, static_cast<__half*>(to), from, count);
}

cudaError_t launch_add(float* to, const float* from, std::size_t count, cudaStream_t stream) {
    return over(count, stream, add_numbers, to, from, count);
}

cudaError_t launch_clip(float* values, std::size_t count, double most, double* numbers, cudaStream_t stream) {
    sum_squares<<<norm_blocks, block_threads, 0, stream>>>(values, count, numbers);
    const cudaError_t code = cudaGetLastError();
    if (code != cudaSuccess) return code;
    scale_to_norm<<<count == 0 ? 1 : blocks_for(count), block_threads, 0, stream>>>(values, count, most, numbers);
    return cudaGetLastError();
}

cudaError_t launch_add_parts(void* to, const void* parts, std::size_t count, std::size_t ranks, float divisor,
                             bool brain, cudaStream_t stream) {
    return brain ? over(count, stream, add_narrow_parts<__nv_bfloat16>, static_cast<__nv_bfloat16*>(to),
                        static_cast<const __nv_bfloat16*>(parts), count, ranks, divisor)
                 : over(count, stream, add_narrow_parts<__half>, static_cast<__half*>(to),
                        static_cast<const __half*>(parts), count, ranks, divisor);
}

cudaError_t launch_widen_times(float* to, const void* from, std::size_t count, float factor, bool brain,
                               cudaStream_t stream) {
    return brain ? over(count, stream, widen_times<__nv_bfloat16>, to, static_cast<const __nv_bfloat16*>(from), count,
                        factor)
                 : over(count, stream, widen_times<__half>, to, static_cast<const __half*>(from), count, factor);
}

cudaError_t launch_choose(float* error, const float* gradient, const ChoiceSlot* slots, std::size_t slot_count,
                          ChosenNumber* chosen, cudaStream_t stream) {
    if (slot_count == 0) return cudaSuccess;
    choose_largest<<<static_cast<unsigned>(slot_count), block_threads, 0, stream>>>(error, gradient, slots, chosen);
    return cudaGetLastError();
}

cudaError_t launch_scatter(float* to, const ChosenNumber* from, std::size_t count, cudaStream_t stream) {
    return over(count, stream, scatter_numbers, to, from, count);
}

cudaError_t launch_orthonormalise(float* x, const float* random, std::size_t rows, std::size_t rank,
                                  cudaStream_t stream) {
    if (random != nullptr)
        make_orthonormal_or_refill<<<1, block_threads, 0, stream>>>(x, random, rows, rank);
    else
        make_orthonormal<<<1, block_threads, 0, stream>>>(x, rows, rank);
    return cudaGetLastError();
}

cudaError_t launch_expand(float* m, const float* p, const float* q, std::size_t rows, std::size_t columns,
                          std::size_t rank, bool subtract, cudaStream_t stream) {
    const std::size_t count = rows * columns;
    return over(count, stream, expand_product, m, p, q, count, columns, rank, subtract);
}

cudaError_t launch_activate(Activation f, float* y, const float* bias, std::size_t rows, std::size_t columns,
                            const Dropout* dropout, const std::uint32_t* samples, base::BFloat16* narrow,
                            cudaStream_t stream) {
    const std::size_t count = rows * columns;
    return over(count, stream, activate_rows, f, y, bias, count, columns, dropout, samples,
                reinterpret_cast<__nv_bfloat16*>(narrow));
}

cudaError_t launch_activate_backward(Activation f, float* d, const float* y, float scale, float* bias_gradient,
                                     std::size_t rows, std::size_t columns, base::BFloat16* narrow,
                                     cudaStream_t stream) {
    if (columns == 0) return cudaSuccess;
    const auto blocks = static_cast<unsigned>((columns + tile_columns - 1) / tile_columns);
    activate_backward_rows<<<blocks, dim3(tile_columns, tile_rows), 0, stream>>>(
        f, d, y, scale, bias_gradient, rows, columns, reinterpret_cast<__nv_bfloat16*>(narrow));
    return cudaGetLastError();
}

cudaError_t launch_cross_entropy(float* z, const std::int32_t* classes, std::size_t rows, std::size_t columns,
                                 float factor, double* losses, cudaStream_t stream) {
    if (rows == 0) return cudaSuccess;
    cross_entropy_rows<<<static_cast<unsigned>(rows), row_threads, 0, stream>>>(z, classes, columns, factor, losses);
    return cudaGetLastError();
}

cudaError_t launch_squared_error(float* z, const float* targets, std::size_t rows, std::size_t columns, float factor,
                                 double* losses, cudaStream_t stream) {
    if (rows == 0) return cudaSuccess;
    squared_error_rows<<<static_cast<unsigned>(rows), row_threads, 0, stream>>>(z, targets, columns, factor, losses);
    return cudaGetLastError();
}

cudaError_t launch_total(const double* values, std::size_t count, double* result, cudaStream_t stream) {
    total_of<<<1, block_threads, 0, stream>>>(values, count, result);
    return cudaGetLastError();
}

cudaError_t launch_sgd(float* p, const float* g, float* m, std::size_t size, const SgdStep& step, cudaStream_t stream) {
    return over(size, stream, sgd_step, p, g, m, size, step);
}

cudaError_t launch_adam(float* p, const float* g, float* m, float* v, std::size_t size, const AdamStep& step,
                        cudaStream_t stream) {
    return over(size, stream, adam_step, p, g, m, v, size, step);
}

} // namespace ranktune::device::cuda
