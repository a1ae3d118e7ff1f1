// SPDX-License-Identifier: Apache-2.0
#include "libtorch/optimizer_state.hpp"

#include <algorithm>
#include <span>
#include <sstream>
#include <string_view>
#include <type_traits>

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include "ranktune/base/error.hpp"

namespace ranktune::libtorch {

namespace {

namespace optim = ::torch::optim;

/// The kinds of optimizers: `moments` calls take(name, tensor, whether the options need it), `steps` is the counter.
struct SgdKind {
    using Optimizer = optim::SGD;
    using State = optim::SGDParamState;
    using Options = optim::SGDOptions;
    static constexpr std::string_view name = "SGD";
    template <class Take>
    static void moments(State& state, const Options&, Take&& take) {
        take("momentum_buffer", state.momentum_buffer(), true);
    }
    static std::int64_t steps(const State&) { return 0; }
    static void set_steps(State&, std::int64_t) {}
};

template <class AdamOptimizer, class AdamState, class AdamOptions>
struct AdamLikeKind {
    using Optimizer = AdamOptimizer;
    using State = AdamState;
    using Options = AdamOptions;
    static constexpr std::string_view name = std::is_same_v<Optimizer, optim::Adam> ? "Adam" : "AdamW";
    template <class Take>
    static void moments(State& state, const Options& options, Take&& take) {
        take("exp_avg", state.exp_avg(), true);
        take("exp_avg_sq", state.exp_avg_sq(), true);
        take("max_exp_avg_sq", state.max_exp_avg_sq(), options.amsgrad());
    }
    static std::int64_t steps(const State& state) { return state.step(); }
    static void set_steps(State& state, std::int64_t steps) { state.step(steps); }
};
using AdamKind = AdamLikeKind<optim::Adam, optim::AdamParamState, optim::AdamOptions>;
using AdamwKind = AdamLikeKind<optim::AdamW, optim::AdamWParamState, optim::AdamWOptions>;

struct RmspropKind {
    using Optimizer = optim::RMSprop;
    using State = optim::RMSpropParamState;
    using Options = optim::RMSpropOptions;
    static constexpr std::string_view name = "RMSprop";
    template <class Take>
    static void moments(State& state, const Options& options, Take&& take) {
        take("square_avg", state.square_avg(), true);
        take("momentum_buffer", state.momentum_buffer(), options.momentum() > 0.0);
        take("grad_avg", state.grad_avg(), options.centered());
    }
    static std::int64_t steps(const State& state) { return state.step(); }
    static void set_steps(State& state, std::int64_t steps) { state.step(steps); }
};

struct AdagradKind {
    using Optimizer = optim::Adagrad;
    using State = optim::AdagradParamState;
    using Options = optim::AdagradOptions;
    static constexpr std::string_view name = "Adagrad";
    template <class Take>
    static void moments(State& state, const Options&, Take&& take) {
        take("sum", state.sum(), true);
    }
    static std::int64_t steps(const State& state) { return state.step(); }
    static void set_steps(State& state, std::int64_t steps) { state.step(steps); }
};

/// Calls `use` with an object of the optimizer's kind.
template <class Use>
void with_kind(const optim::Optimizer& optimizer, Use&& use) {
    const auto try_kind = [&](auto kind) {
        if (dynamic_cast<const typename decltype(kind)::Optimizer*>(&optimizer) == nullptr) return false;
        use(kind);
        return true;
    };
    if (!(try_kind(SgdKind{}) || try_kind(AdamKind{}) || try_kind(AdamwKind{}) || try_kind(RmspropKind{}) ||
          try_kind(AdagradKind{})))
        throw base::UsageError(
            "the state of this optimizer cannot be saved; SGD, Adam, AdamW, RMSprop and Adagrad of "
            "LibTorch can be used");
}

using States = std::remove_cvref_t<decltype(std::declval<optim::Optimizer&>().state())>;

/// How the optimizer's table names a parameter: by its address, which LibTorch before 2.0 writes as text.
template <class Key = States::key_type>
Key key_of(const ::torch::Tensor& parameter) {
    if constexpr (std::is_same_v<Key, std::string>) {
        std::ostringstream text;
        text << parameter.unsafeGetTensorImpl();
        return text.str();
    } else {
        return parameter.unsafeGetTensorImpl();
    }
}

/// The options of the group that has the parameter, or nullptr.
template <class Options>
const Options* options_of(const optim::Optimizer& optimizer, const ::torch::Tensor& parameter) {
    for (const optim::OptimizerParamGroup& group : optimizer.param_groups())
        for (const ::torch::Tensor& member : group.params())
            if (member.is_same(parameter)) return &static_cast<const Options&>(group.options());
    return nullptr;
}

std::string moment_name(std::string_view moment, const Named& parameter) {
    return "optimizer." + std::string(moment) + "." + parameter.name;
}

} // namespace

void require_known(const optim::Optimizer& optimizer, const std::vector<Named>& parameters) {
    with_kind(optimizer, [](auto) {});
    for (const optim::OptimizerParamGroup& group : optimizer.param_groups())
        for (const ::torch::Tensor& member : group.params())
            if (std::ranges::none_of(parameters, [&](const Named& named) { return named.tensor.is_same(member); }))
                throw base::UsageError(
                    "the optimizer has a parameter that is none of the module: make it from "
                    "module->parameters()");
}

void save_optimizer(study::StateSink& sink, const optim::Optimizer& optimizer, const std::vector<Named>& parameters) {
    require_known(optimizer, parameters);
    const States& states = optimizer.state();
    with_kind(optimizer, [&](auto kind) {
        using Kind = decltype(kind);
        std::vector<std::int64_t> steps(parameters.size(), -1);
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            const auto found = states.find(key_of(parameters[i].tensor));
            if (found == states.end()) continue;
            auto& state = static_cast<typename Kind::State&>(*found->second);
            steps[i] = Kind::steps(state);
            Kind::moments(state, typename Kind::Options(0.0),
                          [&](const char* moment, const ::torch::Tensor& values, bool) {
                              if (values.defined()) put(sink, {moment_name(moment, parameters[i]), values});
                          });
        }
        sink.put<std::int64_t>("optimizer.steps", steps);
        sink.blob("optimizer.type", std::as_bytes(std::span(Kind::name)));
    });
}

