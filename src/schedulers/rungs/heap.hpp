// SPDX-License-Identifier: Apache-2.0
#pragma once
// A binary heap with an accessible array: std::priority_queue can neither replace its top nor be written to a snapshot.

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <utility>
#include <vector>

namespace ranktune::schedulers {

/// `Before()(a, b)`: a comes out before b, a strict weak order. The top is the element that comes out first. The array
/// is a function of the sequence of calls alone, so equal histories give equal arrays. Elements are small values.
template <class T, class Before>
class Heap {
  public:
    [[nodiscard]] bool empty() const { return items_.empty(); }
    [[nodiscard]] std::size_t size() const { return items_.size(); }
    /// Requires !empty().
    [[nodiscard]] const T& top() const {
        assert(!items_.empty());
        return items_.front();
    }
    /// In heap order: the children of i are 2i+1 and 2i+2.
    [[nodiscard]] const std::vector<T>& items() const { return items_; }

    /// O(log n); O(1) on average for values in random order.
    void push(const T& value) {
        items_.push_back(value);
        std::size_t hole = items_.size() - 1;
        while (hole > 0) {
            const std::size_t parent = (hole - 1) / 2;
            if (!before_(value, items_[parent])) break;
            items_[hole] = items_[parent];
            hole = parent;
        }
        items_[hole] = value;
    }

    /// Replaces the top by `value` in one pass instead of two. Returns the old top. Requires !empty().
    T replace_top(const T& value) {
        assert(!items_.empty());
        const T old = items_.front();
        sink(value);
        return old;
    }

    /// Requires !empty().
    T pop() {
        assert(!items_.empty());
        const T old = items_.front();
        const T last = items_.back();
        items_.pop_back();
        if (!items_.empty()) sink(last);
        return old;
    }

    /// Takes over an array in heap order. Returns false, unchanged, if it is not in heap order.
    [[nodiscard]] bool adopt(std::vector<T> items) {
        if (!in_heap_order(items)) return false;
        items_ = std::move(items);
        return true;
    }
    [[nodiscard]] bool valid() const { return in_heap_order(items_); }
    void clear() { items_.clear(); }

  private:
    /// Moves `value` down from the top to its place, overwriting the old top.
    void sink(const T& value) {
        const std::size_t size = items_.size();
        std::size_t hole = 0;
        for (std::size_t child = 1; child < size; child = 2 * hole + 1) {
            if (child + 1 < size && before_(items_[child + 1], items_[child])) ++child;
            if (!before_(items_[child], value)) break;
            items_[hole] = items_[child];
            hole = child;
        }
        items_[hole] = value;
    }
    bool in_heap_order(const std::vector<T>& items) const {
        return std::ranges::is_heap(items, [this](const T& a, const T& b) { return before_(b, a); });
    }

    std::vector<T> items_;
    [[no_unique_address]] Before before_;
};

} // namespace ranktune::schedulers
