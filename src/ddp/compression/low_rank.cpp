// SPDX-License-Identifier: Apache-2.0
#include "ddp/compression/low_rank.hpp"

#include <algorithm>
#include <cmath>

#include "ranktune/base/rng.hpp"

namespace ranktune::ddp {

void multiply(std::span<const float> m, std::span<const float> q, std::size_t rank, std::span<float> p) {
    const std::size_t columns = q.size() / rank;
    const std::size_t rows = p.size() / rank;
    for (std::size_t i = 0; i < rows; ++i) {
        float* const to = p.data() + i * rank;
        std::fill(to, to + rank, 0.0F);
        const float* const row = m.data() + i * columns;
        for (std::size_t j = 0; j < columns; ++j)
            for (std::size_t c = 0; c < rank; ++c) to[c] += row[j] * q[j * rank + c];
    }
}

void multiply_transposed(std::span<const float> m, std::span<const float> p, std::size_t rank, std::span<float> q) {
    const std::size_t columns = q.size() / rank;
    const std::size_t rows = p.size() / rank;
    std::ranges::fill(q, 0.0F);
    for (std::size_t i = 0; i < rows; ++i) {
        const float* const row = m.data() + i * columns;
        const float* const from = p.data() + i * rank;
        for (std::size_t j = 0; j < columns; ++j)
            for (std::size_t c = 0; c < rank; ++c) q[j * rank + c] += row[j] * from[c];
    }
}

namespace {

float product(const float* a, const float* b, std::size_t rank) {
    float sum = 0.0F;
    for (std::size_t c = 0; c < rank; ++c) sum += a[c] * b[c];
    return sum;
}

} // namespace

void expand(std::span<const float> p, std::span<const float> q, std::size_t rank, std::span<float> m) {
    const std::size_t columns = q.size() / rank;
    for (std::size_t i = 0; i < p.size() / rank; ++i)
        for (std::size_t j = 0; j < columns; ++j)
            m[i * columns + j] = product(p.data() + i * rank, q.data() + j * rank, rank);
}

void subtract_expanded(std::span<const float> p, std::span<const float> q, std::size_t rank, std::span<float> m) {
    const std::size_t columns = q.size() / rank;
    for (std::size_t i = 0; i < p.size() / rank; ++i)
        for (std::size_t j = 0; j < columns; ++j)
            m[i * columns + j] -= product(p.data() + i * rank, q.data() + j * rank, rank);
}

bool orthonormalise(std::span<float> x, std::size_t rank) {
    constexpr double dependent = 1e-6;
    const std::size_t rows = x.size() / rank;
    const auto dot = [&](std::size_t a, std::size_t b) {
        double sum = 0.0;
        for (std::size_t i = 0; i < rows; ++i)
            sum += static_cast<double>(x[i * rank + a]) * static_cast<double>(x[i * rank + b]);
        return sum;
    };
    bool zeroed = false;
    for (std::size_t c = 0; c < rank; ++c) {
        const double before = dot(c, c);
        for (std::size_t earlier = 0; earlier < c; ++earlier) {
            const double share = dot(c, earlier);
            for (std::size_t i = 0; i < rows; ++i)
                x[i * rank + c] -= static_cast<float>(share * static_cast<double>(x[i * rank + earlier]));
        }
        const double after = dot(c, c);
        const bool zero = before == 0.0 || after <= before * dependent * dependent; // false for NaN
        const double norm = std::sqrt(after);
        for (std::size_t i = 0; i < rows; ++i) {
            float& number = x[i * rank + c];
            number = zero ? 0.0F : static_cast<float>(static_cast<double>(number) / norm);
        }
        zeroed = zeroed || zero;
    }
    return zeroed;
}

void refill_zero_columns(std::span<float> q, std::size_t rank, std::uint32_t tensor, std::uint32_t draw) {
    constexpr std::uint64_t seed = 0x504F'5745'5253'4744U; // of all trials: the ranks need not agree on one
    for (std::size_t c = 0; c < rank; ++c) {
        bool zero = true;
        for (std::size_t at = c; at < q.size(); at += rank) zero = zero && q[at] == 0.0F;
        if (!zero) continue;
        base::RngStream random(seed, base::Purpose::initialise, tensor, draw * 1024U + static_cast<std::uint32_t>(c));
        for (std::size_t at = c; at < q.size(); at += rank) q[at] = static_cast<float>(random.uniform() - 0.5);
    }
}

} // namespace ranktune::ddp
