// SPDX-License-Identifier: Apache-2.0
// top_hook.cpp on a device, with the same bits.

#include <algorithm>

#include "ddp/compression/device_hook.hpp"
#include "ddp/gradients/device_sums.hpp"
#include "device/device.hpp"
#include "device/gradient_kernels.hpp"

namespace ranktune::ddp {

namespace {

class DeviceTopHook final : public DeviceHook {
  public:
    DeviceTopHook(HookInput input, device::Accelerator& on)
        : input_(std::move(input)), on_(on), kernels_(on.make_gradient_kernels(on.communication_stream())) {
        std::size_t widest = 0;
        for (std::size_t b = 0; b < input_.buckets.size(); ++b) {
            travels_.push_back(travel_of(b));
            widest = std::max(widest, travels_.back().count);
        }
        sent_ = {on, widest};
        received_ = {on, widest * input_.ranks};
    }

    void announce(StepPlan::OnDevice& step) const override {
        for (const Travel& travel : travels_) {
            step.routes.push_back(StepPlan::Route::gather);
            step.counts.push_back(travel.count * sizeof(device::ChosenNumber));
        }
    }

    void start(DeviceSums& sums, std::size_t b) override {
        const Travel& travel = travels_[b];
        const std::span<float> bucket = input_.buckets[b];
        sums.issue([&](device::Stream&) {
            kernels_->choose(travel.error.data(), bucket.data(), travel.slots.data(), travel.slots.size(),
                             sent_.data());
        });
        sums.gather(sent_.data(), received_.data(), travel.count * sizeof(device::ChosenNumber));
        sums.issue([&](device::Stream& stream) { // in the order of ranks, so that all add in the same order
            stream.fill_zero(bucket.data(), bucket.size_bytes());
            for (std::size_t rank = 0; rank < input_.ranks; ++rank)
                kernels_->scatter(bucket.data(), received_.data() + rank * travel.count, travel.count);
        });
    }

    std::vector<HookState> state() override {
        std::vector<HookState> all;
        for (std::size_t b = 0; b < travels_.size(); ++b)
            for (const BucketPlan::Slot& slot : input_.plan.buckets[b].slots)
                all.push_back(
                    {"error." + std::to_string(slot.tensor),
                     {travels_[b].error.data() + slot.offset, slot.size, base::DType::float32, base::Place(on_)},
                     true});
        return all;
    }

  private:
    struct Travel {
        std::size_t count = 0; ///< numbers to send
        OnDevice<device::ChoiceSlot> slots;
        OnDevice<float> error; ///< what was not sent yet
    };

    [[nodiscard]] Travel travel_of(std::size_t b) const {
        Travel travel;
        std::vector<device::ChoiceSlot> slots;
        for (const BucketPlan::Slot& slot : input_.plan.buckets[b].slots) {
            slots.push_back({slot.offset, slot.size, kept_numbers(input_.compression, slot.size), travel.count});
            travel.count += slots.back().kept;
        }
        travel.slots = {on_, slots.size()};
        on_.copy_from_host(travel.slots.data(), slots.data(), slots.size() * sizeof(device::ChoiceSlot));
        travel.error = {on_, input_.buckets[b].size()};
        return travel;
    }

    HookInput input_;
    device::Accelerator& on_;
    std::unique_ptr<device::GradientKernels> kernels_;
    std::vector<Travel> travels_;
    // As large as the widest bucket needs: all buckets use them in turn.
    OnDevice<device::ChosenNumber> sent_;
    OnDevice<device::ChosenNumber> received_;
};

} // namespace

std::unique_ptr<DeviceHook> make_device_top_hook(HookInput input, device::Accelerator& on) {
    return std::make_unique<DeviceTopHook>(std::move(input), on);
}

} // namespace ranktune::ddp
