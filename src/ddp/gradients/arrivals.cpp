// SPDX-License-Identifier: Apache-2.0
#include "ddp/gradients/arrivals.hpp"

#include <algorithm>

namespace ranktune::ddp {

Arrivals::Arrivals(const BucketPlan& plan, std::size_t tensors) : place_(tensors) {
    for (const BucketPlan::Bucket& bucket : plan.buckets) {
        for (const BucketPlan::Slot& slot : bucket.slots) {
            place_[slot.tensor] = order_.size();
            order_.push_back(slot.tensor);
        }
        ends_.push_back(order_.size());
    }
    is_ready_.resize(tensors);
    arrived_.reserve(tensors);
}

bool Arrivals::mark_in_any_order(std::size_t i) {
    if (in_order_) {
        in_order_ = false;
        is_ready_.assign(order_.size(), false);
        std::fill_n(is_ready_.begin(), count_, true);
        arrived_.assign(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(count_));
    }
    if (is_ready_[place_[i]]) return false;
    is_ready_[place_[i]] = true;
    arrived_.push_back(i);
    ++count_;
    const auto is_full = [&](std::size_t bucket) {
        const std::size_t begin = bucket == 0 ? 0 : ends_[bucket - 1];
        return std::all_of(is_ready_.begin() + static_cast<std::ptrdiff_t>(begin),
                           is_ready_.begin() + static_cast<std::ptrdiff_t>(ends_[bucket]), [](bool b) { return b; });
    };
    while (full_ < ends_.size() && is_full(full_)) ++full_;
    return true;
}

bool Arrivals::has(std::size_t i) const { return in_order_ ? place_[i] < count_ : is_ready_[place_[i]]; }

std::vector<std::size_t> Arrivals::arrived() const {
    std::vector<std::size_t> all(arrived_);
    if (in_order_) all.assign(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(count_));
    for (const std::size_t tensor : order_)
        if (!has(tensor)) all.push_back(tensor);
    return all;
}

} // namespace ranktune::ddp
