// SPDX-License-Identifier: Apache-2.0
#pragma once
// Optimizers over contiguous memory: all parameters in one pass.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ranktune/base/huge_pages.hpp"

namespace ranktune::trainables::mlp {

struct OptimizerOptions {
    enum class Kind : std::uint8_t { sgd, adam, adamw } kind = Kind::sgd;
    double momentum = 0.9; ///< sgd
    bool nesterov = false; ///< sgd
    double beta1 = 0.9;    ///< adam, adamw
    double beta2 = 0.999;
    double epsilon = 1e-8;
    double weight_decay = 0.0;
};

/// What a step of Adam or AdamW needs of its options.
struct AdamConstants {
    float beta1;
    float beta2;
    float step_size;       ///< lr / (1 - beta1^t)
    float root_correction; ///< 1 / sqrt(1 - beta2^t)
    float epsilon;
    float gradient_decay;   ///< weight decay added to the gradient (Adam)
    float parameter_factor; ///< 1 - lr * weight decay (AdamW)
};
/// The constants of step number `step`, from 1.
[[nodiscard]] AdamConstants adam_constants(const OptimizerOptions& options, std::uint64_t step, double lr);

/// The update rules of torch.optim.SGD, Adam (Kingma and Ba, ICLR 2015) and AdamW (Loshchilov and Hutter, ICLR 2019),
/// in single precision. An element whose parameter, gradient and moments are zero stays zero.
class Optimizer {
  public:
    Optimizer(const OptimizerOptions& options, std::size_t size);

    /// Applies one step of the update rule with learning rate `lr`. Both spans have `size` floats.
    void update(std::span<float> parameters, std::span<const float> gradients, double lr);

    /// Optimizer state for checkpoints: a moment's name and values.
    struct Moment {
        std::string name; ///< "momentum", "exp_avg" or "exp_avg_sq"
        base::LargeVector<float> values;
    };
    [[nodiscard]] std::vector<Moment>& moments() { return moments_; }
    [[nodiscard]] const std::vector<Moment>& moments() const { return moments_; }
    [[nodiscard]] std::uint64_t steps() const { return steps_; }
    void set_steps(std::uint64_t steps) { steps_ = steps; }

  private:
    OptimizerOptions options_;
    std::vector<Moment> moments_;
    std::uint64_t steps_ = 0;
};

} // namespace ranktune::trainables::mlp
