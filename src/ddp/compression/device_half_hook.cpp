// SPDX-License-Identifier: Apache-2.0
// half_hook.cpp on a device, with the same bits: NCCL's own sums would round at every rank.

#include <algorithm>

#include "ddp/compression/device_hook.hpp"
#include "ddp/gradients/device_sums.hpp"
#include "device/device.hpp"
#include "device/gradient_kernels.hpp"

namespace ranktune::ddp {

namespace {

class DeviceHalfHook final : public DeviceHook {
  public:
    DeviceHalfHook(HookInput input, device::Accelerator& on)
        : input_(std::move(input)),
          type_(input_.compression.kind == Compression::Kind::fp16 ? base::DType::float16 : base::DType::bfloat16),
          kernels_(on.make_gradient_kernels(on.communication_stream())) {
        std::size_t widest = 0;
        for (std::size_t b = 0; b < input_.buckets.size(); ++b) widest = std::max(widest, part_of(b));
        sent_ = {on, widest * input_.ranks};
        received_ = {on, widest * input_.ranks};
        own_ = {on, widest};
    }

    void announce(StepPlan::OnDevice& step) const override {
        for (std::size_t b = 0; b < input_.buckets.size(); ++b)
            for (const StepPlan::Route route : {StepPlan::Route::exchange, StepPlan::Route::gather}) {
                step.routes.push_back(route);
                step.counts.push_back(part_of(b) * bytes_of_half);
            }
    }

    void start(DeviceSums& sums, std::size_t b) override {
        const std::span<float> bucket = input_.buckets[b];
        const std::size_t part = part_of(b);
        sums.issue([&](device::Stream& stream) { stream.narrow(sent_.data(), type_, bucket.data(), bucket.size()); });
        sums.exchange(sent_.data(), received_.data(), part * bytes_of_half);
        sums.issue([&](device::Stream&) {
            kernels_->add_parts(own_.data(), received_.data(), part, input_.ranks, type_,
                                static_cast<float>(input_.ranks));
        });
        sums.gather(own_.data(), received_.data(), part * bytes_of_half);
        sums.issue([&](device::Stream&) {
            kernels_->widen_times(bucket.data(), received_.data(), bucket.size(), type_,
                                  static_cast<float>(input_.ranks));
        });
    }

  private:
    static constexpr std::size_t bytes_of_half = 2;

    /// Numbers of bucket b that one rank adds.
    [[nodiscard]] std::size_t part_of(std::size_t b) const {
        return (input_.buckets[b].size() + input_.ranks - 1) / input_.ranks;
    }

    HookInput input_;
    base::DType type_;
    std::unique_ptr<device::GradientKernels> kernels_;
    // As large as the widest bucket needs: all buckets use them in turn. A smaller one leaves padding at its end.
    OnDevice<std::uint16_t> sent_;
    OnDevice<std::uint16_t> received_;
    OnDevice<std::uint16_t> own_; ///< the part that this rank has added
};

/// NCCL's own sum.
class DeviceRoundedHook final : public DeviceHook {
  public:
    DeviceRoundedHook(HookInput input, device::Accelerator& on) : input_(std::move(input)) {
        std::size_t widest = 0;
        for (const std::span<float> bucket : input_.buckets) widest = std::max(widest, bucket.size());
        sums_ = {on, widest};
    }

    void announce(StepPlan::OnDevice& step) const override {
        for (const std::span<float> bucket : input_.buckets) {
            step.routes.push_back(StepPlan::Route::rounded_sum);
            step.counts.push_back(bucket.size());
        }
    }

    void start(DeviceSums& sums, std::size_t b) override {
        const std::span<float> bucket = input_.buckets[b];
        constexpr base::DType type = base::DType::bfloat16;
        sums.issue([&](device::Stream& stream) { stream.narrow(sums_.data(), type, bucket.data(), bucket.size()); });
        sums.sum_rounded(sums_.data(), bucket.size());
        sums.issue([&](device::Stream& stream) { stream.widen(bucket.data(), sums_.data(), bucket.size(), type); });
    }

  private:
    HookInput input_;
    OnDevice<std::uint16_t> sums_; ///< all buckets use it in turn
};

} // namespace

std::unique_ptr<DeviceHook> make_device_half_hook(HookInput input, device::Accelerator& on) {
    return std::make_unique<DeviceHalfHook>(std::move(input), on);
}

std::unique_ptr<DeviceHook> make_device_hook(HookInput input, device::Accelerator& on) {
    switch (input.compression.kind) {
        case Compression::Kind::none:
            return nullptr;
        case Compression::Kind::fp16:
        case Compression::Kind::bf16:
            return make_device_half_hook(std::move(input), on);
        case Compression::Kind::bf16_nccl:
            return std::make_unique<DeviceRoundedHook>(std::move(input), on);
        case Compression::Kind::powersgd:
            return make_device_power_hook(std::move(input), on);
        case Compression::Kind::topk:
            break;
    }
    return make_device_top_hook(std::move(input), on);
}

} // namespace ranktune::ddp
