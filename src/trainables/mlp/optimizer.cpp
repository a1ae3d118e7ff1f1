// SPDX-License-Identifier: Apache-2.0
#include "trainables/mlp/optimizer.hpp"

#include <cassert>
#include <cmath>

#include "trainables/mlp/multiversion.hpp"

namespace ranktune::trainables::mlp {

namespace {

struct SgdStep {
    float lr;
    float momentum;
    float weight_decay;
};

RANKTUNE_MULTIVERSION
void sgd(float* p, const float* g, float* m, std::size_t size, const SgdStep& step) {
    const auto [lr, momentum, weight_decay] = step;
    for (std::size_t i = 0; i < size; ++i) {
        const float v = momentum * m[i] + (g[i] + weight_decay * p[i]);
        m[i] = v;
        p[i] -= lr * v;
    }
}

RANKTUNE_MULTIVERSION
void sgd_nesterov(float* p, const float* g, float* m, std::size_t size, const SgdStep& step) {
    const auto [lr, momentum, weight_decay] = step;
    for (std::size_t i = 0; i < size; ++i) {
        const float gradient = g[i] + weight_decay * p[i];
        const float v = momentum * m[i] + gradient;
        m[i] = v;
        p[i] -= lr * (gradient + momentum * v);
    }
}

RANKTUNE_MULTIVERSION
void sgd_plain(float* p, const float* g, std::size_t size, const SgdStep& step) {
    const float lr = step.lr;
    const float weight_decay = step.weight_decay;
    for (std::size_t i = 0; i < size; ++i) p[i] -= lr * (g[i] + weight_decay * p[i]);
}

RANKTUNE_MULTIVERSION
void adam(float* p, const float* g, float* m, float* v, std::size_t size, const AdamConstants& step) {
    const auto [beta1, beta2, step_size, root_correction, epsilon, gradient_decay, parameter_factor] = step;
    for (std::size_t i = 0; i < size; ++i) {
        const float gradient = g[i] + gradient_decay * p[i];
        const float first = beta1 * m[i] + (1.0F - beta1) * gradient;
        const float second = beta2 * v[i] + (1.0F - beta2) * gradient * gradient;
        m[i] = first;
        v[i] = second;
        p[i] = parameter_factor * p[i] - step_size * first / (std::sqrt(second) * root_correction + epsilon);
    }
}

} // namespace

AdamConstants adam_constants(const OptimizerOptions& options, std::uint64_t step, double lr) {
    const double t = static_cast<double>(step);
    const bool decoupled = options.kind == OptimizerOptions::Kind::adamw;
    return {static_cast<float>(options.beta1),
            static_cast<float>(options.beta2),
            static_cast<float>(lr / (1.0 - std::pow(options.beta1, t))),
            static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(options.beta2, t))),
            static_cast<float>(options.epsilon),
            decoupled ? 0.0F : static_cast<float>(options.weight_decay),
            decoupled ? static_cast<float>(1.0 - lr * options.weight_decay) : 1.0F};
}

Optimizer::Optimizer(const OptimizerOptions& options, std::size_t size) : options_(options) {
    if (options_.kind != OptimizerOptions::Kind::sgd) {
        moments_.push_back({"exp_avg", base::LargeVector<float>(size)});
        moments_.push_back({"exp_avg_sq", base::LargeVector<float>(size)});
    } else if (options_.momentum > 0.0) {
        moments_.push_back({"momentum", base::LargeVector<float>(size)});
    }
}

void Optimizer::update(std::span<float> parameters, std::span<const float> gradients, double lr) {
    const std::size_t size = parameters.size();
    assert(gradients.size() == size && (moments_.empty() || moments_[0].values.size() == size));
    ++steps_;
    if (options_.kind == OptimizerOptions::Kind::sgd) {
        const SgdStep step{static_cast<float>(lr), static_cast<float>(options_.momentum),
                           static_cast<float>(options_.weight_decay)};
        if (moments_.empty()) return sgd_plain(parameters.data(), gradients.data(), size, step);
        const auto rule = options_.nesterov ? sgd_nesterov : sgd;
        return rule(parameters.data(), gradients.data(), moments_[0].values.data(), size, step);
    }
    const AdamConstants step = adam_constants(options_, steps_, lr);
    adam(parameters.data(), gradients.data(), moments_[0].values.data(), moments_[1].values.data(), size, step);
}

} // namespace ranktune::trainables::mlp
