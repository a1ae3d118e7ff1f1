// SPDX-License-Identifier: Apache-2.0
// Gradients in 16 bits, added in float: every rank adds one part of a bucket (an exchange), then gets the other parts
// (a gather). A sum by MPI or NCCL would round at every step of its ring.

#include <algorithm>

#include "ddp/compression/hook.hpp"
#include "ranktune/base/half.hpp"
#include "ranktune/base/huge_pages.hpp"

namespace ranktune::ddp {

namespace {

template <class Half>
class HalfHook final : public Hook {
  public:
    explicit HalfHook(HookInput input) : input_(std::move(input)) {
        for (const std::span<float> bucket : input_.buckets) {
            Travel travel;
            travel.part = (bucket.size() + input_.ranks - 1) / input_.ranks;
            travel.sent.resize(travel.part * input_.ranks); // the padding stays zero
            travel.received.resize(travel.part * input_.ranks);
            widest_ = std::max(widest_, travel.part);
            travels_.push_back(std::move(travel));
        }
        sum_.resize(widest_);
        own_.resize(travels_.size());
        for (std::size_t b = 0; b < own_.size(); ++b) own_[b].resize(travels_[b].part);
    }

    void announce(StepPlan& step) const override {
        for (const StepPlan::Route route : {StepPlan::Route::exchange, StepPlan::Route::gather})
            for (const Travel& travel : travels_) {
                step.routes.push_back(route);
                step.counts.push_back(travel.part * sizeof(Half));
            }
    }

    std::unique_ptr<Pending> start(Collective& collective, std::size_t b) override {
        Travel& travel = travels_[b];
        base::convert(input_.buckets[b], std::span(travel.sent).first(input_.buckets[b].size()));
        return collective.start_exchange(std::as_bytes(std::span(travel.sent)),
                                         std::as_writable_bytes(std::span(travel.received)));
    }

    std::unique_ptr<Pending> go_on(Collective& collective, std::size_t b) override {
        Travel& travel = travels_[b];
        const std::span<float> sum = std::span(sum_).first(travel.part);
        std::ranges::fill(sum, 0.0F);
        for (std::size_t rank = 0; rank < input_.ranks; ++rank) {
            const Half* const from = travel.received.data() + rank * travel.part;
            for (std::size_t i = 0; i < travel.part; ++i) sum[i] += static_cast<float>(from[i]);
        }
        const auto ranks = static_cast<float>(input_.ranks);
        for (float& number : sum) number /= ranks;
        base::convert(sum, std::span(own_[b]));
        return collective.start_gather(std::as_bytes(std::span(own_[b])),
                                       std::as_writable_bytes(std::span(travel.received)));
    }

    void decode(std::size_t b) override {
        const auto ranks = static_cast<float>(input_.ranks);
        const std::span<float> bucket = input_.buckets[b];
        base::convert(std::span<const Half>(travels_[b].received).first(bucket.size()), bucket);
        for (float& number : bucket) number *= ranks;
    }

  private:
    struct Travel {
        std::size_t part = 0; ///< numbers that one rank adds
        base::LargeVector<Half> sent;
        base::LargeVector<Half> received;
    };

    HookInput input_;
    std::vector<Travel> travels_;
    std::vector<base::LargeVector<Half>> own_; ///< per bucket: the part that this rank has added
    base::LargeVector<float> sum_;
    std::size_t widest_ = 0;
};

} // namespace

std::shared_ptr<Hook> make_half_hook(HookInput input) {
    if (input.compression.kind == Compression::Kind::fp16)
        return std::make_shared<HalfHook<base::Float16>>(std::move(input));
    return std::make_shared<HalfHook<base::BFloat16>>(std::move(input));
}

} // namespace ranktune::ddp
