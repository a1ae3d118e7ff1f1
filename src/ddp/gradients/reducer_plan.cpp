// SPDX-License-Identifier: Apache-2.0
#include "ddp/gradients/reducer_plan.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <string>

#include "ddp/gradients/device_sums.hpp"
#include "device/device.hpp"
#include "ranktune/base/digest.hpp"

namespace ranktune::ddp {

BucketPlan plan_buckets(std::span<const std::size_t> tensor_sizes, std::size_t limit, std::size_t first) {
    std::vector<std::size_t> backwards(tensor_sizes.size());
    std::iota(backwards.rbegin(), backwards.rend(), std::size_t{0});
    return plan_buckets(tensor_sizes, limit, first, backwards);
}

BucketPlan plan_buckets(std::span<const std::size_t> tensor_sizes, std::size_t limit, std::size_t first,
                        std::span<const std::size_t> order) {
    assert(limit > 0);
    BucketPlan plan;
    for (const std::size_t tensor : order) {
        const std::size_t size = tensor_sizes[tensor];
        const std::size_t most = plan.buckets.size() == 1 && first > 0 ? std::min(first, limit) : limit;
        const bool full = !plan.buckets.empty() && plan.buckets.back().size + size > most;
        if (plan.buckets.empty() || full) plan.buckets.emplace_back();
        BucketPlan::Bucket& bucket = plan.buckets.back();
        bucket.slots.push_back({tensor, bucket.size, size});
        bucket.size += size;
    }
    return plan;
}

namespace {

void require_matrices(std::span<const Matrix> matrices, std::span<const std::size_t> sizes) {
    if (!matrices.empty() && matrices.size() != sizes.size())
        throw base::UsageError("a reducer of " + std::to_string(sizes.size()) + " gradients has " +
                               std::to_string(matrices.size()) + " matrices: give one per gradient, or none");
    for (std::size_t i = 0; i < matrices.size(); ++i)
        if (matrices[i].rows > 0 && matrices[i].columns > sizes[i] / matrices[i].rows)
            throw base::UsageError("gradient " + std::to_string(i) + " has " + std::to_string(sizes[i]) +
                                   " numbers, too few for a matrix of " + std::to_string(matrices[i].rows) + " x " +
                                   std::to_string(matrices[i].columns));
}

} // namespace

void require_settings(const ReducerSettings& settings, std::span<const std::size_t> sizes) {
    const Compression& compression = settings.compression;
    if (compression.kind == Compression::Kind::none) return;
    if (settings.type != base::DType::float32)
        throw base::UsageError("gradients of " + std::string(base::name(settings.type)) +
                               " cannot be compressed: only those of float32");
    if (!settings.place.is_host() && device::accelerator_of(settings.place) == nullptr)
        throw base::UsageError("gradients on " + settings.place.name() +
                               " cannot be compressed: only those on hosts and GPUs");
    if (compression.kind == Compression::Kind::bf16_nccl && settings.place.is_host())
        throw base::UsageError(
            "compression = \"bf16_nccl\" is a sum of NCCL, on GPUs: say \"bf16\" for gradients on cores");
    if (compression.kind == Compression::Kind::powersgd && compression.rank == 0)
        throw base::UsageError("the rank of powersgd must be 1 or more");
    if (compression.kind == Compression::Kind::topk && !(compression.density > 0.0 && compression.density <= 1.0))
        throw base::UsageError("the density of topk must be above 0, and at most 1");
    require_matrices(settings.matrices, sizes);
}

void require_reducible(const Collective& collective, const BucketPlan& plan, const ReducerSettings& settings) {
    using base::DType;
    const DType type = settings.type;
    if (type != DType::float32 && type != DType::float64 && type != DType::float16 && type != DType::bfloat16)
        throw base::UsageError("gradients of " + std::string(base::name(type)) + " cannot be reduced");
    if (device::accelerator_of(settings.place) == nullptr && !collective.reaches(settings.place))
        throw base::UsageError("gradients on " + settings.place.name() +
                               ": the group of this trial only takes host memory");
    // What is compressed may travel as bytes, of which MPI counts as many.
    const std::size_t most = settings.compression.kind == Compression::Kind::none ? largest_bucket : largest_bucket / 8;
    for (const BucketPlan::Bucket& bucket : plan.buckets)
        if (bucket.size >= most)
            throw base::UsageError("a gradient of " + std::to_string(bucket.size) + " elements is more than one " +
                                   "reduction can take (" + std::to_string(most - 1) + "): split the tensor");
}

void require_order(std::span<const std::size_t> order, std::size_t tensors) {
    std::vector<bool> there(tensors);
    bool right = order.size() == tensors;
    for (const std::size_t tensor : order) {
        right = right && tensor < tensors && !there[tensor];
        if (right) there[tensor] = true;
    }
    if (!right)
        throw base::UsageError("the order of the gradients must name each of the " + std::to_string(tensors) +
                               " tensors once");
}

HookInput hook_input(const GradientMemory& memory, const ReducerSettings& settings, std::size_t ranks) {
    HookInput input{memory.plan, settings.matrices, {}, ranks, settings.compression};
    for (std::size_t b = 0; b < memory.plan.buckets.size() && settings.type == base::DType::float32; ++b) {
        const base::Buffer bucket = memory.bucket(b);
        input.buckets.emplace_back(static_cast<float*>(bucket.address()), bucket.count());
    }
    return input;
}

StepPlan step_plan(const BucketPlan& plan, base::DType type, DeviceSums* sums, const Hook* hook,
                   const DeviceHook* device_hook) {
    std::vector<std::size_t> counts;
    for (const BucketPlan::Bucket& bucket : plan.buckets) counts.push_back(bucket.size);
    if (device_hook != nullptr) {
        StepPlan step{base::DType::float32, {1}, {sums, type, {}}};
        device_hook->announce(step.on_device);
        return step;
    }
    if (sums != nullptr) return {base::DType::float32, {1}, {sums, type, std::move(counts)}};
    if (hook == nullptr) {
        ++counts.back();
        return {type, std::move(counts)};
    }
    StepPlan step;
    hook->announce(step);
    step.counts.push_back(1);
    step.routes.push_back(StepPlan::Route::sum);
    return step;
}

std::uint64_t plan_digest(const BucketPlan& plan, const ReducerSettings& settings) {
    base::Digest digest;
    digest.add(settings.type);
    for (const auto& bucket : plan.buckets) {
        digest.add(bucket.size);
        for (const auto& slot : bucket.slots) digest.add(slot.tensor).add(slot.offset).add(slot.size);
    }
    const Compression& compression = settings.compression;
    digest.add(compression.kind).add(compression.rank).add(compression.density);
    for (const Matrix& matrix : settings.matrices) digest.add(matrix.rows).add(matrix.columns);
    return digest.value();
}

std::uint64_t bytes_of_sum(std::size_t bytes, double ranks) {
    return static_cast<std::uint64_t>(std::llround(2.0 * static_cast<double>(bytes) * (ranks - 1.0) / ranks));
}

std::uint64_t bytes_sent(const StepPlan& step, double ranks, bool status_is_apart) {
    std::uint64_t total = 0;
    const auto to_others = static_cast<std::uint64_t>(ranks - 1.0); // of a gather and an exchange
    for (std::size_t i = 0; i < step.on_device.counts.size(); ++i) {
        const std::size_t count = step.on_device.counts[i];
        const StepPlan::Route route = step.on_device.route(i);
        const base::DType type = route == StepPlan::Route::sum ? step.on_device.type : base::DType::bfloat16;
        const bool sums = route == StepPlan::Route::sum || route == StepPlan::Route::rounded_sum;
        total += sums ? bytes_of_sum(count * base::size_of(type), ranks) : count * to_others;
    }
    const std::size_t last = step.counts.size() - 1;
    for (std::size_t i = 0; i <= last; ++i) {
        const std::size_t count = step.counts[i];
        const bool bytes = !step.routes.empty() && step.routes[i] != StepPlan::Route::sum;
        if (i == last && status_is_apart) continue;
        const std::size_t status = i == last ? 1 : 0;
        if (bytes)
            total += count * to_others;
        else
            total += bytes_of_sum((count - status) * base::size_of(step.type), ranks);
    }
    return total;
}

} // namespace ranktune::ddp
