// SPDX-License-Identifier: Apache-2.0
#include "ddp/collective/staging.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "ddp/collective/number_type.hpp"

namespace ranktune::ddp {

namespace {

using base::DType;

/// The integer type to whose order T's order can be mapped.
template <class T>
using Key = std::conditional_t<sizeof(Wide<T>) == 4, std::int32_t, std::int64_t>;

template <class T>
constexpr bool is_floating = std::is_floating_point_v<Wide<T>>;

/// The bits of positive numbers are ordered as the numbers are, those of negative ones in reverse.
template <class Integer>
Integer flipped_if_negative(Integer bits) {
    return bits < 0 ? bits ^ std::numeric_limits<Integer>::max() : bits;
}

template <class Integer, class Float>
Integer ordered(Float value, Reduce how) {
    using Limits = std::numeric_limits<Integer>;
    if (std::isnan(value)) return how == Reduce::max ? Limits::max() : Limits::min();
    return flipped_if_negative(std::bit_cast<Integer>(value));
}

/// A key beyond infinity becomes a NaN again.
template <class Float, class Integer>
Float unordered(Integer key) {
    const auto value = std::bit_cast<Float>(flipped_if_negative(key));
    return std::isnan(value) ? std::numeric_limits<Float>::quiet_NaN() : value;
}

DType staged_type(DType type, Reduce how) {
    DType result = type;
    with_type(type, [&]<class T>(T) {
        result = base::dtype_of<Wide<T>>();
        if constexpr (is_floating<T>) {
            if (how != Reduce::sum) result = base::dtype_of<Key<T>>();
        }
    });
    return result;
}

template <class T>
void stage(std::span<const T> from, base::Buffer to, [[maybe_unused]] Reduce how) {
    if constexpr (is_floating<T>) {
        if (how != Reduce::sum) {
            std::ranges::transform(from, to.as<Key<T>>().begin(),
                                   [how](T value) { return ordered<Key<T>>(static_cast<Wide<T>>(value), how); });
            return;
        }
    }
    std::ranges::transform(from, to.as<Wide<T>>().begin(), [](T value) { return static_cast<Wide<T>>(value); });
}

template <class T>
void unstage(base::ConstBuffer from, std::span<T> to, [[maybe_unused]] Reduce how) {
    if constexpr (is_floating<T>) {
        if (how != Reduce::sum) {
            std::ranges::transform(from.as<Key<T>>(), to.begin(),
                                   [](Key<T> key) { return static_cast<T>(unordered<Wide<T>>(key)); });
            return;
        }
    }
    std::ranges::transform(from.as<Wide<T>>(), to.begin(), [](Wide<T> value) { return static_cast<T>(value); });
}

} // namespace

Staging::Staging(DType type, std::size_t count, Reduce how)
    : how_(how),
      staged_type_(staged_type(type, how)),
      memory_(base::allocate({}, count * base::size_of(staged_type_))) {}

base::Buffer Staging::load(base::ConstBuffer values) {
    const base::Buffer staged(memory_.get(), values.count(), staged_type_);
    with_type(values.type(), [&]<class T>(T) { stage(values.as<T>(), staged, how_); });
    return staged;
}

void Staging::store(base::Buffer values) const {
    const base::ConstBuffer staged(memory_.get(), values.count(), staged_type_);
    with_type(values.type(), [&]<class T>(T) { unstage(staged, values.as<T>(), how_); });
}

} // namespace ranktune::ddp
