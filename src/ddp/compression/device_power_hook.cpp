// SPDX-License-Identifier: Apache-2.0
// power_hook.cpp on a device. Products of M with a thin matrix are cuBLAS's, and differ in the last digits from those
// of hosts; they are summed. What every rank must have the same is computed by kernels of our own.

#include "ddp/compression/device_hook.hpp"
#include "ddp/compression/low_rank.hpp"
#include "ddp/compression/power_layout.hpp"
#include "ddp/gradients/device_sums.hpp"
#include "device/compute.hpp"
#include "device/device.hpp"
#include "device/gradient_kernels.hpp"

namespace ranktune::ddp {

namespace {

class DevicePowerHook final : public DeviceHook {
  public:
    DevicePowerHook(HookInput input, device::Accelerator& on)
        : input_(std::move(input)),
          on_(on),
          kernels_(on.make_gradient_kernels(on.communication_stream())),
          compute_(on.make_compute(on.communication_stream())) {
        for (std::size_t b = 0; b < input_.buckets.size(); ++b) travels_.push_back(travel_of(b));
    }

    void announce(StepPlan::OnDevice& step) const override {
        for (const Travel& travel : travels_)
            for (const std::size_t count : {travel.layout.first, travel.layout.second})
                if (count > 0) step.counts.push_back(count);
    }

    void start(DeviceSums& sums, std::size_t b) override {
        const Travel& travel = travels_[b];
        sums.issue([&](device::Stream& stream) { encode(travel, input_.buckets[b].data(), stream); });
        if (travel.layout.first > 0) sums.start(floats(travel.first));
        if (travel.layout.second > 0) {
            sums.issue([&](device::Stream&) { approximate(travel); });
            sums.start(floats(travel.second));
        }
        sums.issue([&](device::Stream& stream) { decode(travel, input_.buckets[b].data(), stream); });
    }

    std::vector<HookState> state() override {
        std::vector<HookState> all;
        for (const Travel& travel : travels_)
            for (std::size_t i = 0; i < travel.memory.size(); ++i) {
                const std::string tensor = std::to_string(travel.layout.thin[i].tensor);
                all.push_back({"error." + tensor, floats(travel.memory[i].error), true});
                all.push_back({"q." + tensor, floats(travel.memory[i].q)});
            }
        return all;
    }

  private:
    struct Memory {
        OnDevice<float> error;
        OnDevice<float> q;      ///< of the last step
        OnDevice<float> random; ///< for columns of Q that became zero
    };
    struct Travel {
        PowerLayout layout;
        std::vector<Memory> memory; ///< per thin matrix
        OnDevice<float> first;
        OnDevice<float> second;
    };

    [[nodiscard]] base::Buffer floats(const OnDevice<float>& numbers) const {
        return {numbers.data(), numbers.size(), base::DType::float32, base::Place(on_)};
    }

    [[nodiscard]] Travel travel_of(std::size_t b) const {
        Travel travel{power_layout(input_, b), {}, {}, {}};
        travel.first = {on_, travel.layout.first};
        travel.second = {on_, travel.layout.second};
        for (const ThinMatrix& thin : travel.layout.thin) {
            Memory memory{{on_, thin.numbers()}, {on_, thin.columns * thin.rank}, {}};
            std::vector<float> random;
            for (std::uint32_t draw = 0; draw < device::GradientKernels::refills; ++draw) {
                std::vector<float> q(thin.columns * thin.rank);
                refill_zero_columns(q, thin.rank, static_cast<std::uint32_t>(thin.tensor), draw);
                random.insert(random.end(), q.begin(), q.end());
            }
            memory.random = {on_, random.size()};
            base::copy(random, floats(memory.random));
            travel.memory.push_back(std::move(memory));
        }
        return travel;
    }

    /// The first sum: every P = M Q, and the tensors that travel as they are.
    void encode(const Travel& travel, const float* bucket, device::Stream& stream) {
        for (std::size_t i = 0; i < travel.memory.size(); ++i) {
            const ThinMatrix& thin = travel.layout.thin[i];
            const Memory& memory = travel.memory[i];
            float* const m = memory.error.data(); // becomes M
            stream.add(m, bucket + thin.offset, thin.numbers());
            kernels_->orthonormalise_or_refill(memory.q.data(), memory.random.data(), thin.columns, thin.rank);
            compute_->multiply(false, false, thin.rows, thin.rank, thin.columns, {m, thin.columns},
                               {memory.q.data(), thin.rank}, {travel.first.data() + thin.p_begin, thin.rank},
                               device::Precision::fp32);
        }
        for (const PowerLayout::Plain& plain : travel.layout.plain)
            stream.copy(travel.first.data() + plain.begin, bucket + plain.offset, plain.size * sizeof(float));
    }

    /// The second sum: every Q = M^T P^. What P^ Q^T lacks of M is this rank's error.
    void approximate(const Travel& travel) {
        for (std::size_t i = 0; i < travel.memory.size(); ++i) {
            const ThinMatrix& thin = travel.layout.thin[i];
            float* const m = travel.memory[i].error.data();
            float* const p = travel.first.data() + thin.p_begin;
            float* const q = travel.second.data() + thin.q_begin;
            kernels_->orthonormalise(p, thin.rows, thin.rank);
            compute_->multiply(true, false, thin.columns, thin.rank, thin.rows, {m, thin.columns}, {p, thin.rank},
                               {q, thin.rank}, device::Precision::fp32);
            kernels_->subtract_expanded(m, p, q, thin.rows, thin.columns, thin.rank);
        }
    }

    void decode(const Travel& travel, float* bucket, device::Stream& stream) {
        for (std::size_t i = 0; i < travel.memory.size(); ++i) {
            const ThinMatrix& thin = travel.layout.thin[i];
            const float* const q = travel.second.data() + thin.q_begin;
            kernels_->expand(bucket + thin.offset, travel.first.data() + thin.p_begin, q, thin.rows, thin.columns,
                             thin.rank);
            stream.copy(travel.memory[i].q.data(), q, travel.memory[i].q.size() * sizeof(float));
            stream.fill_zero(bucket + thin.offset + thin.numbers(), (thin.size - thin.numbers()) * sizeof(float));
        }
        for (const PowerLayout::Plain& plain : travel.layout.plain)
            stream.copy(bucket + plain.offset, travel.first.data() + plain.begin, plain.size * sizeof(float));
    }

    HookInput input_;
    device::Accelerator& on_;
    std::unique_ptr<device::GradientKernels> kernels_;
    std::unique_ptr<device::Compute> compute_;
    std::vector<Travel> travels_;
};

} // namespace

std::unique_ptr<DeviceHook> make_device_power_hook(HookInput input, device::Accelerator& on) {
    return std::make_unique<DevicePowerHook>(std::move(input), on);
}

} // namespace ranktune::ddp
