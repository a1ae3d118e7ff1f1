// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small models for the tests of this room. LibTorch comes first: its logging defines CHECK, which the tests need.

#include <ranktune/torch.hpp>

#undef CHECK
#undef CHECK_EQ
#undef CHECK_NE
#undef CHECK_GE
#undef CHECK_GT
#undef CHECK_LE
#undef CHECK_LT
#undef LOG
#undef INFO
#undef WARN

#include "ranktune/testing/run_trial.hpp"
#include "support/catch.hpp"

namespace ranktune::libtorch_test {

/// Samples that are the same on all ranks.
inline Samples samples(std::int64_t count, std::int64_t features = 6) {
    const torch::Tensor x = torch::arange(count * features, torch::kFloat64).view({count, features});
    return {(x * 0.7).sin().to(torch::kFloat32), (x.sum(1, true) * 0.3).cos().to(torch::kFloat32)};
}

/// Two layers with batch normalisation between them, if wanted.
inline torch::nn::Sequential net(bool normalised) {
    torch::nn::Sequential result(torch::nn::Linear(6, 16));
    if (normalised) result->push_back(torch::nn::BatchNorm1d(16));
    result->push_back(torch::nn::Tanh());
    result->push_back(torch::nn::Linear(16, 1));
    return result;
}

/// Squared error of `net` on 40 samples in batches of 16: the last one of an epoch has 8.
inline Training training_of(torch::nn::Sequential module, std::unique_ptr<torch::optim::Optimizer> optimizer) {
    Training training;
    training.module = module.ptr();
    training.optimizer = std::move(optimizer);
    training.loss = [module](const Samples& batch) mutable {
        return torch::mse_loss(module->forward(batch.inputs), batch.targets);
    };
    training.train = samples(40);
    training.val = samples(9);
    training.validate = [loss = training.loss](const Samples& batch) -> Metrics {
        return {{"val_loss", loss(batch).item<double>()}};
    };
    training.batch_size = 16;
    return training;
}

inline trainables::Registration registered(libtorch::MakeTraining make) {
    return {{}, [make] { return std::make_unique<ModuleTrainable>(make); }, {}};
}

/// A tensor of a state, as double.
inline torch::Tensor tensor_of(const study::MemoryState& state, const std::string& name) {
    for (const auto& tensor : state.stored_tensors()) {
        if (tensor.info.name != name) continue;
        const bool whole = tensor.info.type == base::DType::int64;
        std::vector<std::int64_t> shape(tensor.info.shape.begin(), tensor.info.shape.end());
        const torch::Tensor view = torch::from_blob(const_cast<std::byte*>(tensor.bytes.data()), shape,
                                                    whole ? torch::kInt64 : torch::kFloat32);
        return view.to(torch::kFloat64).clone();
    }
    throw base::UsageError("no tensor " + name);
}

} // namespace ranktune::libtorch_test
