// SPDX-License-Identifier: Apache-2.0
#include "trainables/mlp/kernels.hpp"

#include <cmath>
#include <limits>
#include <numeric>

#include "ranktune/base/rng.hpp"
#include "support/catch.hpp"
#include "trainables/blas.hpp"
#include "trainables/mlp/optimizer.hpp"

namespace kernels_test {

using namespace ranktune;
using namespace ranktune::trainables;
using namespace ranktune::trainables::mlp;

namespace {
const float nan_value = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random_values(std::size_t count, std::uint32_t draw) {
    base::RngStream random(5, base::Purpose::initialise, 0, draw);
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(random.normal());
    return values;
}
} // namespace

TEST_CASE("products agree with explicit sums for all four transpositions", "[trainables]") {
    using blas::Transpose;
    constexpr std::size_t m = 3, n = 5, k = 4;
    const std::vector<float> a = random_values(m * k, 1);
    const std::vector<float> b = random_values(k * n, 2);
    for (const Transpose ta : {Transpose::no, Transpose::yes}) {
        for (const Transpose tb : {Transpose::no, Transpose::yes}) {
            std::vector<float> c(m * n, 1.0F);
            blas::multiply(ta, tb, m, n, k, a.data(), b.data(), 0.5F, c.data());
            for (std::size_t i = 0; i < m; ++i) {
                for (std::size_t j = 0; j < n; ++j) {
                    double sum = 0.5;
                    for (std::size_t p = 0; p < k; ++p)
                        sum += static_cast<double>(ta == Transpose::yes ? a[p * m + i] : a[i * k + p]) *
                               static_cast<double>(tb == Transpose::yes ? b[j * k + p] : b[p * n + j]);
                    CHECK(c[i * n + j] == Approx(sum).margin(1e-5));
                }
            }
        }
    }
}

TEST_CASE("a product over nothing is zero", "[trainables]") {
    std::vector<float> c(6, nan_value);
    blas::multiply(blas::Transpose::yes, blas::Transpose::no, 2, 3, 0, nullptr, nullptr, 0.0F, c.data());
    CHECK(c == std::vector<float>(6, 0.0F));
}

TEST_CASE("the BLAS of this build is known and accepts a number of threads", "[trainables]") {
    CHECK(blas::library() != "reference BLAS");
    blas::use_threads(1);
}

TEST_CASE("relu cuts below zero after the bias and lets NaN through", "[trainables]") {
    std::vector<float> y{-1.0F, 2.0F, 0.5F, nan_value};
    const std::vector<float> bias{0.5F, -1.0F};
    add_bias_relu(y.data(), bias.data(), 2, 2);
    CHECK(y[0] == 0.0F);
    CHECK(y[1] == 1.0F);
    CHECK(y[2] == 1.0F);
    CHECK(std::isnan(y[3]));
}

TEST_CASE("tanh is within 4e-7 of the exact one everywhere, odd, and lets NaN through", "[trainables]") {
    const float zero = 0.0F;
    double worst = 0.0;
    for (int i = -120'000; i <= 120'000; ++i) {
        const float x = static_cast<float>(i) * 1e-4F;
        float y = x;
        add_bias_tanh(&y, &zero, 1, 1);
        worst = std::max(worst, std::abs(static_cast<double>(y) - std::tanh(static_cast<double>(x))));
        CHECK_FALSE((std::abs(y) > 1.0F));
    }
    CHECK(worst < 4e-7);
    float y = nan_value;
    add_bias_tanh(&y, &zero, 1, 1);
    CHECK(std::isnan(y));
    y = -0.0F;
    add_bias_tanh(&y, &zero, 1, 1);
    CHECK_FALSE(std::signbit(y));
}

TEST_CASE("dropout uses sixteen bits of Philox for each unit", "[trainables]") {
    // 200 units: more than one group of blocks.
    const DropoutMask mask = dropout_mask(0.3, 11, 4, 2, 9);
    const std::uint32_t sample = 77;
    std::vector<float> y(200, 1.0F);
    drop(y.data(), std::span(&sample, 1), 200, mask);
    for (std::size_t unit = 0; unit < 200; ++unit) {
        const std::size_t group = unit / 128;
        const std::size_t word = unit % 64;
        const auto block = static_cast<std::uint32_t>(group * 16 + word % 16);
        const std::uint32_t bits = base::philox4x32({block, sample, 0, 0}, mask.key)[word / 16];
        const std::uint32_t number = unit % 128 < 64 ? bits & 0xFFFFU : bits >> 16;
        CHECK(y[unit] == (number < mask.threshold ? 0.0F : mask.scale()));
        CHECK(std::signbit(y[unit]) == (number < mask.threshold));
    }
}

TEST_CASE("dropout drops the share it was asked for and keeps the mean", "[trainables]") {
    for (const double probability : {0.1, 0.5, 0.9}) {
        const DropoutMask mask = dropout_mask(probability, 1, 2, 0, 3);
        std::vector<std::uint32_t> samples(400);
        std::iota(samples.begin(), samples.end(), 0U);
        std::vector<float> y(400 * 256, 1.0F);
        drop(y.data(), samples, 256, mask);
        const double mean = std::accumulate(y.begin(), y.end(), 0.0) / static_cast<double>(y.size());
        CHECK(mean == Approx(1.0).margin(5.0 * std::sqrt(probability / (1.0 - probability) / 102'400.0)));
    }
}

TEST_CASE("masks differ between layers, epochs, trials, seeds and samples, and repeat otherwise", "[trainables]") {
    const auto key = [](std::uint64_t seed, std::uint32_t trial, std::uint32_t layer, std::uint64_t epoch) {
        return dropout_mask(0.5, seed, trial, layer, epoch).key;
    };
    CHECK(key(1, 2, 3, 4) == key(1, 2, 3, 4));
    CHECK(key(1, 2, 3, 4) != key(2, 2, 3, 4));
    CHECK(key(1, 2, 3, 4) != key(1, 3, 3, 4));
    CHECK(key(1, 2, 3, 4) != key(1, 2, 4, 4));
    CHECK(key(1, 2, 3, 4) != key(1, 2, 3, 5));
    const std::vector<std::uint32_t> samples{3, 9};
    std::vector<float> y(2 * 64, 1.0F);
    drop(y.data(), samples, 64, dropout_mask(0.5, 1, 2, 3, 4));
    CHECK(std::vector<float>(y.begin(), y.begin() + 64) != std::vector<float>(y.begin() + 64, y.end()));
}

TEST_CASE("cross entropy of two rows by hand", "[trainables]") {
    std::vector<float> z{0.0F, std::log(3.0F), 5.0F, 5.0F};
    const std::vector<std::int32_t> classes{1, 1};
    const LossSums sums = cross_entropy(z.data(), classes, 2, true, 0.5F);
    CHECK(sums.loss == Approx(std::log(4.0 / 3.0) + std::log(2.0)));
    CHECK(sums.correct == 1); // a tie goes to the lower class
    CHECK(z[0] == Approx(0.5 * 0.25));
    CHECK(z[1] == Approx(0.5 * (0.75 - 1.0)));
    CHECK(z[2] == Approx(0.25));
    CHECK(z[3] == Approx(-0.25));
}

TEST_CASE("a NaN or an infinity among the outputs makes the loss NaN", "[trainables]") {
    for (const float bad : {nan_value, std::numeric_limits<float>::infinity()}) {
        for (std::size_t place = 0; place < 3; ++place) {
            std::vector<float> z{0.0F, 1.0F, 2.0F};
            z[place] = bad;
            const std::vector<std::int32_t> classes{0};
            CHECK(std::isnan(cross_entropy(z.data(), classes, 3, true, 1.0F).loss));
        }
    }
}

TEST_CASE("squared error by hand", "[trainables]") {
    std::vector<float> z{1.0F, 2.0F, 3.0F, 4.0F};
    const std::vector<float> targets{0.0F, 2.0F, 3.0F, 7.0F};
    const LossSums sums = squared_error(z.data(), targets.data(), 2, 2, true, 0.25F);
    CHECK(sums.loss == Approx(0.5 * 1.0 + 0.5 * 9.0));
    CHECK(z[0] == Approx(0.25));
    CHECK(z[1] == 0.0F);
    CHECK(z[3] == Approx(-0.75));
}

namespace {
/// Two steps of a rule on one element with gradient 0.5 each time, and a padding element that must stay zero.
float two_steps(const OptimizerOptions& options, double lr) {
    Optimizer optimizer(options, 2);
    std::vector<float> p{1.0F, 0.0F};
    const std::vector<float> g{0.5F, 0.0F};
    optimizer.update(p, g, lr);
    optimizer.update(p, g, lr);
    CHECK(p[1] == 0.0F);
    CHECK(optimizer.steps() == 2);
    return p[0];
}
} // namespace

TEST_CASE("the update rules are those of PyTorch", "[trainables]") {
    using Rule = OptimizerOptions::Kind;
    // Results of torch.optim 2.x with the same arguments.
    CHECK(two_steps({.kind = Rule::sgd, .momentum = 0.0}, 0.1) == Approx(0.9));
    CHECK(two_steps({.kind = Rule::sgd, .momentum = 0.9}, 0.1) == Approx(1.0 - 0.05 - 0.095));
    CHECK(two_steps({.kind = Rule::sgd, .momentum = 0.9, .nesterov = true}, 0.1) == Approx(1.0 - 0.095 - 0.1355));
    CHECK(two_steps({.kind = Rule::sgd, .momentum = 0.0, .weight_decay = 0.1}, 0.1) == Approx(0.8806));
    CHECK(two_steps({.kind = Rule::adam}, 0.1) == Approx(0.8).epsilon(1e-5));
    CHECK(two_steps({.kind = Rule::adamw, .weight_decay = 0.1}, 0.1) == Approx(0.7811).epsilon(1e-5));
}

} // namespace kernels_test
