// SPDX-License-Identifier: Apache-2.0
// A program with a trainable of its own, in the class form: run_program, register_trainable, TrainableInfo.
#include <span>

#include <ranktune/run_program.hpp>
#include <ranktune/study/trainable_info.hpp>
#include <ranktune/trainables/trainable.hpp>

namespace trainables = ranktune::trainables;
namespace study = ranktune::study;

/// Gradient descent on (x - 3)^2.
struct Quadratic final : trainables::Trainable {
    void setup(trainables::TrialContext& context) override { lr = context.configuration().at("lr").as_double(); }
    trainables::Metrics step(trainables::TrialContext&) override {
        x -= lr * 2.0 * (x - 3.0);
        return {{"loss", (x - 3.0) * (x - 3.0)}};
    }
    void save(study::StateSink& sink) const override { sink.put("x", std::span(&x, 1)); }
    void load(study::StateSource& source) override { source.get("x", std::span(&x, 1)); }

    double x = 0.0;
    double lr = 0.0;
};

/// `./program run study.toml` with `[trainable] builtin = "quadratic"`; every other verb of ranktune works, too.
int main(int argc, char** argv) {
    study::TrainableInfo info;
    info.name = "quadratic";
    info.description = "a parabola";
    info.options = {{"lr", study::OptionInfo::Kind::number, true, "learning rate", {}, 0.0, 1.0}};
    info.metrics = {"loss"};
    trainables::register_trainable<Quadratic>(info);
    return ranktune::run_program(argc, argv);
}
