// SPDX-License-Identifier: Apache-2.0
#include "trainables/mlp/kernels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "device/rational_tanh.hpp"
#include "ranktune/base/rng.hpp"
#include "trainables/mlp/multiversion.hpp"

namespace ranktune::trainables::mlp {

namespace {

using device::rational_tanh;

constexpr std::size_t lanes = 16;                  // Philox blocks computed side by side
constexpr std::size_t group_units = lanes * 4 * 2; // 16-bit numbers of one group of blocks
constexpr std::uint32_t multiplier0 = 0xD2511F53U; // constants of Philox4x32 (see base/rng.hpp)
constexpr std::uint32_t multiplier1 = 0xCD9E8D57U;

/// base::philox4x32 of the counters {first + lane, sample, trial word, purpose word}, written so that compilers turn
/// the loop over lanes into vector instructions. words[4 * lanes], word-major.
inline void philox_group(std::uint32_t first, std::uint32_t sample, std::array<std::uint32_t, 2> key,
                         std::uint32_t* words) {
    std::uint32_t c0[lanes];
    std::uint32_t c1[lanes];
    std::uint32_t c2[lanes];
    std::uint32_t c3[lanes];
    for (std::size_t i = 0; i < lanes; ++i) {
        c0[i] = first + static_cast<std::uint32_t>(i);
        c1[i] = sample;
        c2[i] = 0;
        c3[i] = 0;
    }
    for (int round = 0; round < 10; ++round) {
        for (std::size_t i = 0; i < lanes; ++i) {
            const std::uint64_t product0 = std::uint64_t{multiplier0} * c0[i];
            const std::uint64_t product1 = std::uint64_t{multiplier1} * c2[i];
            c0[i] = static_cast<std::uint32_t>(product1 >> 32) ^ c1[i] ^ key[0];
            c1[i] = static_cast<std::uint32_t>(product1);
            c2[i] = static_cast<std::uint32_t>(product0 >> 32) ^ c3[i] ^ key[1];
            c3[i] = static_cast<std::uint32_t>(product0);
        }
        key[0] += 0x9E3779B9U;
        key[1] += 0xBB67AE85U;
    }
    for (std::size_t i = 0; i < lanes; ++i) {
        words[i] = c0[i];
        words[lanes + i] = c1[i];
        words[2 * lanes + i] = c2[i];
        words[3 * lanes + i] = c3[i];
    }
}

} // namespace

RANKTUNE_MULTIVERSION
void add_bias_relu(float* y, const float* bias, std::size_t rows, std::size_t columns) {
    for (std::size_t r = 0; r < rows; ++r) {
        float* row = y + r * columns;
        for (std::size_t c = 0; c < columns; ++c) {
            const float z = row[c] + bias[c];
            row[c] = z < 0.0F ? 0.0F : z;
        }
    }
}

RANKTUNE_MULTIVERSION
void add_bias_tanh(float* y, const float* bias, std::size_t rows, std::size_t columns) {
    for (std::size_t r = 0; r < rows; ++r) {
        float* row = y + r * columns;
        for (std::size_t c = 0; c < columns; ++c) row[c] = rational_tanh(row[c] + bias[c]);
    }
}

RANKTUNE_MULTIVERSION
void add_bias(float* y, const float* bias, std::size_t rows, std::size_t columns) {
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < columns; ++c) y[r * columns + c] += bias[c];
}

