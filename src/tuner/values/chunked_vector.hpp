// SPDX-License-Identifier: Apache-2.0
#pragma once
// A table that grows without moving its rows.

#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace ranktune::tuner {

/// A std::vector in chunks of `rows` rows: `push_back` never moves a row, and takes the memory of one chunk at most. (A
/// huge page, which the kernel zeroes at the first touch, would hold up the head's loop for milliseconds.)
template <class T, std::size_t rows = 128>
class ChunkedVector {
  public:
    using value_type = T;
    class ConstIterator {
      public:
        using value_type = T;
        using difference_type = std::ptrdiff_t;
        ConstIterator() = default;
        ConstIterator(const ChunkedVector& of, std::size_t at) : of_(&of), at_(at) {}
        [[nodiscard]] const T& operator*() const { return (*of_)[at_]; }
        [[nodiscard]] const T* operator->() const { return &(*of_)[at_]; }
        ConstIterator& operator++() {
            ++at_;
            return *this;
        }
        ConstIterator operator++(int) { return {*of_, at_++}; }
        friend bool operator==(const ConstIterator&, const ConstIterator&) = default;
        friend std::ptrdiff_t operator-(const ConstIterator& a, const ConstIterator& b) {
            return static_cast<std::ptrdiff_t>(a.at_) - static_cast<std::ptrdiff_t>(b.at_);
        }

      private:
        const ChunkedVector* of_ = nullptr;
        std::size_t at_ = 0;
    };

    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] bool empty() const { return size_ == 0; }
    [[nodiscard]] const T& operator[](std::size_t position) const { return chunks_[position / rows][position % rows]; }
    [[nodiscard]] T& operator[](std::size_t position) { return chunks_[position / rows][position % rows]; }
    [[nodiscard]] const T& back() const { return (*this)[size_ - 1]; }
    [[nodiscard]] ConstIterator begin() const { return {*this, 0}; }
    [[nodiscard]] ConstIterator end() const { return {*this, size_}; }

    T& push_back(T&& row) {
        if (size_ % rows == 0) chunks_.emplace_back().reserve(rows);
        ++size_;
        return chunks_.back().emplace_back(std::move(row));
    }
    void clear() { chunks_.clear(), size_ = 0; }

  private:
    std::vector<std::vector<T>> chunks_; ///< all full but for the last one
    std::size_t size_ = 0;
};

} // namespace ranktune::tuner
