// SPDX-License-Identifier: Apache-2.0
#pragma once
// The Collective of a trial of one rank.

#include <atomic>
#include <memory>

#include "ddp/collective.hpp"

namespace ranktune::ddp {

/// Every operation is local. With `abort` (which outlives the result), each throws Aborted once it is raised, as the
/// collectives of larger trials do.
[[nodiscard]] std::unique_ptr<Collective> make_self_collective(const std::atomic<bool>* abort = nullptr);

} // namespace ranktune::ddp
