// SPDX-License-Identifier: Apache-2.0
#pragma once
// LibTorch's CUDA beside ranktune's: whether both fit into one process.

#include <string>
#include <vector>

namespace ranktune::libtorch {

/// What there is of CUDA in this process. 13000 means 13.0; 0: none.
struct CudaFacts {
    int ours = 0;                        ///< the runtime that libranktune-cuda.so uses
    int torchs = 0;                      ///< the runtime that LibTorch uses
    std::vector<std::string> nccl_files; ///< loaded libraries that define NCCL's functions
};

/// Why LibTorch and ranktune cannot share GPUs in this process, and what to do; empty: they can.
[[nodiscard]] std::string clash(const CudaFacts& facts);
/// As loaded now. Opens libranktune-cuda.so.
[[nodiscard]] CudaFacts cuda_facts();
/// LibTorch's tensors on device `ordinal` take at most this share of its memory. Nothing without CUDA.
void limit_memory_of_libtorch(int ordinal, double share);
/// `torch::kCUDA` without a number means this device on the calling thread. Nothing without CUDA.
void choose_device_of_libtorch(int ordinal);
/// Gives back what LibTorch's allocator keeps for later tensors, on all devices. Nothing without CUDA.
void empty_cache_of_libtorch();

} // namespace ranktune::libtorch