void load_optimizer(study::StateSource& source, optim::Optimizer& optimizer, const std::vector<Named>& parameters) {
    require_known(optimizer, parameters);
    const std::vector<study::TensorInfo> saved = source.tensors();
    const std::vector<std::byte> type = source.blob("optimizer.type");
    with_kind(optimizer, [&](auto kind) {
        using Kind = decltype(kind);
        if (!std::ranges::equal(type, std::as_bytes(std::span(Kind::name))))
            throw base::FormatError("the checkpoint has the state of the optimizer " +
                                    std::string(reinterpret_cast<const char*>(type.data()), type.size()) +
                                    ", and the trial uses " + std::string(Kind::name));
        std::vector<std::int64_t> steps(parameters.size());
        source.get<std::int64_t>("optimizer.steps", steps);
        optimizer.state().clear();
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            const Named& parameter = parameters[i];
            const auto* const options = options_of<typename Kind::Options>(optimizer, parameter.tensor);
            if (steps[i] < 0 || options == nullptr) continue;
            auto state = std::make_unique<typename Kind::State>();
            Kind::set_steps(*state, steps[i]);
            Kind::moments(*state, *options, [&](const char* moment, ::torch::Tensor& values, bool needed) {
                const std::string name = moment_name(moment, parameter);
                const bool there = std::ranges::find(saved, name, &study::TensorInfo::name) != saved.end();
                if (!there && !needed) return;
                values = ::torch::zeros_like(parameter.tensor.detach());
                if (there) get(source, {name, values});
            });
            optimizer.state()[key_of(parameter.tensor)] = std::move(state);
        }
    });
}

} // namespace ranktune::libtorch
