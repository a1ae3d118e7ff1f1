// SPDX-License-Identifier: Apache-2.0
#pragma once
// Keeping the ranks of a trial in step: parameters from one rank to all, and checks that all have the same.

#include <cstdint>
#include <span>
#include <string_view>

#include "ranktune/ddp/collective.hpp"

namespace ranktune::ddp {

/// Copies rank 0's tensors to all ranks. Collective; sizes must agree.
void broadcast_parameters(Collective& collective, std::span<const std::span<float>> tensors);

/// Digest of the bytes of the tensors, in order.
[[nodiscard]] std::uint64_t parameter_digest(std::span<const std::span<const float>> tensors);

/// Throws base::Error on *all* ranks when `value` is not the same on all of them; the text names `what`. Collective.
void check_agreement(Collective& collective, std::uint64_t value, std::string_view what);

} // namespace ranktune::ddp
