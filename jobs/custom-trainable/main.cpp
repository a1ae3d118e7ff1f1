// SPDX-License-Identifier: Apache-2.0
// A trainable of one's own: fits y = w0 + w1 x + w2 x^2 by gradient descent, each rank on its share of the samples.
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include <ranktune/ranktune.hpp>

class CurveFit final : public ranktune::Trainable {
    void setup(ranktune::TrialContext& context) override {
        lr_ = context.configuration().at("lr").as_double();
        ranktune::RngStream random(context.seed(), ranktune::Purpose::augment);
        for (int i = 0; i < samples; ++i) { // every rank draws all samples and keeps its own
            const double x = 2.0 * random.uniform() - 1.0;
            const double y = 0.5 - x + 2.0 * x * x + 0.1 * random.normal();
            if (i % context.size() == context.rank()) mine_.push_back({x, y});
        }
    }

    ranktune::Metrics step(ranktune::TrialContext& context) override {
        std::array<double, 4> sums{}; // gradient by w0, w1, w2; squared error
        for (const auto [x, y] : mine_) {
            const double error = w_[0] + w_[1] * x + w_[2] * x * x - y;
            sums[0] += 2.0 * error;
            sums[1] += 2.0 * error * x;
            sums[2] += 2.0 * error * x * x;
            sums[3] += error * error;
        }
        context.collective().all_reduce_sum(sums); // the same numbers on every rank
        for (std::size_t i = 0; i < w_.size(); ++i) w_[i] -= lr_ * sums[i] / samples;
        const double loss = sums[3] / samples;
        if (!std::isfinite(loss)) throw ranktune::Error("loss is not finite");
        return {{"loss", loss}};
    }

    void save(ranktune::StateSink& sink) const override { sink.put<double>("w", w_); }
    void load(ranktune::StateSource& source) override { source.get<double>("w", w_); }

    struct Sample {
        double x, y;
    };
    static constexpr int samples = 1000;
    std::vector<Sample> mine_;
    std::array<double, 3> w_{};
    double lr_ = 0.0;
};

int main(int argc, char** argv) {
    ranktune::register_trainable({.name = "curve_fit",
                                  .description = "least squares by gradient descent",
                                  .options = {{"lr", ranktune::OptionKind::number, true, "learning rate"}},
                                  .metrics = {"loss"}},
                                 [] { return std::make_unique<CurveFit>(); });
    return ranktune::main(argc, argv);
}
