// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arrivals: which gradients of a step are ready, and which buckets are full.

#include <cstddef>
#include <vector>

#include "ranktune/ddp/gradient_reducer.hpp"

namespace ranktune::ddp {

/// Nearly always gradients arrive in the order of the plan: then a count is all there is to keep.
class Arrivals {
  public:
    Arrivals() = default;
    Arrivals(const BucketPlan& plan, std::size_t tensors);
    /// A new step.
    void begin() {
        count_ = 0;
        full_ = 0;
        in_order_ = true;
    }
    /// Gradient i is ready. Returns false when it was already.
    bool mark(std::size_t i) {
        if (!in_order_ || count_ == order_.size() || order_[count_] != i) return mark_in_any_order(i);
        ++count_;
        if (count_ == ends_[full_]) ++full_;
        return true;
    }
    /// How many buckets at the beginning of the plan are full.
    [[nodiscard]] std::size_t full() const { return full_; }
    [[nodiscard]] bool complete() const { return count_ == order_.size(); }
    [[nodiscard]] bool has(std::size_t i) const;
    /// The plan's order.
    [[nodiscard]] const std::vector<std::size_t>& order() const { return order_; }
    /// The order of arrival in the last step; gradients that did not arrive are last, in the plan's order.
    [[nodiscard]] std::vector<std::size_t> arrived() const;

  private:
    bool mark_in_any_order(std::size_t i);

    std::vector<std::size_t> order_;
    std::vector<std::size_t> place_; ///< of each tensor in order_
    std::vector<std::size_t> ends_;  ///< per bucket: where the next one begins in order_
    std::size_t count_ = 0;
    std::size_t full_ = 0;
    bool in_order_ = true;
    // Only for arrivals in another order:
    std::vector<bool> is_ready_; ///< per place
    std::vector<std::size_t> arrived_;
};

} // namespace ranktune::ddp
