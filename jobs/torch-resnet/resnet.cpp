// SPDX-License-Identifier: Apache-2.0
// A ResNet-18 (He et al. 2015, "Deep residual learning for image recognition") for small grey images, as a trainable.
#include <cmath>

#include <ranktune/torch.hpp>
#include <ranktune/trainables/data.hpp>

namespace nn = torch::nn;

nn::Conv2d convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
    return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

/// Two convolutions beside a shortcut.
struct BlockImpl : nn::Module {
    BlockImpl(int64_t in, int64_t out, int64_t stride) {
        path = register_module("path", nn::Sequential(convolution(in, out, 3, stride), nn::BatchNorm2d(out), nn::ReLU(),
                                                      convolution(out, out, 3, 1), nn::BatchNorm2d(out)));
        if (stride != 1 || in != out)
            shortcut =
                register_module("shortcut", nn::Sequential(convolution(in, out, 1, stride), nn::BatchNorm2d(out)));
    }
    torch::Tensor forward(const torch::Tensor& x) {
        return torch::relu(path->forward(x) + (shortcut.is_empty() ? x : shortcut->forward(x)));
    }
    nn::Sequential path{nullptr}, shortcut{nullptr};
};
TORCH_MODULE(Block);

/// Four stages of two blocks; the first stage has `width` channels (64 in the paper).
struct ResNet18Impl : nn::Module {
    ResNet18Impl(int64_t width, int64_t classes) {
        layers = nn::Sequential(convolution(1, width, 3, 1), nn::BatchNorm2d(width), nn::ReLU());
        int64_t in = width;
        for (int64_t stage = 0; stage < 4; ++stage)
            for (int64_t block = 0; block < 2; ++block) {
                const int64_t out = width << stage;
                layers->push_back(Block(in, out, stage > 0 && block == 0 ? 2 : 1));
                in = out;
            }
        layers->push_back(nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions(1)));
        layers->push_back(nn::Flatten());
        layers->push_back(nn::Linear(in, classes));
        register_module("layers", layers);
    }
    torch::Tensor forward(const torch::Tensor& x) { return layers->forward(x); }
    nn::Sequential layers;
};
TORCH_MODULE(ResNet18);

/// Square images, as the data set stores them: one row of pixels each.
ranktune::Samples images(const ranktune::data::Split& split, std::size_t pixels) {
    const auto count = static_cast<int64_t>(split.count);
    const auto side = static_cast<int64_t>(std::lround(std::sqrt(pixels)));
    return {torch::tensor(split.x).view({count, 1, side, side}), torch::tensor(split.classes).to(torch::kInt64)};
}

/// Rows of pixels from 0 to 255, as a file has them, where the rank computes.
torch::Tensor images(const torch::Tensor& rows) {
    const auto side = static_cast<int64_t>(std::lround(std::sqrt(rows.size(1))));
    return rows.to(torch::kFloat32).div(255).view({-1, 1, side, side});
}

ranktune::Training train_resnet(ranktune::TrialContext& context) {
    const ranktune::Configuration& options = context.configuration();
    const auto data = ranktune::data::shared_dataset(options.at("data").as_string(), ranktune::data::Scaling::unit);
    ResNet18 net(options.at("width").as_int(), static_cast<int64_t>(data->outputs));

    ranktune::Training training;
    training.module = net.ptr();
    training.optimizer = std::make_unique<torch::optim::SGD>(net->parameters(),
                                                             torch::optim::SGDOptions(options.at("lr").as_double())
                                                                 .momentum(options.at("momentum").as_double())
                                                                 .weight_decay(options.at("weight_decay").as_double()));
    training.loss = [net](const ranktune::Samples& batch) mutable {
        return torch::nn::functional::cross_entropy(net->forward(batch.inputs), batch.targets);
    };
    training.validate = [net](const ranktune::Samples& batch) mutable -> ranktune::Metrics {
        const torch::Tensor outputs = net->forward(batch.inputs);
        const torch::Tensor correct = outputs.argmax(1).eq(batch.targets).to(torch::kFloat32);
        return {{"val_loss", torch::nn::functional::cross_entropy(outputs, batch.targets).item<double>()},
                {"val_accuracy", correct.mean().item<double>()}};
    };
    // For `ranktune predict`: pixels as a file has them, one row for each image, scaled as those of `train`.
    const torch::Tensor factor = torch::tensor(data->x_scale.factor);
    const auto side = static_cast<int64_t>(std::lround(std::sqrt(data->features)));
    training.predict = [net, factor, side](const torch::Tensor& inputs) mutable {
        return net->forward(inputs.to(torch::kFloat32).mul(factor.to(inputs.device())).view({-1, 1, side, side}))
            .softmax(1);
    };
    training.predicts_classes = true;
    if (options.contains("stream")) { // `stream = "train"`: an entry of [data], with columns x and y, read ahead
        auto [source, loading] = ranktune::trainables::open_data(context, options.at("stream").as_string());
        training.train_from = {.source = std::move(source), .loading = std::move(loading)};
        training.loss = [net](const ranktune::Samples& batch) mutable {
            return torch::nn::functional::cross_entropy(net->forward(images(batch.inputs)),
                                                        batch.targets.to(torch::kInt64));
        };
    } else {
        training.train = images(data->train, data->features);
    }
    training.val = images(data->val, data->features);
    training.batch_size = options.at("batch_size").as_int();
    training.drop_last = true; // batch normalisation of a few samples tells nothing
    return training;
}

RANKTUNE_TORCH_LIBRARY(train_resnet);
