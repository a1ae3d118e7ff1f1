// SPDX-License-Identifier: Apache-2.0
#include "libtorch/fused_step.hpp"

#include "libtorch/version.hpp"

#if RANKTUNE_LIBTORCH_AT_LEAST(2, 4)

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <vector>

#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

namespace ranktune::libtorch {

namespace {

namespace optim = ::torch::optim;
using ::torch::Tensor;

/// Those of a group that have a gradient.
std::vector<Tensor> with_gradient(const optim::OptimizerParamGroup& group) {
    std::vector<Tensor> result;
    std::ranges::copy_if(group.params(), std::back_inserter(result),
                         [](const Tensor& parameter) { return parameter.grad().defined(); });
    return result;
}

/// The kernels walk over the memory of a parameter, its gradient and its state side by side.
bool fits(const optim::OptimizerParamGroup& group) {
    const std::vector<Tensor> parameters = with_gradient(group);
    const auto plain = [&](const Tensor& tensor) {
        return tensor.layout() == ::torch::kStrided && tensor.scalar_type() == ::torch::kFloat32 &&
               tensor.device() == parameters.front().device();
    };
    return std::ranges::all_of(parameters, [&](const Tensor& parameter) {
        return plain(parameter) && plain(parameter.grad()) && parameter.is_non_overlapping_and_dense() &&
               parameter.strides() == parameter.grad().strides();
    });
}

/// What the optimizer keeps for a parameter; made at its first step.
template <class State>
State& state_of(optim::Optimizer& optimizer, const Tensor& parameter) {
    auto& state = optimizer.state()[parameter.unsafeGetTensorImpl()];
    if (!state) state = std::make_unique<State>();
    return static_cast<State&>(*state);
}

void step_group(optim::SGD& optimizer, optim::OptimizerParamGroup& group) {
    const auto& o = static_cast<const optim::SGDOptions&>(group.options());
    struct Lists {
        std::vector<Tensor> parameters, gradients, momenta;
    } lists[2]; // whose momentum begins, and whose goes on
    for (const Tensor& parameter : with_gradient(group)) {
        bool begins = false;
        Tensor momentum;
        if (o.momentum() != 0.0) {
            auto& state = state_of<optim::SGDParamState>(optimizer, parameter);
            begins = !state.momentum_buffer().defined();
            if (begins) state.momentum_buffer(::torch::empty_like(parameter.detach()));
            momentum = state.momentum_buffer();
        }
        Lists& list = lists[begins ? 0 : 1];
        list.parameters.push_back(parameter);
        list.gradients.push_back(parameter.grad());
        if (momentum.defined()) list.momenta.push_back(momentum);
    }
    for (Lists& list : lists) {
        if (list.parameters.empty()) continue;
        at::_fused_sgd_(list.parameters, list.gradients, list.momenta, o.weight_decay(), o.momentum(), o.lr(),
                        o.dampening(), o.nesterov(), false, &list == lists);
    }
}

template <class State, class Options, class Step>
void step_adam_like(optim::Optimizer& optimizer, optim::OptimizerParamGroup& group, Step&& step) {
    const auto& o = static_cast<const Options&>(group.options());
    struct Lists {
        std::vector<Tensor> parameters, gradients, averages, squares, largest_squares;
    };
    std::map<std::int64_t, Lists> by_step; // a parameter may have begun later than others
    for (const Tensor& parameter : with_gradient(group)) {
        auto& state = state_of<State>(optimizer, parameter);
        const auto zeros = [&] { return ::torch::zeros_like(parameter.detach()); };
        if (!state.exp_avg().defined()) state.exp_avg(zeros());
        if (!state.exp_avg_sq().defined()) state.exp_avg_sq(zeros());
        if (o.amsgrad() && !state.max_exp_avg_sq().defined()) state.max_exp_avg_sq(zeros());
        state.step(state.step() + 1);
        Lists& lists = by_step[state.step()];
        lists.parameters.push_back(parameter);
        lists.gradients.push_back(parameter.grad());
        lists.averages.push_back(state.exp_avg());
        lists.squares.push_back(state.exp_avg_sq());
        if (o.amsgrad()) lists.largest_squares.push_back(state.max_exp_avg_sq());
    }
    for (auto& [number, lists] : by_step) {
        const Tensor counter = ::torch::full({}, static_cast<float>(number), lists.parameters.front().device());
        const std::vector<Tensor> counters(lists.parameters.size(), counter);
        const auto [beta1, beta2] = o.betas();
        step(lists.parameters, lists.gradients, lists.averages, lists.squares, lists.largest_squares, counters, o.lr(),
             beta1, beta2, o.weight_decay(), o.eps(), o.amsgrad(), false);
    }
}

/// Whether `optimizer` is a `Kind`; steps its groups then.
template <class Kind, class StepGroup>
bool step_kind(optim::Optimizer& optimizer, StepGroup&& step_group) {
    auto* const kind = dynamic_cast<Kind*>(&optimizer);
    if (kind == nullptr) return false;
    for (optim::OptimizerParamGroup& group : kind->param_groups()) step_group(*kind, group);
    return true;
}

} // namespace

bool fused_step(optim::Optimizer& optimizer) {
    if (!std::ranges::all_of(optimizer.param_groups(), fits)) return false;
    const ::torch::NoGradGuard no_gradients;
    return step_kind<optim::SGD>(optimizer, [](auto& sgd, auto& group) { step_group(sgd, group); }) ||
           step_kind<optim::Adam>(optimizer,
                                  [](auto& adam, auto& group) {
                                      step_adam_like<optim::AdamParamState, optim::AdamOptions>(
                                          adam, group, [](auto&&... all) { at::_fused_adam_(all...); });
                                  }) ||
           step_kind<optim::AdamW>(optimizer, [](auto& adam, auto& group) {
               step_adam_like<optim::AdamWParamState, optim::AdamWOptions>(
                   adam, group, [](auto&&... all) { at::_fused_adamw_(all...); });
           });
}

} // namespace ranktune::libtorch

#else

bool ranktune::libtorch::fused_step(::torch::optim::Optimizer&) { return false; }

#endif
