// SPDX-License-Identifier: Apache-2.0
// Data-parallel training: the ranks of a trial share out the samples, sum their gradients while they compute, and hold
// the same parameters.
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

#include <ranktune/ddp/comm_meter.hpp>
#include <ranktune/ddp/compression.hpp>
#include <ranktune/ddp/gradient_reducer.hpp>
#include <ranktune/ddp/group.hpp>
#include <ranktune/ddp/parameters.hpp>
#include <ranktune/testing/run_trial.hpp>
#include <ranktune/trainables/gradient_options.hpp>
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
        return {{"loss", context.group().reduced(squares) / samples}};
    }
    void save(ranktune::study::StateSink& sink) const override { sink.put<float>("line", parameters_); }
    void load(ranktune::study::StateSource& source) override { source.get<float>("line", parameters_); }

  private:
    static constexpr int samples = 60;
    std::array<float, 2> parameters_{};
    std::optional<ranktune::ddp::GradientReducer> reducer_;
};

/// The same with a study's choice of compression and accumulation, and with what the gradients cost as metrics.
class Chosen final : public ranktune::trainables::Trainable {
  public:
    static ranktune::study::TrainableInfo info() {
        ranktune::study::TrainableInfo described;
        described.name = "chosen";
        described.options = ranktune::trainables::gradient_options(); // and its own ones
        return described;
    }
    void setup(TrialContext& context) override {
        choice_ = ranktune::trainables::gradient_choice(context.configuration(), "chosen");
        ranktune::ddp::ReducerSettings settings;
        settings.compression = choice_.compression;
        settings.matrices = {ranktune::ddp::Matrix{20, 20}};
        reducer_.emplace(context.group(), std::vector<std::size_t>{400}, settings);
        meter_.watch(*reducer_);
    }
    Metrics step(TrialContext& context) override {
        const auto compute = [&] { // pulls all parameters to 1
            for (std::size_t i = 0; i < 400; ++i)
                reducer_->gradient(0)[i] = (parameters_[i] - 1.0F) / static_cast<float>(context.size());
            reducer_->ready(0);
        };
        for (int i = 0; i < 20; ++i) {
            for (std::size_t part = 1; part < choice_.accumulate; ++part)
                ranktune::ddp::run_micro_step(*reducer_, compute); // no communication
            ranktune::ddp::run_step(*reducer_, compute);
            meter_.after_step(*reducer_);
            if (choice_.clip_norm > 0.0) reducer_->clip_norm(choice_.clip_norm);
            for (std::size_t p = 0; p < 400; ++p) parameters_[p] -= 0.1F * reducer_->gradient(0)[p];
        }
        reducer_->settle(); // a checkpoint may follow
        Metrics metrics = meter_.take(*reducer_);
        metrics.emplace_back("first", parameters_[0]);
        return metrics;
    }
    void save(ranktune::study::StateSink& sink) const override {
        sink.put<float>("parameters", parameters_);
        reducer_->save(sink);
    }
    void load(ranktune::study::StateSource& source) override {
        source.get<float>("parameters", parameters_);
        reducer_->load(source);
    }

  private:
    ranktune::trainables::GradientChoice choice_;
    std::vector<float> parameters_ = std::vector<float>(400);
    std::optional<ranktune::ddp::GradientReducer> reducer_;
    ranktune::ddp::CommMeter meter_;
};

/// Whether a compressed trial learns, and resumes bit for bit.
bool chosen_is_right(const char* compression) {
    ranktune::testing::TrialOptions options{.ranks = 2, .max_iterations = 6};
    options.configuration.set("compression", compression);
    options.configuration.set("compression_density", 0.2);
    options.configuration.set("accumulate", 2);
    const auto trainable = ranktune::testing::trainable<Chosen>(Chosen::info());
    const auto run = run_trial(trainable, options);
    std::printf("%s: %g, %g MB sent per iteration\n", compression, run.last("first"), run.last("comm/MB"));
    return std::abs(run.last("first") - 1.0) < 0.05 &&
           resume_difference(trainable, options, 3, {"comm/exposed_ms", "comm/GBps"}).empty();
}

int main() {
    using namespace ranktune::testing;
    if (!chosen_is_right("none") || !chosen_is_right("powersgd") || !chosen_is_right("topk")) return 1;
    TrialOptions options{.ranks = 1, .max_iterations = 200};
    const double alone = run_trial(trainable<Line>(), options).last("loss");
    options.ranks = 3;
    const double together = run_trial(trainable<Line>(), options).last("loss");
    const std::string difference = resume_difference(trainable<Line>(), options, 50);
    std::printf("%g on one rank, %g on three %s\n", alone, together, difference.c_str());
    return alone < 1e-3 && std::abs(alone - together) < 1e-5 && difference.empty() ? 0 : 1;
}