DropoutMask dropout_mask(double probability, std::uint64_t seed, std::uint32_t trial, std::uint32_t layer,
                         std::uint64_t epoch) {
    const std::array<std::uint32_t, 4> words = base::philox4x32(
        {layer, static_cast<std::uint32_t>(epoch), trial, static_cast<std::uint32_t>(base::Purpose::dropout)},
        {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
    return {{words[0], words[1]}, static_cast<std::uint32_t>(std::lround(probability * 65536.0))};
}

RANKTUNE_MULTIVERSION
void drop(float* y, std::span<const std::uint32_t> samples, std::size_t columns, const DropoutMask& mask) {
    const float scale = mask.scale();
    const std::uint32_t threshold = mask.threshold;
    std::uint32_t words[4 * lanes];
    for (std::size_t r = 0; r < samples.size(); ++r) {
        float* row = y + r * columns;
        for (std::size_t begin = 0; begin < columns; begin += group_units) {
            philox_group(static_cast<std::uint32_t>(begin / group_units * lanes), samples[r], mask.key, words);
            // The low halves of the 64 words are the first 64 units, the high halves the next.
            for (std::size_t half = 0; half < 2; ++half) {
                const std::size_t first = begin + half * 4 * lanes;
                const std::size_t count = first < columns ? std::min(columns - first, 4 * lanes) : 0;
                const unsigned shift = half == 0 ? 0 : 16;
                for (std::size_t i = 0; i < count; ++i) {
                    const bool dropped = ((words[i] >> shift) & 0xFFFFU) < threshold;
                    row[first + i] = dropped ? -0.0F : row[first + i] * scale;
                }
            }
        }
    }
}

RANKTUNE_MULTIVERSION
void relu_backward(float* d, const float* y, float scale, float* bias_gradient, std::size_t rows, std::size_t columns) {
    std::fill_n(bias_gradient, columns, 0.0F);
    for (std::size_t r = 0; r < rows; ++r) {
        float* row = d + r * columns;
        const float* out = y + r * columns;
        for (std::size_t c = 0; c < columns; ++c) {
            const float gradient = out[c] > 0.0F ? row[c] * scale : 0.0F;
            row[c] = gradient;
            bias_gradient[c] += gradient;
        }
    }
}

RANKTUNE_MULTIVERSION
void tanh_backward(float* d, const float* y, float scale, float* bias_gradient, std::size_t rows, std::size_t columns) {
    std::fill_n(bias_gradient, columns, 0.0F);
    const float inverse = 1.0F / scale;
    for (std::size_t r = 0; r < rows; ++r) {
        float* row = d + r * columns;
        const float* out = y + r * columns;
        for (std::size_t c = 0; c < columns; ++c) {
            const float t = out[c] * inverse;
            const bool dropped = std::bit_cast<std::uint32_t>(out[c]) == 0x80000000U;
            const float gradient = dropped ? 0.0F : row[c] * scale * (1.0F - t * t);
            row[c] = gradient;
            bias_gradient[c] += gradient;
        }
    }
}

RANKTUNE_MULTIVERSION
void column_sums(const float* d, float* bias_gradient, std::size_t rows, std::size_t columns) {
    std::fill_n(bias_gradient, columns, 0.0F);
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < columns; ++c) bias_gradient[c] += d[r * columns + c];
}

LossSums cross_entropy(float* z, std::span<const std::int32_t> classes, std::size_t columns, bool gradient,
                       float factor) {
    LossSums sums;
    for (std::size_t r = 0; r < classes.size(); ++r) {
        float* row = z + r * columns;
        const auto right = static_cast<std::size_t>(classes[r]);
        const float right_logit = row[right];
        const std::size_t largest = static_cast<std::size_t>(std::max_element(row, row + columns) - row);
        const float top = row[largest];
        float total = 0.0F;
        for (std::size_t c = 0; c < columns; ++c) {
            const float e = std::exp(row[c] - top);
            total += e;
            if (gradient) row[c] = e;
        }
        sums.loss += static_cast<double>(std::log(total) - (right_logit - top));
        sums.correct += largest == right ? 1 : 0;
        if (!gradient) continue;
        const float normalise = factor / total;
        for (std::size_t c = 0; c < columns; ++c) row[c] *= normalise;
        row[right] -= factor;
    }
    return sums;
}

RANKTUNE_MULTIVERSION
LossSums squared_error(float* z, const float* targets, std::size_t rows, std::size_t columns, bool gradient,
                       float factor) {
    LossSums sums;
    const float slope = 2.0F * factor / static_cast<float>(columns);
    for (std::size_t r = 0; r < rows; ++r) {
        double squares = 0.0;
        for (std::size_t c = 0; c < columns; ++c) {
            const float difference = z[r * columns + c] - targets[r * columns + c];
            squares += static_cast<double>(difference) * static_cast<double>(difference);
            if (gradient) z[r * columns + c] = slope * difference;
        }
        sums.loss += squares / static_cast<double>(columns);
    }
    return sums;
}

} // namespace ranktune::trainables::mlp
