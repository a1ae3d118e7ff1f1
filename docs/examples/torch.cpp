// SPDX-License-Identifier: Apache-2.0
// A training loop of your own with LibTorch: DataParallel averages the gradients over the ranks of the trial. Whoever
// needs no loop of his own returns a Training instead (jobs/torch-resnet). Needs LibTorch: pkg-config ranktune-torch.
#include <cstdio>
#include <memory>
#include <optional>

#include <ranktune/libtorch/data_parallel.hpp>
#include <ranktune/libtorch/module_trainable.hpp>
#include <ranktune/testing/run_trial.hpp>
#include <ranktune/torch.hpp>
#include <ranktune/trainables/trainable_library.hpp>

/// Learns y = 3 x - 1, each rank from its own points.
class Line final : public ranktune::Trainable {
    void setup(ranktune::TrialContext& context) override {
        parallel_.emplace(context.group(), model_.ptr(), ranktune::where_to_compute(context));
        optimizer_.emplace(model_->parameters(),
                           torch::optim::SGDOptions(context.configuration().at("lr").as_double()));
        x_ = torch::linspace(-1.0, 1.0, 64).view({64, 1}).roll(context.rank()).narrow(0, 0, 32);
        x_ = x_.to(parallel_->where().device);
    }
    ranktune::Metrics step(ranktune::TrialContext& context) override {
        const double loss = parallel_->step([&] { return torch::mse_loss(model_->forward(x_), 3.0 * x_ - 1.0); },
                                            1.0 / context.size()); // all ranks have as many points
        optimizer_->step();
        parallel_->share_buffers(); // this model has none
        return {{"loss", loss}};
    }
    void save(ranktune::StateSink& sink) const override { parallel_->save(sink, *optimizer_); }
    void load(ranktune::StateSource& source) override { parallel_->load(source, *optimizer_); }

    torch::nn::Linear model_{1, 1};
    std::optional<ranktune::DataParallel> parallel_;
    std::optional<torch::optim::SGD> optimizer_;
    torch::Tensor x_;
};

int main() {
    using namespace ranktune::testing;
    const TrialOptions options{
        .configuration = ranktune::Configuration({{"lr", 0.5}}), .ranks = 2, .max_iterations = 50};
    const TrialRun run = run_trial(trainable<Line>(), options);
    std::printf("loss %g %s\n", run.failure.empty() ? run.last("loss") : 0.0, run.failure.c_str());
    return run.failure.empty() && run.last("loss") < 1e-3 ? 0 : 1;
}
