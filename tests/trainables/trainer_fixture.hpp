// SPDX-License-Identifier: Apache-2.0
#pragma once
// A small synthetic dataset and a trainer on it, for tests over threads and over MPI.

#include <cmath>
#include <memory>
#include <vector>

#include "ranktune/base/rng.hpp"
#include "ranktune/data/dataset.hpp"
#include "trainables/mlp/trainer.hpp"

namespace ranktune::testing {

/// `count` samples whose class (or target) is a smooth function of the features, and a tenth as many for validation.
inline std::shared_ptr<const data::Dataset> made_up_dataset(std::size_t count, bool classification) {
    data::Dataset dataset;
    dataset.features = 8;
    dataset.outputs = classification ? 4 : 2;
    dataset.classification = classification;
    base::RngStream random(17, base::Purpose::initialise);
    for (data::Split* split : {&dataset.train, &dataset.val}) {
        split->count = split == &dataset.train ? count : count / 10 + 1;
        for (std::size_t i = 0; i < split->count; ++i) {
            double sum = 0.0;
            for (std::size_t c = 0; c < dataset.features; ++c) {
                const double value = random.normal();
                split->x.push_back(static_cast<float>(value));
                sum += c % 2 == 0 ? value : value * value - 1.0;
            }
            if (classification) {
                split->classes.push_back(sum < -2.0 ? 0 : sum < 0.0 ? 1 : sum < 2.0 ? 2 : 3);
            } else {
                split->targets.push_back(static_cast<float>(sum / 4.0));
                split->targets.push_back(static_cast<float>(std::sin(sum)));
            }
        }
    }
    dataset.x_scale = {std::vector<float>(8, 0.0F), std::vector<float>(8, 1.0F)};
    if (!classification) dataset.y_scale = {std::vector<float>(2, 0.0F), std::vector<float>(2, 0.5F)};
    return std::make_shared<const data::Dataset>(std::move(dataset));
}

/// Dropout on, small buckets so that there are several, a batch that does not divide by 2 or 3.
inline trainables::mlp::TrainerOptions trainer_options() {
    trainables::mlp::TrainerOptions options;
    options.hidden = {24, 16};
    options.dropout = 0.3;
    options.batch = 25;
    options.lr = 0.05;
    options.seed = 5;
    options.trial = 3;
    options.bucket_floats = 300;
    return options;
}

/// All parameters, one after the other.
inline std::vector<float> parameters(const trainables::mlp::Trainer& trainer) {
    std::vector<float> result;
    for (std::size_t i = 0; i < trainer.tensors().size(); ++i)
        result.insert(result.end(), trainer.parameter(i).begin(), trainer.parameter(i).end());
    return result;
}

/// Largest difference of two sets of parameters relative to the largest parameter.
inline double relative_difference(const std::vector<float>& a, const std::vector<float>& b) {
    double largest = 0.0;
    double difference = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        largest = std::max(largest, std::abs(static_cast<double>(a[i])));
        difference = std::max(difference, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    }
    return difference / largest;
}

} // namespace ranktune::testing
