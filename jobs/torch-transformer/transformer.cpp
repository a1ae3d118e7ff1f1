// SPDX-License-Identifier: Apache-2.0
// A small GPT (Radford et al. 2018; layer norms first, as in GPT-2) that learns to write a text, letter by letter.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <numbers>
#include <string>
#include <vector>

#include <ranktune/torch.hpp>
#include <ranktune/trainables/data.hpp>

namespace nn = torch::nn;

struct Shape {
    int64_t letters = 256, window = 32, width = 64, heads = 4, layers = 2;
    double dropout = 0.1;
};

/// Attention to what came before, then a network for each place.
struct LayerImpl : nn::Module {
    explicit LayerImpl(const Shape& s)
        : shape(s),
          norm1(register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({s.width})))),
          query_key_value(register_module("query_key_value", nn::Linear(s.width, 3 * s.width))),
          output(register_module("output", nn::Linear(s.width, s.width))),
          norm2(register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({s.width})))),
          network(register_module("network", nn::Sequential(nn::Linear(s.width, 4 * s.width), nn::GELU(),
                                                            nn::Linear(4 * s.width, s.width), nn::Dropout(s.dropout)))),
          drop(register_module("drop", nn::Dropout(s.dropout))) {}

    torch::Tensor forward(torch::Tensor x, const torch::Tensor& later) {
        const int64_t rows = x.size(0), window = x.size(1), each = shape.width / shape.heads;
        const auto parts = query_key_value->forward(norm1->forward(x)).view({rows, window, 3, shape.heads, each});
        const auto part = [&](int64_t i) { return parts.select(2, i).transpose(1, 2); }; // [rows, heads, window, each]
        const auto scores = part(0).matmul(part(1).transpose(2, 3)) / std::sqrt(static_cast<double>(each));
        const auto weights = drop->forward(scores.masked_fill(later, -INFINITY).softmax(-1));
        x = x + output->forward(weights.matmul(part(2)).transpose(1, 2).reshape({rows, window, shape.width}));
        return x + network->forward(norm2->forward(x));
    }

    Shape shape;
    nn::LayerNorm norm1;
    nn::Linear query_key_value, output;
    nn::LayerNorm norm2;
    nn::Sequential network;
    nn::Dropout drop;
};
TORCH_MODULE(Layer);

struct GptImpl : nn::Module {
    explicit GptImpl(const Shape& s)
        : letters(register_module("letters", nn::Embedding(s.letters, s.width))),
          places(register_module("places", nn::Embedding(s.window, s.width))),
          layers(register_module("layers", nn::ModuleList())),
          norm(register_module("norm", nn::LayerNorm(nn::LayerNormOptions({s.width})))),
          head(register_module("head", nn::Linear(s.width, s.letters))),
          later(register_buffer("later", torch::ones({s.window, s.window}, torch::kBool).triu(1))) {
        for (int64_t i = 0; i < s.layers; ++i) layers->push_back(Layer(s));
    }
    torch::Tensor forward(const torch::Tensor& text) {
        torch::Tensor x = letters->forward(text) + places->weight;
        for (const auto& layer : *layers) x = layer->as<Layer>()->forward(x, later);
        return head->forward(norm->forward(x));
    }
    nn::Embedding letters, places;
    nn::ModuleList layers;
    nn::LayerNorm norm;
    nn::Linear head;
    torch::Tensor later; ///< [window, window]: what comes later must not be seen
};
TORCH_MODULE(Gpt);

/// Windows of the text, and the same one letter further: what is to be predicted.
ranktune::Samples windows(const std::string& text, int64_t window, int64_t step) {
    const std::vector<uint8_t> bytes(text.begin(), text.end());
    const auto all = torch::tensor(bytes, torch::kUInt8).to(torch::kInt64).unfold(0, window + 1, step);
    return {all.narrow(1, 0, window).contiguous(), all.narrow(1, 1, window).contiguous()};
}

ranktune::Training train_gpt(ranktune::TrialContext& context) {
    const ranktune::Configuration& options = context.configuration();
    std::ifstream file(options.at("data").as_string());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    Shape shape;
    shape.width = options.at("width").as_int();
    shape.layers = options.at("layers").as_int();
    shape.dropout = options.at("dropout").as_double();
    const std::size_t split = text.size() * 9 / 10; // the rest is for validation
    if (text.size() - split <= static_cast<std::size_t>(shape.window))
        throw ranktune::UsageError("the text in `data` is too short: it needs 500 letters or more");
    Gpt gpt(shape);

    ranktune::Training training;
    training.module = gpt.ptr();
    training.optimizer = std::make_unique<torch::optim::AdamW>(
        gpt->parameters(), torch::optim::AdamWOptions().weight_decay(options.at("weight_decay").as_double()));
    std::int64_t samples = 0;         // of an epoch
    if (options.contains("stream")) { // `stream = "text"`: an entry of [data], of 33 tokens a sample, read ahead
        auto [source, loading] = ranktune::trainables::open_data(context, options.at("stream").as_string());
        samples = static_cast<std::int64_t>(source->samples());
        training.train_from = {.source = std::move(source), .loading = std::move(loading)};
        training.train_from.samples = [window = shape.window](const ranktune::data::Batch& batch) -> ranktune::Samples {
            const torch::Tensor rows = ranktune::libtorch::tensor_of(batch.column("tokens"));
            return {rows.narrow(1, 0, window), rows.narrow(1, 1, window)};
        };
    } else {
        training.train = windows(text.substr(0, split), shape.window, shape.window / 4);
        samples = training.train.inputs.size(0);
    }
    training.val = windows(text.substr(split), shape.window, shape.window);
    training.batch_size = options.at("batch_size").as_int();
    training.loss = [gpt](const ranktune::Samples& batch) mutable {
        return torch::nn::functional::cross_entropy(gpt->forward(batch.inputs.to(torch::kInt64)).flatten(0, 1),
                                                    batch.targets.to(torch::kInt64).flatten());
    };
    training.validate = [loss = training.loss](const ranktune::Samples& batch) -> ranktune::Metrics {
        const double nats = loss(batch).item<double>();
        return {{"val_loss", nats}, {"val_bits", nats / std::numbers::ln2}}; // per letter
    };
    const double lr = options.at("lr").as_double(); // rises during the first epoch, then falls as half a cosine
    const auto epoch = static_cast<double>((samples + training.batch_size - 1) / training.batch_size);
    const double end = epoch * static_cast<double>(context.max_iterations());
    training.learning_rate = [=](std::uint64_t step) {
        const double at = static_cast<double>(step) + 1.0;
        return lr * std::min(1.0, at / epoch) * 0.5 * (1.0 + std::cos(std::numbers::pi * std::min(at / end, 1.0)));
    };
    training.clip_norm = 1.0;
    return training;
}

RANKTUNE_TORCH_LIBRARY(train_gpt);
