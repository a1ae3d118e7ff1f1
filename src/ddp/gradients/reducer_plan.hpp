// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a reducer decides before its first step: whether its settings are possible, what a step sends, and what ranks
// compare.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ddp/collective.hpp"
#include "ddp/compression/device_hook.hpp"
#include "ddp/compression/hook.hpp"
#include "ddp/gradients/gradient_memory.hpp"

namespace ranktune::ddp {

// Each throws base::UsageError.
void require_settings(const ReducerSettings& settings, std::span<const std::size_t> sizes);
void require_reducible(const Collective& collective, const BucketPlan& plan, const ReducerSettings& settings);
void require_order(std::span<const std::size_t> order, std::size_t tensors);

/// What `memory` and `settings` give a hook; `memory` must outlive it.
[[nodiscard]] HookInput hook_input(const GradientMemory& memory, const ReducerSettings& settings, std::size_t ranks);

/// The operations of a step. On hosts the last bucket of gradients that are not compressed includes the status word;
/// otherwise it follows as a sum of one number.
[[nodiscard]] StepPlan step_plan(const BucketPlan& plan, base::DType type, DeviceSums* sums, const Hook* hook,
                                 const DeviceHook* device_hook);

/// What all ranks must have the same.
[[nodiscard]] std::uint64_t plan_digest(const BucketPlan& plan, const ReducerSettings& settings);

/// Bytes that a rank sends, at least, when `bytes` bytes are summed over all ranks: Patarasuk and Yuan, "Bandwidth
/// optimal all-reduce algorithms for clusters of workstations" (JPDC 2009).
[[nodiscard]] std::uint64_t bytes_of_sum(std::size_t bytes, double ranks);
/// Bytes that a rank sends in a whole step, without its status word.
[[nodiscard]] std::uint64_t bytes_sent(const StepPlan& step, double ranks, bool status_is_apart);

} // namespace ranktune::ddp
