// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks that all ranks of a trial have the same parameters.

#include <cstdint>
#include <span>
#include <string_view>

#include "ranktune/ddp/group.hpp"

namespace ranktune::ddp {

/// Digest of the bytes of the tensors, in order, in any memory.
[[nodiscard]] std::uint64_t parameter_digest(std::span<const base::ConstBuffer> tensors);

/// Throws base::Error on *all* ranks when `value` is not the same on all of them; the text names `what`. Collective.
void check_agreement(Group& group, std::uint64_t value, std::string_view what);

} // namespace ranktune::ddp
