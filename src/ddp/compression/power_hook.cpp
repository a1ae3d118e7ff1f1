// SPDX-License-Identifier: Apache-2.0
// PowerSGD (Vogels et al., NeurIPS 2019). For the gradient M of a matrix on this rank, with the error of earlier steps:
//
//     P = M Q        summed over the ranks      Q: of the last step (warm start), orthonormal
//     P^ = columns of P made orthonormal, on every rank
//     Q = M^T P^     summed over the ranks
//     sum of M ~ P^ Q^T; the error of this rank is M - P^ (M^T P^)^T
//
// One sum per bucket has all P and the tensors that are not compressed, a second one has all Q.

#include <algorithm>

#include "ddp/compression/hook.hpp"
#include "ddp/compression/low_rank.hpp"
#include "ddp/compression/power_layout.hpp"
#include "ranktune/base/huge_pages.hpp"

namespace ranktune::ddp {

namespace {

class PowerHook final : public Hook {
  public:
    explicit PowerHook(HookInput input) : input_(std::move(input)) {
        for (std::size_t b = 0; b < input_.buckets.size(); ++b) travels_.emplace_back(power_layout(input_, b));
    }

    void announce(StepPlan& step) const override {
        for (const Travel& travel : travels_) step.counts.push_back(travel.first.size());
        for (const Travel& travel : travels_)
            if (!travel.second.empty()) step.counts.push_back(travel.second.size());
        step.routes.assign(step.counts.size(), StepPlan::Route::sum);
    }

    std::unique_ptr<Pending> start(Collective& collective, std::size_t b) override {
        Travel& travel = travels_[b];
        const std::span<float> bucket = input_.buckets[b];
        for (Thin& thin : travel.thin) {
            const std::span<float> m = thin.error; // becomes M
            for (std::size_t i = 0; i < m.size(); ++i) m[i] += bucket[thin.offset + i];
            make_orthonormal(thin);
            multiply(m, thin.q, thin.rank, p_of(travel, thin));
        }
        for (const PowerLayout::Plain& plain : travel.plain)
            std::ranges::copy(bucket.subspan(plain.offset, plain.size), travel.first.data() + plain.begin);
        return collective.start_sum(std::span<float>(travel.first));
    }

    std::unique_ptr<Pending> go_on(Collective& collective, std::size_t b) override {
        Travel& travel = travels_[b];
        if (travel.second.empty()) return nullptr;
        for (Thin& thin : travel.thin) {
            const std::span<float> p = p_of(travel, thin);
            const std::span<float> q = q_of(travel, thin);
            static_cast<void>(orthonormalise(p, thin.rank));
            multiply_transposed(thin.error, p, thin.rank, q);
            subtract_expanded(p, q, thin.rank, thin.error);
        }
        return collective.start_sum(std::span<float>(travel.second));
    }

    void decode(std::size_t b) override {
        Travel& travel = travels_[b];
        const std::span<float> bucket = input_.buckets[b];
        for (Thin& thin : travel.thin) {
            const std::span<float> q = q_of(travel, thin);
            expand(p_of(travel, thin), q, thin.rank, bucket.subspan(thin.offset, thin.error.size()));
            std::ranges::copy(q, thin.q.begin());
            const std::size_t padding = thin.offset + thin.error.size();
            std::ranges::fill(bucket.subspan(padding, thin.offset + thin.size - padding), 0.0F);
        }
        for (const PowerLayout::Plain& plain : travel.plain)
            std::copy_n(travel.first.data() + plain.begin, plain.size, bucket.data() + plain.offset);
    }

    std::vector<HookState> state() override {
        std::vector<HookState> all;
        for (Travel& travel : travels_)
            for (Thin& thin : travel.thin) {
                all.push_back({"error." + std::to_string(thin.tensor), std::span<float>(thin.error), true});
                all.push_back({"q." + std::to_string(thin.tensor), std::span<float>(thin.q)});
            }
        return all;
    }

  private:
    struct Thin : ThinMatrix {
        explicit Thin(const ThinMatrix& matrix)
            : ThinMatrix(matrix), error(matrix.numbers()), q(matrix.columns * matrix.rank) {}
        base::LargeVector<float> error;
        base::LargeVector<float> q; ///< of the last step
    };
    struct Travel {
        explicit Travel(PowerLayout layout)
            : thin(layout.thin.begin(), layout.thin.end()),
              plain(std::move(layout.plain)),
              first(layout.first),
              second(layout.second) {}
        std::vector<Thin> thin;
        std::vector<PowerLayout::Plain> plain;
        base::LargeVector<float> first;
        base::LargeVector<float> second;
    };

    static void make_orthonormal(Thin& thin) {
        const auto tensor = static_cast<std::uint32_t>(thin.tensor);
        for (std::uint32_t draw = 0; draw < 4; ++draw) { // once, but for the first step and columns that vanished
            if (!orthonormalise(thin.q, thin.rank)) return;
            refill_zero_columns(thin.q, thin.rank, tensor, draw);
        }
    }

    static std::span<float> p_of(Travel& travel, const Thin& thin) {
        return std::span(travel.first).subspan(thin.p_begin, thin.rows * thin.rank);
    }
    static std::span<float> q_of(Travel& travel, const Thin& thin) {
        return std::span(travel.second).subspan(thin.q_begin, thin.q.size());
    }

    HookInput input_;
    std::vector<Travel> travels_;
};

} // namespace

std::shared_ptr<Hook> make_power_hook(HookInput input) { return std::make_shared<PowerHook>(std::move(input)); }

} // namespace ranktune::ddp
