// SPDX-License-Identifier: Apache-2.0
// Data-parallel training: the ranks of a trial share out the samples, sum their gradients while they compute, and hold
// the same parameters.
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

#include <ranktune/ddp/gradient_reducer.hpp>
#include <ranktune/ddp/group.hpp>
#include <ranktune/ddp/parameters.hpp>
#include <ranktune/ddp/timeline.hpp>
#include <ranktune/testing/run_trial.hpp>
#include <ranktune/trainables/trainable.hpp>

using ranktune::trainables::Metrics;
using ranktune::trainables::TrialContext;

/// Fits y = 2 x - 1 to 60 samples: two tensors of one number each.
class Line final : public ranktune::trainables::Trainable {
  public:
    void setup(TrialContext& context) override {
        if (context.rank() == 0) parameters_ = {0.5F, 0.5F};
        context.group().broadcast(parameters_); // of rank 0
        const std::array<ranktune::base::ConstBuffer, 1> tensors{parameters_};
        ranktune::ddp::check_agreement(context.group(), ranktune::ddp::parameter_digest(tensors), "the parameters");
        reducer_.emplace(context.group(), std::vector<std::size_t>{1, 1}, std::size_t{1});
        reducer_->set_timeline(&timeline_);
    }
    Metrics step(TrialContext& context) override {
        double squares = 0.0;
        ranktune::ddp::run_step(*reducer_, [&] { // a rank that throws in here strands nobody
            reducer_->gradient(0)[0] = reducer_->gradient(1)[0] = 0.0F;
            for (int i = context.rank(); i < samples; i += context.size()) {
                const float x = static_cast<float>(i) / samples;
                const float error = parameters_[0] * x + parameters_[1] - (2.0F * x - 1.0F);
                reducer_->gradient(0)[0] += 2.0F * error * x / samples;
                reducer_->gradient(1)[0] += 2.0F * error / samples;
                squares += static_cast<double>(error) * static_cast<double>(error);
            }
            reducer_->ready(1); // the last tensor first: its sum travels while the others are computed
            reducer_->ready(0);
        });
        for (std::size_t i = 0; i < 2; ++i) parameters_[i] -= 0.5F * reducer_->gradient(i)[0];
        return {{"loss", context.group().reduced(squares) / samples}, {"comm/hidden", timeline_.summary().hidden()}};
    }
    void save(ranktune::study::StateSink& sink) const override { sink.put<float>("line", parameters_); }
    void load(ranktune::study::StateSource& source) override { source.get<float>("line", parameters_); }

  private:
    static constexpr int samples = 60;
    static double seconds() {
        return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    }
    std::array<float, 2> parameters_{};
    ranktune::ddp::Timeline timeline_{seconds};
    std::optional<ranktune::ddp::GradientReducer> reducer_;
};

int main() {
    using namespace ranktune::testing;
    TrialOptions options{.ranks = 1, .max_iterations = 200};
    const double alone = run_trial(trainable<Line>(), options).last("loss");
    options.ranks = 3;
    const double together = run_trial(trainable<Line>(), options).last("loss");
    const std::string difference = resume_difference(trainable<Line>(), options, 50, {"comm/hidden"});
    std::printf("%g on one rank, %g on three %s\n", alone, together, difference.c_str());
    return alone < 1e-3 && std::abs(alone - together) < 1e-5 && difference.empty() ? 0 : 1;
}
