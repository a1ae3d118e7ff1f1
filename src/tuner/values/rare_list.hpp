// SPDX-License-Identifier: Apache-2.0
#pragma once
// A list that is empty in most trials.

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "ranktune/study/schema.hpp"

namespace ranktune::tuner {

/// A std::vector in 8 bytes instead of 24: null while it is empty. A million trials have six of them each.
template <class T>
class RareList {
  public:
    using value_type = T;
    using List = std::vector<T>;

    RareList() = default;
    RareList(List items) { *this = std::move(items); } // NOLINT(google-explicit-constructor)
    RareList(std::initializer_list<T> items) : RareList(List(items)) {}
    RareList(const RareList& other) : RareList(other.all()) {}
    RareList(RareList&&) noexcept = default;
    RareList& operator=(const RareList& other) { return *this = List(other.all()); }
    RareList& operator=(RareList&&) noexcept = default;
    RareList& operator=(List items) {
        list_ = items.empty() ? nullptr : std::make_unique<List>(std::move(items));
        return *this;
    }
    RareList& operator=(std::initializer_list<T> items) { return *this = List(items); }
    ~RareList() = default;

    [[nodiscard]] const List& all() const {
        static const List none;
        return list_ ? *list_ : none;
    }
    operator const List&() const { return all(); } // NOLINT(google-explicit-constructor)
    [[nodiscard]] bool empty() const { return list_ == nullptr; }
    [[nodiscard]] std::size_t size() const { return list_ ? list_->size() : 0; }
    [[nodiscard]] const T* begin() const { return list_ ? list_->data() : nullptr; }
    [[nodiscard]] const T* end() const { return begin() + size(); }
    [[nodiscard]] T* begin() { return list_ ? list_->data() : nullptr; }
    [[nodiscard]] T* end() { return begin() + size(); }
    [[nodiscard]] const T& operator[](std::size_t position) const { return (*list_)[position]; }
    [[nodiscard]] T& operator[](std::size_t position) { return (*list_)[position]; }
    [[nodiscard]] const T& at(std::size_t position) const { return all().at(position); }
    [[nodiscard]] const T& front() const { return list_->front(); }
    [[nodiscard]] const T& back() const { return list_->back(); }
    [[nodiscard]] T& back() { return list_->back(); }

    void push_back(T item) {
        if (!list_) list_ = std::make_unique<List>();
        list_->push_back(std::move(item));
    }
    void pop_back() {
        list_->pop_back();
        if (list_->empty()) list_.reset();
    }
    void pop_front() {
        list_->erase(list_->begin());
        if (list_->empty()) list_.reset();
    }
    void resize(std::size_t count) {
        List items(std::move(*this).taken());
        items.resize(count);
        *this = std::move(items);
    }
    void clear() { list_.reset(); }
    friend bool operator==(const RareList& a, const RareList& b) { return a.all() == b.all(); }

  private:
    [[nodiscard]] List taken() && { return list_ ? std::move(*list_) : List(); }

    std::unique_ptr<List> list_; ///< never of an empty list
};

} // namespace ranktune::tuner

template <class T>
inline constexpr bool ranktune::study::is_list<ranktune::tuner::RareList<T>> = true;
