// SPDX-License-Identifier: Apache-2.0
#pragma once
// All ranks of a trial have the same parameters: sends them, and checks.

#include <cstdint>
#include <span>
#include <string_view>

#include "ranktune/ddp/group.hpp"

namespace ranktune::ddp {

/// All ranks get rank 0's numbers. On GPUs they go from memory to memory (NCCL), as work of the compute stream.
/// Collective; throws base::Error on all ranks when the sizes differ.
void share_parameters(Group& group, std::span<const base::Buffer> tensors);

/// Digest of the bytes of the tensors, in order, in any memory.
[[nodiscard]] std::uint64_t parameter_digest(std::span<const base::ConstBuffer> tensors);

/// Throws base::Error on *all* ranks when `value` is not the same on all of them; the text names `what`. Collective.
void check_agreement(Group& group, std::uint64_t value, std::string_view what);

} // namespace ranktune::ddp
