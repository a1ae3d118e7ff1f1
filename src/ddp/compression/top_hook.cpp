// SPDX-License-Identifier: Apache-2.0
// The largest numbers of every tensor, with their places; the rest stays here and is added to the next gradients.

#include <algorithm>
#include <bit>
#include <cmath>

#include "ddp/compression/hook.hpp"
#include "ranktune/base/huge_pages.hpp"

namespace ranktune::ddp {

namespace {

class TopHook final : public Hook {
  public:
    explicit TopHook(HookInput input) : input_(std::move(input)) {
        std::size_t widest = 0;
        for (std::size_t b = 0; b < input_.buckets.size(); ++b) {
            Travel travel;
            for (const BucketPlan::Slot& slot : input_.plan.buckets[b].slots) {
                travel.kept.push_back(kept_numbers(input_.compression, slot.size));
                travel.count += travel.kept.back();
                widest = std::max(widest, slot.size);
            }
            travel.sent.resize(travel.count);
            travel.received.resize(travel.count * input_.ranks);
            travel.error.resize(input_.buckets[b].size());
            travels_.push_back(std::move(travel));
        }
        magnitudes_.resize(widest);
    }

    void announce(StepPlan& step) const override {
        for (const Travel& travel : travels_) {
            step.routes.push_back(StepPlan::Route::gather);
            step.counts.push_back(travel.count * sizeof(Chosen));
        }
    }

    std::unique_ptr<Pending> start(Collective& collective, std::size_t b) override {
        Travel& travel = travels_[b];
        const std::span<float> error = travel.error;
        for (std::size_t i = 0; i < error.size(); ++i) error[i] += input_.buckets[b][i];
        Chosen* to = travel.sent.data();
        for (std::size_t s = 0; s < travel.kept.size(); ++s) {
            const BucketPlan::Slot& slot = input_.plan.buckets[b].slots[s];
            to = choose(error.subspan(slot.offset, slot.size), slot.offset, travel.kept[s], to);
        }
        return collective.start_gather(std::as_bytes(std::span(travel.sent)),
                                       std::as_writable_bytes(std::span(travel.received)));
    }

    std::unique_ptr<Pending> go_on(Collective&, std::size_t) override { return nullptr; }

    /// In the order of ranks, so that all add in the same order.
    void decode(std::size_t b) override {
        const std::span<float> bucket = input_.buckets[b];
        std::ranges::fill(bucket, 0.0F);
        for (const Chosen& chosen : travels_[b].received) bucket[chosen.place] += chosen.value;
    }

    std::vector<HookState> state() override {
        std::vector<HookState> all;
        for (std::size_t b = 0; b < travels_.size(); ++b)
            for (const BucketPlan::Slot& slot : input_.plan.buckets[b].slots)
                all.push_back({"error." + std::to_string(slot.tensor),
                               std::span<float>(travels_[b].error).subspan(slot.offset, slot.size), true});
        return all;
    }

  private:
    struct Chosen {
        std::uint32_t place = 0; ///< in the bucket
        float value = 0.0F;
    };
    struct Travel {
        std::vector<std::size_t> kept; ///< numbers to send, per slot
        std::size_t count = 0;         ///< sum of them
        std::vector<Chosen> sent;
        std::vector<Chosen> received;
        base::LargeVector<float> error; ///< what was not sent yet
    };

    /// Moves the `count` largest numbers of `from` to `to`; returns the end. NaN counts as larger than any number.
    Chosen* choose(std::span<float> from, std::size_t offset, std::size_t count, Chosen* to) {
        if (count == 0) return to;
        const auto magnitude = [](float value) { return std::bit_cast<std::uint32_t>(value) & 0x7FFF'FFFFU; };
        const std::span<std::uint32_t> magnitudes = std::span(magnitudes_).first(from.size());
        std::ranges::transform(from, magnitudes.begin(), magnitude);
        const auto last = magnitudes.begin() + static_cast<std::ptrdiff_t>(count) - 1;
        std::nth_element(magnitudes.begin(), last, magnitudes.end(), std::greater<>());
        const std::uint32_t smallest = *last;
        std::size_t ties = static_cast<std::size_t>(std::count(magnitudes.begin(), last + 1, smallest));
        for (std::size_t i = 0; i < from.size(); ++i) {
            const std::uint32_t mine = magnitude(from[i]);
            if (mine < smallest || (mine == smallest && ties == 0)) continue;
            if (mine == smallest) --ties;
            *to++ = {static_cast<std::uint32_t>(offset + i), from[i]};
            from[i] = 0.0F;
        }
        return to;
    }

    HookInput input_;
    std::vector<Travel> travels_;
    base::LargeVector<std::uint32_t> magnitudes_;
};

} // namespace

std::size_t kept_numbers(const Compression& compression, std::size_t size) {
    const auto share = static_cast<std::size_t>(std::ceil(compression.density * static_cast<double>(size)));
    return std::clamp<std::size_t>(share, std::min<std::size_t>(size, 1), size);
}

std::shared_ptr<Hook> make_top_hook(HookInput input) { return std::make_shared<TopHook>(std::move(input)); }

std::shared_ptr<Hook> make_hook(HookInput input) {
    switch (input.compression.kind) {
        case Compression::Kind::none:
            return nullptr;
        case Compression::Kind::fp16:
        case Compression::Kind::bf16:
        case Compression::Kind::bf16_nccl: // refused: require_settings
            return make_half_hook(std::move(input));
        case Compression::Kind::powersgd:
            return make_power_hook(std::move(input));
        case Compression::Kind::topk:
            break;
    }
    return make_top_hook(std::move(input));
}

} // namespace ranktune::ddp
