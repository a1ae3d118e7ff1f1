// SPDX-License-Identifier: Apache-2.0
#include "ranktune/base/half.hpp"

#include <algorithm>
#include <cassert>

namespace ranktune::base {

namespace {

template <class From, class To>
void convert_each(std::span<const From> from, std::span<To> to) {
    assert(from.size() == to.size());
    std::ranges::transform(from, to.begin(), [](From value) { return static_cast<To>(value); });
}

} // namespace

void convert(std::span<const Float16> from, std::span<float> to) { convert_each(from, to); }
void convert(std::span<const BFloat16> from, std::span<float> to) { convert_each(from, to); }
void convert(std::span<const float> from, std::span<Float16> to) { convert_each(from, to); }
void convert(std::span<const float> from, std::span<BFloat16> to) { convert_each(from, to); }

} // namespace ranktune::base
