// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tensors of a checkpoint in the safetensors format, which PyTorch, JAX, TensorFlow and others read.

#include <map>
#include <ostream>
#include <string>
#include <string_view>

#include "ranktune/study/state.hpp"

namespace ranktune::report {

/// Whether a tensor is part of the model: not of its optimizer ("optimizer."), its trainer ("trainer."), or the scaling
/// of its data ("input.", "output.").
[[nodiscard]] bool is_weight(std::string_view tensor);

/// Writes the tensors in the order of saving, with their names, types and row-major shapes; without `all` only the
/// weights. `metadata` goes into the header. Format: 8 bytes with the size of the header (little-endian), the header
/// (JSON, padded with spaces to a multiple of 8), the bytes of the tensors without gaps
/// (https://github.com/huggingface/safetensors, "Format"). Throws base::UsageError when nothing is left to write.
void write_safetensors(const study::MemoryState& state, bool all, const std::map<std::string, std::string>& metadata,
                       std::ostream& out);

} // namespace ranktune::report
