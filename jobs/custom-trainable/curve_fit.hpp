// SPDX-License-Identifier: Apache-2.0
#pragma once
// A custom trainable: fits y = w0 + w1 x + w2 x^2 by gradient descent, each rank on its share of the samples.
#include <array>
#include <vector>

#include <ranktune/ranktune.hpp>

class CurveFit final : public ranktune::Trainable {
    void setup(ranktune::TrialContext& context) override { lr_ = context.configuration().at("lr").as_double(); }

    ranktune::Metrics step(ranktune::TrialContext& context) override {
        std::array<double, 4> sums{};                                    // gradient by w0, w1, w2; squared error
        for (int i = context.rank(); i < samples; i += context.size()) { // this rank's share
            const double x = 2.0 * i / samples - 1.0;
            const double y = 0.5 - x + 2.0 * x * x;
            const double error = w_[0] + w_[1] * x + w_[2] * x * x - y;
            const std::array<double, 4> mine{2.0 * error, 2.0 * error * x, 2.0 * error * x * x, error * error};
            for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += mine[k] / samples;
        }
        context.group().all_reduce(sums); // the same numbers on every rank
        for (std::size_t k = 0; k < w_.size(); ++k) w_[k] -= lr_ * sums[k];
        return {{"loss", sums[3]}};
    }

    void save(ranktune::StateSink& sink) const override { sink.put<double>("w", w_); }
    void load(ranktune::StateSource& source) override { source.get<double>("w", w_); }

    // For `predict`: the x of the file are the only column of the batch.
    void predict(ranktune::TrialContext&, const ranktune::Batch& batch, ranktune::StateSink& out) override {
        std::vector<double> y;
        for (const double x : batch.columns.at(0).as<double>()) y.push_back(w_[0] + w_[1] * x + w_[2] * x * x);
        out.put<double>("y", y);
    }

    static constexpr int samples = 1000;
    std::array<double, 3> w_{};
    double lr_ = 0.0;
};
