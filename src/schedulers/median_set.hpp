// SPDX-License-Identifier: Apache-2.0
#pragma once
// MedianSet: a growing multiset of numbers with its median, with or without one member.

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "ranktune/base/error.hpp"
#include "ranktune/study/codec.hpp"
#include "schedulers/rungs/heap.hpp"

namespace ranktune::schedulers {

/// Two heaps that meet in the middle: insertion is O(log n), the median O(1). Members may be -infinity, never NaN.
class MedianSet {
  public:
    void insert(double value) {
        if (low_.empty() || value <= low_.top()) {
            low_.push(value);
        } else {
            high_.push(value);
        }
        if (low_.size() > high_.size() + 1) high_.push(low_.pop());
        if (high_.size() > low_.size()) low_.push(high_.pop());
    }

    [[nodiscard]] std::size_t size() const { return low_.size() + high_.size(); }
    /// For an even number, the mean of the two middle members. Requires size() > 0.
    [[nodiscard]] double median() const {
        assert(size() > 0);
        return low_.size() > high_.size() ? low_.top() : between(low_.top(), high_.top());
    }
    /// The median of the others. Requires that `member` is in the set, and size() > 1.
    [[nodiscard]] double median_without(double member) const {
        assert(size() > 1);
        if (low_.size() == high_.size()) return member <= low_.top() ? high_.top() : low_.top();
        if (member < low_.top()) return between(low_.top(), high_.top());
        if (member > low_.top()) return between(second_of_low(), low_.top());
        return between(second_of_low(), high_.top());
    }

    void snapshot(study::Encoder& out) const {
        out.varint(size());
        for (const double value : low_.items()) out.f64(value);
        for (const double value : high_.items()) out.f64(value);
    }
    /// Throws base::FormatError.
    void restore(study::Decoder& in) {
        const std::size_t size = in.count();
        std::vector<double> low(size - size / 2);
        std::vector<double> high(size / 2);
        for (double& value : low) value = in.f64();
        for (double& value : high) value = in.f64();
        if (!low_.adopt(std::move(low)) || !high_.adopt(std::move(high)) || !valid()) {
            throw base::FormatError("running means in the snapshot are not in order");
        }
    }
    [[nodiscard]] bool valid() const {
        const auto is_nan = [](double value) { return std::isnan(value); };
        return low_.valid() && high_.valid() && (low_.size() == high_.size() || low_.size() == high_.size() + 1) &&
               (high_.empty() || low_.top() <= high_.top()) &&
               std::none_of(low_.items().begin(), low_.items().end(), is_nan) &&
               std::none_of(high_.items().begin(), high_.items().end(), is_nan);
    }

  private:
    struct LargerFirst {
        bool operator()(double a, double b) const { return a > b; }
    };
    struct SmallerFirst {
        bool operator()(double a, double b) const { return a < b; }
    };
    static double between(double a, double b) { return 0.5 * a + 0.5 * b; } // cannot overflow
    /// The second largest of the lower half: one of the children of its top. Requires low_.size() > 1.
    [[nodiscard]] double second_of_low() const {
        const auto& items = low_.items();
        return items.size() > 2 ? std::max(items[1], items[2]) : items[1];
    }

    Heap<double, LargerFirst> low_;   ///< the lower half, with the middle member of an odd number
    Heap<double, SmallerFirst> high_; ///< the upper half
};

} // namespace ranktune::schedulers
