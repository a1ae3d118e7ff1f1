// SPDX-License-Identifier: Apache-2.0
#pragma once
// Steps of a GradientReducer on devices, whose sums are known.

#include <memory>
#include <vector>

#include "device_ranks.hpp"
#include "ranktune/ddp/gradient_reducer.hpp"

namespace ranktune::testing {

inline const std::vector<std::size_t> tensors{5, 300, 7, 1000, 1};

/// Writes this rank's gradients of a step by work of the compute stream that takes its time.
inline void compute(Member me, ddp::GradientReducer& reducer, int step, const std::shared_ptr<void>& pinned) {
    auto* const numbers = static_cast<float*>(pinned.get());
    for (std::size_t i = tensors.size(); i-- > 0;) {
        const auto gradient = reducer.gradient_buffer(i);
        for (std::size_t k = 0; k < tensors[i]; ++k)
            numbers[i * 1000 + k] = static_cast<float>((me.rank + 1) * (step + 1)) + static_cast<float>(k % 10);
        me.on.compute_stream().upload(gradient.address(), numbers + i * 1000, tensors[i] * sizeof(float));
        reducer.ready(i);
        reducer.poll();
    }
}

/// Reads the sums by work of the compute stream, as an optimizer does.
inline int wrong_sums(Member me, ddp::GradientReducer& reducer, int step, float times = 1.0F, float factor = 1.0F) {
    int wrong = 0;
    const auto pinned = me.on.allocate_pinned(1000 * sizeof(float));
    const auto* const sums = static_cast<const float*>(pinned.get());
    const int n = me.group.size();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        me.on.compute_stream().download(pinned.get(), reducer.gradient_buffer(i).address(), tensors[i] * sizeof(float));
        testing::wait_for(me.on.compute_stream());
        for (std::size_t k = 0; k < tensors[i]; ++k) {
            const float expected =
                static_cast<float>(n * (n + 1) / 2 * (step + 1)) + static_cast<float>(n) * static_cast<float>(k % 10);
            wrong += sums[k] == factor * (times * expected) ? 0 : 1;
        }
    }
    return wrong;
}

inline void wait_for_devices(Member me) {
    testing::wait_for(me.on.compute_stream());
    testing::wait_for(me.on.communication_stream());
}

} // namespace ranktune::testing
